"""What a tutor says to each known mistake in an encoder layer."""

from ttutor.exercises.encoder import encoder_layer_mistakes as wrong
from ttutor.exercises.exercise import Mistake

__all__ = ["MISTAKES"]

MISTAKES = (
    Mistake(
        id="post_norm",
        says="Your stream is normalised after each sum: this is post-norm, the order of the 2017 paper. Here "
        "each norm stands before its sublayer, inside the branch, and nothing normalises the stream itself.",
        answers=(wrong.post_norm,),
    ),
    Mistake(
        id="norm_after_sublayer",
        says="You normalise what a sublayer writes instead of what it reads. The norm belongs between the stream "
        "and the sublayer: which of the two comes first in your code?",
        answers=(wrong.norm_after_sublayer,),
    ),
    Mistake(
        id="no_residual_attn",
        says="With its output weights at 0, attention should leave the stream alone; yours erases it. The skip "
        "around attention is missing.",
        answers=(wrong.no_residual_attn,),
    ),
    Mistake(
        id="no_residual_ff",
        says="With $W_2$ and $b_2$ at 0, the feed-forward network should leave the stream alone; yours erases "
        "it. The skip around it is missing.",
        answers=(wrong.no_residual_ff,),
    ),
    Mistake(
        id="no_residuals",
        says="Both skips are missing: each sublayer replaces the stream instead of adding to it. What happens to "
        "a token that no sublayer has anything to say about?",
        answers=(wrong.no_residuals,),
    ),
    Mistake(
        id="residual_from_normed",
        says="You add what the sublayers write to the normalised stream. The skip carries the raw one; the norm "
        "is for the sublayer alone. Do both have a name of their own in your code?",
        answers=(wrong.residual_from_normed,),
    ),
    Mistake(
        id="first_residual_from_normed",
        says="The second half is right. In the first, attention's result is added to the normalised stream: you "
        "have given the norm's result the name of the stream.",
        answers=(wrong.first_residual_from_normed,),
    ),
    Mistake(
        id="second_residual_from_normed",
        says="The first half is right. In the second, the network's result is added to the normalised stream: "
        "the skip should carry what came out of the first half, as it is.",
        answers=(wrong.second_residual_from_normed,),
    ),
    Mistake(
        id="residual_from_input",
        says="Your second skip starts at the layer's input, so that what attention wrote is read by the network "
        "and then forgotten. Where should the second skip start?",
        answers=(wrong.residual_from_input,),
    ),
    Mistake(
        id="residual_twice",
        says="Your output is mine plus the input once more. Each half already adds to the stream that comes in: "
        "is there a third addition?",
        answers=(wrong.residual_twice,),
    ),
    Mistake(
        id="no_first_norm",
        says="Doubling the input changes what attention sees, so its norm is missing. The first norm stands "
        "before attention.",
        answers=(wrong.no_first_norm,),
    ),
    Mistake(
        id="no_second_norm",
        says="Attention reads a normalised stream, the feed-forward network a raw one: its norm is missing.",
        answers=(wrong.no_second_norm,),
    ),
    Mistake(
        id="norms_exchanged",
        says="The two norms have changed places: `norm_1` belongs to attention, `norm_2` to the feed-forward network.",
        answers=(wrong.norms_exchanged,),
    ),
    Mistake(
        id="first_norm_twice",
        says="`norm_2` has no effect: both sublayers use the gain and bias of `norm_1`. Right at the start of "
        "training, when all norms are alike, and wrong ever after.",
        answers=(wrong.first_norm_twice,),
    ),
    Mistake(
        id="norm_for_queries_only",
        says="Your queries come from the normalised stream, your keys and values from the raw one. In "
        "self-attention all three read the same thing: what does the norm hand over?",
        answers=(wrong.norm_for_queries_only,),
    ),
    Mistake(
        id="no_affine",
        says="Right for a layer as it starts, wrong for a trained one: the norms' gain and bias have no effect. "
        "What are `norm_1` and `norm_2` made of?",
        answers=(wrong.no_affine,),
    ),
    Mistake(
        id="no_eps",
        says="A token of zeros gives NaN: its norm divides 0 by 0. What stands under the root beside the variance?",
        answers=(wrong.no_eps,),
    ),
    Mistake(
        id="ff_no_activation",
        says="Your feed-forward network is linear, so that its two maps could be one: f(a) + f(b) = f(a + b) up "
        "to the biases. What stands between the maps?",
        answers=(wrong.ff_no_activation,),
    ),
    Mistake(
        id="gelu_not_relu",
        says="Your network uses GELU, as BERT and GPT-2 do. The exercise asks for ReLU, as in the 2017 paper.",
        answers=(wrong.gelu_not_relu,),
    ),
    Mistake(
        id="relu_at_the_end",
        says="What your network writes is never negative: ReLU comes after its second map, where it should stand "
        "between the two.",
        answers=(wrong.relu_at_the_end,),
    ),
    Mistake(
        id="no_ff_bias",
        says="Right while the biases are zero, as they are at the start: your feed-forward network uses $W_1$ "
        "and $W_2$ only. What are the other two parts of `feed_forward` for?",
        answers=(wrong.no_ff_bias,),
    ),
    Mistake(
        id="extra_final_norm",
        says="You normalise once more after the last addition. In a pre-norm model that norm belongs to the "
        "stack, once, after the last layer.",
        answers=(wrong.extra_final_norm, wrong.plain_final_norm),
    ),
    Mistake(
        id="ff_before_attn",
        says="Your feed-forward network comes first and attention second. It is the other way round: tokens are "
        "mixed before each is worked on by itself.",
        answers=(wrong.ff_before_attn, wrong.ff_before_attn_in_order_of_norms),
    ),
    Mistake(
        id="parallel",
        says="Both of your sublayers read the layer's input, side by side, as in GPT-J. Here the second one "
        "reads what the first has written.",
        answers=(wrong.parallel,),
    ),
    Mistake(
        id="causal_encoder",
        says="Changing a late token leaves your earlier outputs as they were: your attention is causal. An "
        "encoder has the whole sentence and may look both ways.",
        answers=(wrong.causal_encoder,),
    ),
    Mistake(
        id="no_scale",
        says="Your attention is sharper than it should be, as if the scores were too large by √d_head. What does "
        "the paper divide them by?",
        answers=(wrong.no_scale,),
    ),
    Mistake(
        id="scale_d_model",
        says="Your attention is flatter than it should be: the scores are divided by √d_model. A head's queries "
        "and keys have only d_model / n_heads features.",
        answers=(wrong.scale_d_model,),
    ),
    Mistake(
        id="one_head",
        says="Your result does not depend on `n_heads`: there is one head as wide as the model. Where do the "
        "queries, keys and values get cut?",
        answers=(wrong.one_head,),
    ),
    Mistake(
        id="no_output_map",
        says="You add the concatenated heads to the stream as they are. One linear map is missing: what is "
        "`attention[3]` for?",
        answers=(wrong.no_output_map,),
    ),
    Mistake(
        id="weights_transposed",
        says="You multiply by attention's weights the wrong way round. They are stored as in `nn.Linear`, "
        "outputs in rows and inputs in columns; as they are square here, no error says so.",
        answers=(wrong.weights_transposed,),
    ),
    Mistake(
        id="inplace",
        says="The result is right, but `hidden` was overwritten: `+=` edits the tensor that you were given. "
        "Whoever called the layer still needs it.",
        answers=(wrong.inplace,),
    ),
)
