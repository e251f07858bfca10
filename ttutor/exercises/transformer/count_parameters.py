"""Exercise: the parameters of a Transformer, from its sizes alone."""

from ttutor.exercises.exercise import Case, Exercise, Mistake, Property, Trial
from ttutor.transformer import TransformerConfig, account


def count_parameters(vocab_size: int, d_model: int, d_ff: int, n_layers: int) -> int:
    """The parameters of a Transformer of 2017: so many layers in each stack, and one table for all three uses."""
    ...


def solution(vocab_size: int, d_model: int, d_ff: int, n_layers: int) -> int:
    """The parameters of a Transformer of 2017: so many layers in each stack, and one table for all three uses."""
    attention = 4 * (d_model * d_model + d_model)
    feed_forward = d_model * d_ff + d_ff + d_ff * d_model + d_model
    norm = 2 * d_model
    encoder_layer = attention + feed_forward + 2 * norm
    decoder_layer = 2 * attention + feed_forward + 3 * norm
    return n_layers * (encoder_layer + decoder_layer) + vocab_size * d_model


def reference(vocab_size, d_model, d_ff, n_layers):
    """The package's account; the number of heads changes nothing."""
    sizes = {"d_model": d_model, "d_ff": d_ff, "n_layers": n_layers, "n_heads": 1}
    return account(TransformerConfig(vocab_size=vocab_size, **sizes)).n_parameters


def _counted(
    vocab_size,
    d_model,
    d_ff,
    n_layers,
    *,
    encoder_attentions=1,
    decoder_attentions=2,
    maps=4,
    biases=1,
    norms=5,
    gains=2,
    tables=1,
    stacks=2,
    more=0,
):
    """The sum with parts that can be miscounted."""
    attentions = encoder_attentions + (decoder_attentions if stacks == 2 else 0)
    attention = maps * (d_model**2 + biases * d_model)
    feed_forward = 2 * d_model * d_ff + biases * (d_ff + d_model)
    layers = n_layers * (attentions * attention + stacks * feed_forward + norms * gains * d_model)
    return layers + tables * vocab_size * d_model + more


def rule_of_thumb(vocab_size, d_model, d_ff, n_layers):
    return 12 * d_model**2 * 2 * n_layers + vocab_size * d_model


def layers_only(vocab_size, d_model, d_ff, n_layers):
    return _counted(vocab_size, d_model, d_ff, n_layers, tables=0)


def no_cross_attention(vocab_size, d_model, d_ff, n_layers):
    return _counted(vocab_size, d_model, d_ff, n_layers, decoder_attentions=1, norms=4)


def cross_attention_without_norm(vocab_size, d_model, d_ff, n_layers):
    return _counted(vocab_size, d_model, d_ff, n_layers, norms=4)


def cross_attention_without_matrices(vocab_size, d_model, d_ff, n_layers):
    return _counted(vocab_size, d_model, d_ff, n_layers, decoder_attentions=1)


def no_output_matrix(vocab_size, d_model, d_ff, n_layers):
    return _counted(vocab_size, d_model, d_ff, n_layers, maps=3)


def no_biases(vocab_size, d_model, d_ff, n_layers):
    return _counted(vocab_size, d_model, d_ff, n_layers, biases=0)


def no_norms(vocab_size, d_model, d_ff, n_layers):
    return _counted(vocab_size, d_model, d_ff, n_layers, norms=0)


def gains_only(vocab_size, d_model, d_ff, n_layers):
    return _counted(vocab_size, d_model, d_ff, n_layers, gains=1)


def last_norms(vocab_size, d_model, d_ff, n_layers):
    return _counted(vocab_size, d_model, d_ff, n_layers, more=4 * d_model)


def two_tables(vocab_size, d_model, d_ff, n_layers):
    return _counted(vocab_size, d_model, d_ff, n_layers, tables=2)


def three_tables(vocab_size, d_model, d_ff, n_layers):
    return _counted(vocab_size, d_model, d_ff, n_layers, tables=3)


def output_bias(vocab_size, d_model, d_ff, n_layers):
    return _counted(vocab_size, d_model, d_ff, n_layers, more=vocab_size)


def encoder_only(vocab_size, d_model, d_ff, n_layers):
    return _counted(vocab_size, d_model, d_ff, n_layers, stacks=1, norms=2)


def layers_shared_out(vocab_size, d_model, d_ff, n_layers):
    return _counted(vocab_size, d_model, d_ff, n_layers / 2)


def four_times_as_wide(vocab_size, d_model, d_ff, n_layers):
    return _counted(vocab_size, d_model, 4 * d_model, n_layers)


def one_layer(vocab_size, d_model, d_ff, n_layers):
    return _counted(vocab_size, d_model, d_ff, 1)


def _grows_with_the_vocabulary(trial: Trial) -> str | None:
    vocab_size, d_model, d_ff, n_layers = trial.inputs
    step = trial.run(vocab_size + 1, d_model, d_ff, n_layers) - trial.value
    return None if step == d_model else f"One more token adds {step:,} parameters to yours; d_model is {d_model}."


def _grows_with_the_layers(trial: Trial) -> str | None:
    vocab_size, d_model, d_ff, n_layers = trial.inputs
    step = trial.run(vocab_size, d_model, d_ff, n_layers + 1) - trial.value
    wanted = 12 * d_model**2 + 4 * d_model * d_ff + 24 * d_model + 2 * d_ff
    if step == wanted:
        return None
    return f"One more layer in each stack adds {step:,} to yours, {step / wanted:.1%} of what it adds to the model."


