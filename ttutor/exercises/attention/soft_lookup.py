"""Exercise: a lookup with a temperature."""

import torch
from einops import einsum, rearrange
from jaxtyping import Float
from torch import Tensor

from ttutor.attention import scaled_dot_product_attention
from ttutor.exercises.exercise import Case, Exercise, Mistake, Property, Trial


def soft_lookup(
    query: Float[Tensor, " d_head"],
    key: Float[Tensor, "keys d_head"],
    value: Float[Tensor, "keys d_value"],
    temperature: float,
) -> Float[Tensor, " d_value"]:
    """The blend of values that one query receives; at a low temperature, the value of the best key."""
    ...


def solution(
    query: Float[Tensor, " d_head"],
    key: Float[Tensor, "keys d_head"],
    value: Float[Tensor, "keys d_value"],
    temperature: float,
) -> Float[Tensor, " d_value"]:
    """The blend of values that one query receives; at a low temperature, the value of the best key."""
    scores = einsum(query, key, "d_head, keys d_head -> keys") / temperature
    powers = (scores - scores.max()).exp()
    return einsum(powers / powers.sum(), value, "keys, keys d_value -> d_value")


def reference(query, key, value, temperature):
    return scaled_dot_product_attention(rearrange(query, "d_head -> 1 d_head"), key, value, scale=1 / temperature)[0]


def _blend(weights, value):
    return einsum(weights, value, "keys, keys d_value -> d_value")


def largest_score_stays(query, key, value, temperature):
    powers = (key @ query / temperature).exp()
    return _blend(powers / powers.sum(), value)


def not_a_number_made_zero(query, key, value, temperature):
    powers = (key @ query / temperature).exp()
    return _blend((powers / powers.sum()).nan_to_num(), value)


def scores_cut_off(query, key, value, temperature):
    return _blend((key @ query / temperature).clamp(-50, 50).softmax(dim=0), value)


def also_scaled(query, key, value, temperature):
    return _blend((key @ query / temperature / len(query) ** 0.5).softmax(dim=0), value)


def best_key_alone(query, key, value, temperature):
    return value[(key @ query).argmax()]


def temperature_left_out(query, key, value, temperature):
    return _blend((key @ query).softmax(dim=0), value)


def temperature_multiplies(query, key, value, temperature):
    return _blend((key @ query * temperature).softmax(dim=0), value)


def weights_returned(query, key, value, temperature):
    return (key @ query / temperature).softmax(dim=0)


def not_divided(query, key, value, temperature):
    scores = key @ query / temperature
    return _blend((scores - scores.max()).exp(), value)


def lowest_first(query, key, value, temperature):
    return _blend((-(key @ query) / temperature).softmax(dim=0), value)


def distance_as_score(query, key, value, temperature):
    return _blend((-(key - query).square().sum(dim=1) / temperature).softmax(dim=0), value)


def _outside_the_values(trial: Trial) -> str | None:
    value = trial.inputs[2]
    beyond = torch.maximum(trial.value - value.amax(dim=0), value.amin(dim=0) - trial.value)
    worst = int(beyond.argmax())
    if beyond[worst] < 1e-6:
        return None
    return f"Feature {worst} of your result lies outside the range of that feature in all values."


def _numbers(random, *shape):
    return torch.randn(*shape, generator=random, dtype=torch.float64)


def _far_apart(random):
    """Keys whose scores lie far apart at a low temperature; the best is not the nearest to the query."""
    query, key = _numbers(random, 3), _numbers(random, 5, 3)
    along = torch.tensor([[0.5], [9.0], [-1.0], [2.0], [-4.0]], dtype=torch.float64)
    across = key - (key @ query)[:, None] * query / query.square().sum()
    return query, across + along * query / query.square().sum(), _numbers(random, 5, 2), 1e-6


EXERCISES = (
    Exercise(
        id="attention.soft_lookup",
        title="A dictionary with a dial",
        statement="Write the lookup for a single query, with a temperature. The score is the plain dot "
        "product divided by the temperature. No softmax function, ours or PyTorch's; it must survive a temperature of "
        "$10^{-6}$, at which it looks up the value of the best key.",
        stub=soft_lookup,
        reference=reference,
        solution=solution,
        explanation="Without the subtraction the powers are infinite, and infinity by infinity is NaN.",
        cases=(
            Case(
                name="a temperature of 0.7",
                inputs=lambda random: (_numbers(random, 3), _numbers(random, 5, 3), _numbers(random, 5, 2), 0.7),
            ),
            Case(name="a temperature of one millionth", inputs=_far_apart),
        ),
        hints=(
            "What is $e^{3 / 10^{-6}}$ in floating-point numbers?",
            (
                "The softmax does not change when the same number is subtracted from all scores. Which number makes "
                "the largest power 1?"
            ),
            (
                "Scores, minus their largest, exponentiate, divide by the sum: three lines, with the einsum "
                '`"keys, keys d_value -> d_value"` at the end.'
            ),
        ),
        mistakes=(
            Mistake(
                id="overflow",
                says="Right at 0.7, NaN at one millionth: a score of a million has an infinite power, and infinity by "
                "infinity is not a number. What may be subtracted from all scores without changing the weights?",
                answers=(largest_score_stays,),
            ),
            Mistake(
                id="overflow_hidden",
                says="At one millionth the best key gets no weight: its power was infinite, and what came of it has "
                "been turned into 0. The NaN is hidden, not avoided; keep the powers finite instead.",
                answers=(not_a_number_made_zero,),
            ),
            Mistake(
                id="scores_clamped",
                says="At one millionth several keys share the weight equally: you cut large scores off, and they "
                "became the same. Moving all scores by the same number keeps their differences.",
                answers=(scores_cut_off,),
            ),
            Mistake(
                id="scaled_by_width",
                says="Your weights are too even by a factor √d_head in the scores. Here the "
                "temperature alone divides them.",
                answers=(also_scaled,),
            ),
            Mistake(
                id="no_blend",
                says="You return the value of the best key at every temperature. That is the limit at zero; at 0.7 the "
                "other keys have their share.",
                answers=(best_key_alone,),
            ),
            Mistake(
                id="temperature_ignored",
                says="The temperature has no effect on your result. Which numbers does it divide, and at which moment?",
                answers=(temperature_left_out,),
            ),
            Mistake(
                id="temperature_multiplied",
                says="The lower the temperature, the more even your weights; it should be the other way round. Look at "
                "what you do to the scores with it.",
                answers=(temperature_multiplies,),
            ),
            Mistake(
                id="returns_weights",
                says="You return one number for each key: these are the weights. What is looked up is a blend of the "
                "values.",
                answers=(weights_returned,),
            ),
            Mistake(
                id="not_normalised",
                says="Your weights are in the right proportion and do not sum to 1, so the blend is too large. What is "
                "missing after the exponential?",
                answers=(not_divided,),
            ),
            Mistake(
                id="sign",
                says="The key that suits the query worst gets the most weight. Check the sign of the scores.",
                answers=(lowest_first,),
            ),
            Mistake(
                id="distance",
                says="You score a key by its distance from the query; the exercise asks for the dot product. The two "
                "agree only for keys of equal length.",
                answers=(distance_as_score,),
            ),
        ),
        properties=(
            Property(
                id="within_the_values",
                says="A blend of values lies between the smallest and the largest of them, feature by feature. Are "
                "your weights positive, and do they sum to 1?",
                broken=_outside_the_values,
            ),
        ),
        forbids=("softmax", "log_softmax", "softmin", "scaled_dot_product_attention", "attention_weights"),
        difficulty=1,
        minutes=15,
        section="02-attention",
    ),
)
