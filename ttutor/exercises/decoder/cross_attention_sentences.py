"""What a tutor says to each known mistake in cross-attention."""

from ttutor.exercises.decoder import cross_attention_mistakes as wrong
from ttutor.exercises.exercise import Mistake

__all__ = ["MISTAKES"]

MISTAKES = (
    Mistake(
        id="kv_from_decoder",
        says="Changing the encoder's memory does not change your output: your keys and values come from the "
        "decoder, which makes this self-attention. Whose words is the decoder meant to read here?",
        answers=(wrong.kv_from_decoder, wrong.kv_from_decoder_causal),
    ),
    Mistake(
        id="q_from_encoder",
        says="Your output has the length of the source: the encoder asks and the decoder answers. The queries "
        "come from the decoder, the keys and values from the memory.",
        answers=(wrong.q_from_encoder,),
    ),
    Mistake(
        id="all_from_encoder",
        says="Your output has the length of the source and ignores the decoder: queries, keys and values all "
        "come from the memory, as in the encoder's own layers. Who asks?",
        answers=(wrong.all_from_encoder,),
    ),
    Mistake(
        id="v_from_decoder",
        says="Your keys come from the memory, your values from the decoder. It fits only where both happen to "
        "have one length: what is found by a key should come from the same place as the key.",
        answers=(wrong.v_from_decoder,),
    ),
    Mistake(
        id="k_from_decoder",
        says="Your values come from the memory, your keys from the decoder. It fits only where both happen to "
        "have one length: to choose among source words, compare with source words.",
        answers=(wrong.k_from_decoder,),
    ),
    Mistake(
        id="memory_beside_own_tokens",
        says="Your queries look at the memory and at their own sequence side by side, and the two compete for "
        "weight. In this layer the memory is all there is to see; self-attention has a layer of its own.",
        answers=(wrong.memory_beside_own_tokens,),
    ),
    Mistake(
        id="causal_on_cross",
        says="Early target tokens cannot see the end of the source. The causal mask is for self-attention; the "
        "source is known as a whole, so every target token may read all of it.",
        answers=(wrong.causal_on_cross, wrong.causal_from_the_end),
    ),
    Mistake(
        id="no_memory_mask",
        says="Changing what stands in the source's padding changes your output: `memory_mask` has no effect. "
        "Where do masks act in attention?",
        answers=(wrong.no_memory_mask,),
    ),
    Mistake(
        id="polarity",
        says="You read the padding and skip the words. In this course `True` means *may attend*; "
        "`nn.MultiheadAttention` has it the other way round.",
        answers=(wrong.polarity,),
    ),
    Mistake(
        id="zeroed_memory",
        says="You set padded memory vectors to zero, but their keys still take part: their score is 0, and "
        "exp(0) = 1 is no small weight. What must a score be for its weight to vanish?",
        answers=(wrong.zeroed_memory,),
    ),
    Mistake(
        id="tiny_fill",
        says="Padded keys still get weight: you fill their scores with a number near 0, and exp(0) = 1. Which "
        "score has a power of exactly 0? (1e-9 is small, -1e9 is low.)",
        answers=(wrong.tiny_fill, wrong.multiplied_scores),
    ),
    Mistake(
        id="mask_after_softmax",
        says="Padded keys get no weight, but the rest of the row no longer sums to 1: you mask after the "
        "softmax. Take the padded keys out before the weights are shared.",
        answers=(wrong.mask_after_softmax,),
    ),
    Mistake(
        id="nan_dead",
        says="Where the whole source is padding, your result is NaN: a softmax over nothing but −inf divides 0 "
        "by 0. By this course's convention a query that may see nothing gets zeros.",
        answers=(wrong.nan_dead,),
    ),
    Mistake(
        id="mean_of_dead",
        says="Where the whole source is padding, you return the mean of the padding: with −1e9 everywhere all "
        "scores are equal again. A query that may see nothing should get zeros.",
        answers=(wrong.mean_of_dead,),
    ),
    Mistake(
        id="needs_a_mask",
        says="Right with a mask, an exception without one: `memory_mask` may be None, and then the whole source "
        "is real.",
        answers=(wrong.needs_a_mask, wrong.inverts_no_mask),
    ),
    Mistake(
        id="softmax_over_queries",
        says="Each source word shares its weight among the target tokens. It is the target token that shares its "
        "attention among the source words: which axis must sum to 1?",
        answers=(wrong.softmax_over_queries,),
    ),
    Mistake(
        id="softmax_twice",
        says="You take the softmax twice: the second one makes the weights almost equal, and gives padding some, "
        "since exp(0) = 1. Once is enough.",
        answers=(wrong.softmax_twice,),
    ),
    Mistake(
        id="no_softmax",
        says="Your scores are used as weights as they are: some are negative and no row sums to 1. What turns "
        "scores into shares?",
        answers=(wrong.no_softmax,),
    ),
    Mistake(
        id="no_scale",
        says="Your weights are sharper than they should be, as if each score were √d_head too large. What does "
        "the paper divide by?",
        answers=(wrong.no_scale,),
    ),
    Mistake(
        id="scale_d_model",
        says="Your weights are flatter than they should be: you scale by √d_model, but a head's queries and keys "
        "have only d_model / n_heads features.",
        answers=(wrong.scale_d_model,),
    ),
    Mistake(
        id="one_head",
        says="Your result does not depend on `n_heads`: one wide head does all the looking. Cut queries, keys "
        "and values into heads before comparing them.",
        answers=(wrong.one_head,),
    ),
    Mistake(
        id="no_output_map",
        says="You return the heads side by side. One linear map is missing after they are merged.",
        answers=(wrong.no_output_map,),
    ),
    Mistake(
        id="weights_transposed",
        says="You multiply by the weights the wrong way round. They are stored as in `nn.Linear`, one row for "
        "each output; being square they raise no error.",
        answers=(wrong.weights_transposed,),
    ),
    Mistake(
        id="keys_and_values_exchanged",
        says="`w_key` and `w_value` have changed places: you compare by what should be handed over, and hand "
        "over what should be compared.",
        answers=(wrong.keys_and_values_exchanged,),
    ),
    Mistake(
        id="residual_inside",
        says="Your output is mine plus `hidden`. The residual connection belongs to the layer around this function.",
        answers=(wrong.residual_inside,),
    ),
    Mistake(
        id="mean_of_memory",
        says="Every target token gets the same mean of the source, whatever it asks: your queries have no "
        "effect. That is the fixed vector which attention was invented to replace.",
        answers=(wrong.mean_of_memory,),
    ),
)
