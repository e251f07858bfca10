"""Exercise: the parameters of a Transformer with stacks of different heights, from its sizes alone."""

import torch

from ttutor.decoder import Decoder
from ttutor.encoder import Encoder
from ttutor.exercises.draws import drawn, one_of
from ttutor.exercises.exercise import Case, Exercise, Trial


def count_parameters(
    vocab_size: int, d_model: int, d_ff: int, n_encoder_layers: int, n_decoder_layers: int, tied: bool
) -> int:
    """The parameters of a Transformer whose stacks may differ in height, and whose output table may be its own."""
    attention = 4 * (d_model * d_model + d_model)
    feed_forward = d_model * d_ff + d_ff + d_ff * d_model + d_model
    norm = 2 * d_model
    encoder_layer = attention + feed_forward + 2 * norm
    decoder_layer = 2 * attention + feed_forward + 3 * norm
    tables = 1 if tied else 2
    return n_encoder_layers * encoder_layer + n_decoder_layers * decoder_layer + tables * vocab_size * d_model


def reference(vocab_size, d_model, d_ff, n_encoder_layers, n_decoder_layers, tied):
    """The package's stacks, built without numbers and counted; the number of heads changes nothing."""
    sizes = {"d_model": d_model, "n_heads": 1, "d_ff": d_ff}
    with torch.device("meta"):
        stacks = Encoder(n_layers=n_encoder_layers, **sizes), Decoder(n_layers=n_decoder_layers, **sizes)
    in_stacks = sum(parameter.numel() for stack in stacks for parameter in stack.parameters())
    return in_stacks + (1 if tied else 2) * vocab_size * d_model


def _sizes(random):
    """Vocabulary, width and inner width, the last not four times the one before."""
    return one_of(random, (79, 83, 89, 97)), one_of(random, (10, 12, 14)), drawn(random, 26, 28)


exercise = Exercise(
    id="transformer.count_parameters",
    title="Every parameter of an uneven translator",
    statement=r"""The chapter's formula has as many layers in both stacks, and one table. Some translators have a
deep encoder, which runs once, and a shallow decoder, which runs for every token. Count the parameters of such a model
without building it: post-norm, with no norm after the last layer; every linear map inside the layers adds a bias;
each norm has a gain and a bias; the positions have no parameters. Source and target are embedded by one table, which is
the output projection's, too, where `tied` is true; where it is not, the projection has a table of its own. The
projection adds no bias. Do not rely on $d_\mathrm{ff} = 4\,d_\mathrm{model}$.""",
    reference=reference,
    solution=count_parameters,
    explanation=r"An encoder layer has $4d^2 + 2\,d\,d_\mathrm{ff} + 9d + d_\mathrm{ff}$ parameters, a decoder "
    r"layer $4d^2 + 6d$ more, so that moving a layer from the decoder to the encoder saves parameters. A question "
    r"that the formula does not answer: with tables of their own for source, target and output it would be "
    r"$2\,\lvert V\rvert\,d$ more than tied. "
    r"Why the number of heads does not occur: the heads divide the matrices among themselves and add nothing.",
    cases=(
        Case(name="five layers and two, tied", inputs=lambda random: (*_sizes(random), 5, 2, True)),
        Case(name="two layers and three, untied", inputs=lambda random: (*_sizes(random), 2, 3, False)),
    ),
    hints="""
How many attentions, feed-forward networks and norms has a layer of each stack?

Write one line for each kind of part, then one line for each kind of layer, then the sum.

An attention is four square maps with biases. A decoder layer has one attention and one norm more than an encoder layer.
There is one table if tied, and two if not.
""",
    forbids=("account", "Transformer", "Encoder", "Decoder"),
    difficulty=2,
    minutes=15,
    section="07-transformer",
    rtol=1e-9,
)

exercise.mutations("""
rule_of_thumb: "encoder_layer = attention + feed_forward + 2 * norm" -> "encoder_layer = 12 * d_model**2",
  "2 * attention + feed_forward + 3 * norm" -> "encoder_layer"
    You apply the rule of thumb to both stacks. It knows no cross-attention, no biases and no norms, and takes the inner
    width to be four times the width.
layers_only: " + tables * vocab_size * d_model" -> ""
    Your layers are right, and the table of embeddings is missing.
no_cross_attention: "2 * attention + feed_forward + 3 * norm" -> "encoder_layer"
    Your decoder layers are encoder layers. Which sublayer do they have besides?
cross_attention_without_norm: "3 * norm" -> "2 * norm"
    The matrices are all there, but a decoder layer has three sublayers, and each has a norm.
no_output_matrix: "attention = 4" -> "attention = 3"
    You count three maps in an attention. What brings the heads together again?
no_biases: "(d_model * d_model + d_model)" -> "d_model * d_model",
  " + d_ff + d_ff * d_model + d_model" -> " + d_ff * d_model"
    Matrices only: here every linear map inside the layers adds a bias as wide as its output.
no_norms: "norm = 2 * d_model" -> "norm = 0"
    The norms have parameters, too, a gain and a bias for each feature.
always_two_tables: "1 if tied else 2" -> "2"
    You count two tables in every case. Where the projection is tied it has none of its own.
a_table_for_each_use: "else 2" -> "else 3"
    Untied, you count a table for source, target and output each; source and target share one.
output_bias: "+ tables * vocab_size * d_model" -> "+ tables * vocab_size * d_model + vocab_size"
    You have one number too many for each token: the output projection adds no bias here.
""")


@exercise.must_hold("Each token of the vocabulary has one row in each table, and nothing else.")
def grows_with_the_vocabulary(trial: Trial) -> str | None:
    vocab_size, *others, tied = trial.inputs
    step = trial.run(vocab_size + 1, *others, tied) - trial.value
    wanted = (1 if tied else 2) * others[0]
    return None if step == wanted else f"One more token adds {step:,} parameters to yours, not {wanted:,}."


@exercise.must_hold("One more encoder layer adds an attention, a feed-forward network and two norms: count it alone.")
def grows_with_the_encoder(trial: Trial) -> str | None:
    vocab_size, d_model, d_ff, n_encoder_layers, n_decoder_layers, tied = trial.inputs
    step = trial.run(vocab_size, d_model, d_ff, n_encoder_layers + 1, n_decoder_layers, tied) - trial.value
    wanted = 4 * d_model**2 + 2 * d_model * d_ff + 9 * d_model + d_ff
    return None if step == wanted else f"One more encoder layer adds {step:,} to yours, {step / wanted:.1%} of it."


@exercise.must_hold(
    "One more decoder layer adds two attentions, a feed-forward network and three norms: count it alone."
)
def grows_with_the_decoder(trial: Trial) -> str | None:
    vocab_size, d_model, d_ff, n_encoder_layers, n_decoder_layers, tied = trial.inputs
    step = trial.run(vocab_size, d_model, d_ff, n_encoder_layers, n_decoder_layers + 1, tied) - trial.value
    wanted = 8 * d_model**2 + 2 * d_model * d_ff + 15 * d_model + d_ff
    return None if step == wanted else f"One more decoder layer adds {step:,} to yours, {step / wanted:.1%} of it."


@exercise.must_hold("A model is its layers and its tables: what else do you count?")
def starts_at_the_tables(trial: Trial) -> str | None:
    rest = trial.value - reference(*trial.inputs)
    return None if rest == 0 else f"The layers grow as they should; besides, yours has {rest:+,} parameters."
