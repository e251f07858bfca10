"""Exercise: the logit lens, with the norm that is easily forgotten."""

import torch
from jaxtyping import Float
from torch import Tensor

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial


def lens_readings(
    streams: Float[Tensor, "layers tokens d_model"],
    gain: Float[Tensor, " d_model"],
    bias: Float[Tensor, " d_model"],
    unembedding: Float[Tensor, "vocab_size d_model"],
) -> Float[Tensor, "layers tokens vocab_size"]:
    """The probability of each word, read from the stream after each layer as if it were the last."""
    centred = streams - streams.mean(dim=-1, keepdim=True)
    spread = (centred.square().mean(dim=-1, keepdim=True) + 1e-5).sqrt()
    normalised = gain * centred / spread + bias
    return (normalised @ unembedding.T).softmax(dim=-1)


def reference(streams, gain, bias, unembedding):
    normalised = torch.nn.functional.layer_norm(streams, streams.shape[-1:], gain, bias, eps=1e-5)
    return (normalised @ unembedding.T).softmax(dim=-1)


def _streams(random):
    def normal(*shape):
        return torch.randn(*shape, generator=random, dtype=torch.float64)

    growing = torch.tensor([0.5, 2.0, 6.0, 9.0][: drawn(random, 3, 4)], dtype=torch.float64)[:, None, None]
    n_layers, n_tokens, d_model = len(growing), drawn(random, 5, 6), drawn(random, 8, 10)
    streams = growing * (normal(n_layers, n_tokens, d_model) + normal(n_layers, n_tokens, 1))
    return streams, 1 + 0.5 * normal(d_model), normal(d_model), 0.5 * normal(drawn(random, 11, 13), d_model)


exercise = Exercise(
    id="inside.lens_readings",
    title="The lens, from the stream to probabilities",
    statement="""
`streams` holds the residual stream of a pre-norm model after each of its layers. Read each of them as if it were the
last: through the model's final LayerNorm (`gain`, `bias`, and 1e-5 added to the variance), written out by you, through
the `unembedding` (one row a word), to probabilities over the words.
""".strip(),
    reference=reference,
    solution=lens_readings,
    explanation="""
Early streams are short and late ones long; the norm brings them to one length, so that "the model is sure only at the
end" cannot be an effect of length alone. It does not bring them into one *space*: gain, bias and unembedding were
trained for the last stream, and what an early one says through them is a reading, not a thought.
""".strip(),
    cases=(Case(name="streams of growing length", inputs=_streams),),
    hints="""
What does the model itself do between the last stream and the logits?

LayerNorm over the features of each token, for every layer on its own (its variance is divided by d_model, not by
d_model - 1); then one product, then a softmax.

Centre, divide by the root of variance plus 1e-5, times gain, plus bias; then against the rows of the unembedding; the
softmax runs over words.
""",
    forbids=("layer_norm", "LayerNorm", "logit_lens", "read_out"),
    difficulty=1,
    minutes=15,
    section="12-inside",
)

exercise.mutations(r"""
no_norm: "(normalised @" -> "(streams @"
    You read the stream without the final norm. Which layers then look sure of themselves, and why?
no_gain: "gain * centred" -> "centred"
    The norm's gain is not used.
no_bias: " + bias" -> ""
    The norm's bias is not used.
not_centred: "streams - streams.mean(dim=-1, keepdim=True)" -> "streams"
    You divide without taking the mean away: that is RMSNorm, and this model has LayerNorm.
variance: ".sqrt()" -> ""
    You divide by the variance. Ten times the stream should read the same, and does it?
over_the_tokens: "streams.mean(dim=-1" -> "streams.mean(dim=1", "square().mean(dim=-1" -> "square().mean(dim=1"
    Your norm runs over the tokens. Every token is normalised by itself.
last_one_normalised: "(normalised @" -> "(torch.cat([streams[:-1], normalised[-1:]]) @"
    Only the last stream went through the norm. The others should be read in the same way.
divisor_of_the_last: "/ spread" -> "/ spread[-1:]"
    You divide every stream by the spread of the last one. Each has its own.
logits: ".softmax(dim=-1)" -> ""
    These are logits. The last step is missing.
shared_over_tokens: "softmax(dim=-1)" -> "softmax(dim=1)"
    Your probabilities sum to one over the tokens, and they should over the words.
summed_streams: "centred = streams" -> "streams = streams.cumsum(dim=0)\n    centred = streams"
    You add up the streams of the layers. A stream already contains all earlier writes.
""")


@exercise.must_hold("For each token the words share one.")
def sums_to_one(trial: Trial) -> str | None:
    off = (trial.value.sum(dim=-1) - 1).abs().max().item()
    return None if off < 1e-4 else f"The sum over the words is off by up to {off:.3g}."


@exercise.must_hold("The norm takes the length of a stream away.")
def forgets_the_size(trial: Trial) -> str | None:
    streams, *rest = trial.inputs
    off = (trial.run(10 * streams, *rest) - trial.value).abs().max().item()
    return None if off < 1e-3 else f"Streams ten times as long move your probabilities by up to {off:.3g}."