def _starts_at_the_table(trial: Trial) -> str | None:
    vocab_size, d_model, d_ff, n_layers = trial.inputs
    step = trial.run(vocab_size, d_model, d_ff, n_layers + 1) - trial.value
    rest = trial.value - n_layers * step - vocab_size * d_model
    return None if rest == 0 else f"Besides layers and table there are {rest:,} parameters in yours."


EXERCISES = (
    Exercise(
        id="transformer.count_parameters",
        title="Every parameter of a translator",
        statement=r"""Count the parameters of a Transformer as in 2017, without building it: `n_layers` layers in each
of the two stacks, post-norm, with no norm after the last layer. Every linear map inside the layers adds a bias. Each
norm has a gain and a bias. The positions have no parameters. Source, target and output projection share one table, and
the projection adds no bias. Do not rely on $d_\mathrm{ff} = 4\,d_\mathrm{model}$.""",
        stub=count_parameters,
        reference=reference,
        solution=solution,
        explanation=r"Per pair of layers this is $12d^2 + 4\,d\,d_\mathrm{ff} + 24d + 2\,d_\mathrm{ff}$, three "
        r"attentions and two feed-forward networks, and the table once. Why the number of heads does not occur: the "
        r"heads divide the matrices among themselves and add nothing.",
        cases=(Case(name="a width of 10 and an inner width of 34", inputs=lambda random: (97, 10, 34, 3)),),
        hints=(
            "How many attentions, feed-forward networks and norms has a layer of each stack?",
            "Write one line for each kind of part, then one line for each kind of layer, then the sum.",
            (
                "An attention is four square maps with biases. A decoder layer has one attention and one norm more "
                "than an encoder layer. The table counts once, however often it is used."
            ),
        ),
        mistakes=(
            Mistake(
                id="rule_of_thumb",
                says="You apply the rule of thumb to both stacks. It knows no cross-attention, no biases and no norms, "
                "and takes the inner width to be four times the width.",
                answers=(rule_of_thumb,),
            ),
            Mistake(
                id="layers_only",
                says="Your layers are right, and the table of embeddings is missing.",
                answers=(layers_only,),
            ),
            Mistake(
                id="no_cross_attention",
                says="Your decoder layers are encoder layers. Which sublayer do they have besides?",
                answers=(no_cross_attention,),
            ),
            Mistake(
                id="cross_attention_without_norm",
                says="The matrices are all there, but a decoder layer has three sublayers, and each has a norm.",
                answers=(cross_attention_without_norm,),
            ),
            Mistake(
                id="cross_attention_shared",
                says="Your decoder has the norm of its cross-attention and not the matrices. They are its own, not "
                "those of its self-attention.",
                answers=(cross_attention_without_matrices,),
            ),
            Mistake(
                id="no_output_matrix",
                says="You count three maps in an attention. What brings the heads together again?",
                answers=(no_output_matrix,),
            ),
            Mistake(
                id="no_biases",
                says="Matrices only: here every linear map inside the layers adds a bias as wide as its output.",
                answers=(no_biases,),
            ),
            Mistake(
                id="no_norms",
                says="The norms have parameters, too, a gain and a bias for each feature.",
                answers=(no_norms,),
            ),
            Mistake(
                id="gains_only",
                says="You count a gain for each norm, as for an RMSNorm; a LayerNorm has a bias besides.",
                answers=(gains_only,),
            ),
            Mistake(
                id="last_norms",
                says="You add a norm at the end of each stack. That is the pre-norm model; this one is post-norm.",
                answers=(last_norms,),
            ),
            Mistake(
                id="two_tables",
                says="You count two tables: one too many. All uses share one and the same.",
                answers=(two_tables,),
            ),
            Mistake(
                id="three_tables",
                says="You count a table for source, target and output each; they are one and the same.",
                answers=(three_tables,),
            ),
            Mistake(
                id="output_bias",
                says="You have one number too many for each token: the output projection adds no bias here.",
                answers=(output_bias,),
            ),
            Mistake(
                id="encoder_only",
                says="One stack is missing: you count the encoder and the table.",
                answers=(encoder_only,),
            ),
            Mistake(
                id="layers_shared_out",
                says="You share the layers out over the two stacks. The paper's six are six in each.",
                answers=(layers_shared_out,),
            ),
            Mistake(
                id="four_times_as_wide",
                says="You take the inner width to be four times the width. It was given.",
                answers=(four_times_as_wide,),
            ),
            Mistake(
                id="one_layer",
                says="Right for one layer in each stack; each further layer has parameters of its own.",
                answers=(one_layer,),
            ),
        ),
        properties=(
            Property(
                id="grows_with_the_vocabulary",
                says="Each token of the vocabulary has one row of the table, and nothing else.",
                broken=_grows_with_the_vocabulary,
            ),
            Property(
                id="grows_with_the_layers",
                says="One more layer in each stack adds an encoder layer and a decoder layer: count those two alone.",
                broken=_grows_with_the_layers,
            ),
            Property(
                id="starts_at_the_table",
                says="A model is its layers and its table: what else do you count?",
                broken=_starts_at_the_table,
            ),
        ),
        forbids=("account", "Transformer"),
        difficulty=2,
        minutes=15,
        section="07-transformer",
        rtol=1e-9,
    ),
)
