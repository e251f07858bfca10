"""What a tutor says to each known mistake in LayerNorm."""

from ttutor.exercises.encoder import layer_norm_mistakes as wrong
from ttutor.exercises.exercise import Mistake

__all__ = ["MISTAKES"]

MISTAKES = (
    Mistake(
        id="wrong_dim",
        says="You average over tokens, so that each token's result depends on its neighbours. LayerNorm looks at "
        "one token at a time: which axis holds a token's features?",
        answers=(wrong.wrong_dim,),
    ),
    Mistake(
        id="all_dims",
        says="You take one mean for each whole sequence. There should be one for each token: how many axes may "
        "the average run over?",
        answers=(wrong.all_dims,),
    ),
    Mistake(
        id="whole_batch",
        says="Each feature is normalised over all tokens of the batch: that is BatchNorm. In LayerNorm the "
        "features of one token share a mean, and tokens share nothing.",
        answers=(wrong.whole_batch,),
    ),
    Mistake(
        id="third_axis",
        says="Right for `batch tokens d_model`, and an exception without the batch: you count the axes from the "
        "front. The features are the last axis however many there are; how does Python count from the end?",
        answers=(wrong.third_axis,),
    ),
    Mistake(
        id="second_axis",
        says="Right for a single sequence; in a batch you average over its tokens, since axis 1 is another axis "
        "then. How do you name the last axis, whatever comes before it?",
        answers=(wrong.second_axis,),
    ),
    Mistake(
        id="no_keepdim",
        says="The mean has lost the axis it was taken over, so that it lines up with the wrong one, or with "
        "none. Print its shape beside that of `hidden`, and look at `keepdim`.",
        answers=(wrong.no_keepdim,),
    ),
    Mistake(
        id="unbiased",
        says="Your results are too small by the factor √((d−1)/d), with d features: `torch.var` and `torch.std` "
        "divide by d−1 unless told otherwise. The exercise asks for the plain mean of squares.",
        answers=(wrong.unbiased,),
    ),
    Mistake(
        id="eps_outside",
        says="Right at ordinary sizes, too small for tiny numbers: you add eps to the standard deviation. In the "
        "formula it is added to the variance. On which side of the root is that?",
        answers=(wrong.eps_outside,),
    ),
    Mistake(
        id="no_eps",
        says="A token whose features are all equal gives 0/0, which is NaN, and tiny numbers come out too large. "
        "What is eps there for?",
        answers=(wrong.no_eps,),
    ),
    Mistake(
        id="eps_ignored",
        says="Your result does not depend on eps: it is right for one value of it only. Is there a number in "
        "your code where the argument should stand?",
        answers=(wrong.eps_ignored,),
    ),
    Mistake(
        id="eps_as_a_floor",
        says="Your eps acts only where the variance is smaller than it, as a floor. In the formula it is added, "
        "to every variance.",
        answers=(wrong.eps_as_a_floor,),
    ),
    Mistake(
        id="no_sqrt",
        says="You divide by the variance. Double the input: the result should stay, yours is halved. What has "
        "the unit of the features, the variance or its root?",
        answers=(wrong.no_sqrt,),
    ),
    Mistake(
        id="no_affine",
        says="`gain` and `bias` have no effect: you return the normalised vector itself. What does the formula "
        "do with it next?",
        answers=(wrong.no_affine,),
    ),
    Mistake(
        id="no_gain",
        says="`gain` has no effect on your result, `bias` has. Where does the gain stand in the formula?",
        answers=(wrong.no_gain,),
    ),
    Mistake(
        id="no_bias",
        says="`bias` has no effect on your result, `gain` has. What is still to be added?",
        answers=(wrong.no_bias,),
    ),
    Mistake(
        id="affine_order",
        says="Your bias is multiplied by the gain. Scale first, then shift: check where a pair of brackets closes.",
        answers=(wrong.affine_order,),
    ),
    Mistake(
        id="affine_first",
        says="You apply gain and bias before normalising, which takes most of their effect away again. They are "
        "the last step, or no token could ever have another mean than 0.",
        answers=(wrong.affine_first,),
    ),
    Mistake(
        id="gain_plus_one",
        says="Your result is what a gain larger by 1 would give. Some models store the gain as its distance from "
        "1; here it is the factor itself.",
        answers=(wrong.gain_plus_one,),
    ),
    Mistake(
        id="rmsnorm",
        says="That is RMSNorm: the mean is never removed, neither above the fraction nor in the root. What does "
        "LayerNorm subtract first?",
        answers=(wrong.rmsnorm,),
    ),
    Mistake(
        id="mean_square",
        says="You centre the vector above the fraction and not below it: the root holds the mean of the raw "
        "squares. The variance is the mean square of what is left after centring.",
        answers=(wrong.mean_square,),
    ),
    Mistake(
        id="mean_kept",
        says="You divide by the right standard deviation, but the mean is still in the vector. What stands above "
        "the fraction?",
        answers=(wrong.mean_kept,),
    ),
    Mistake(
        id="unit_length",
        says="Your vectors have length 1, and so shrink as the width grows. You have summed the squares; the "
        "variance is their mean.",
        answers=(wrong.unit_length,),
    ),
    Mistake(
        id="mean_distance",
        says="You divide by the mean distance from the mean, without squares and root. LayerNorm divides by the "
        "standard deviation.",
        answers=(wrong.mean_distance,),
    ),
    Mistake(
        id="zero_to_one",
        says="You stretch each vector to the range from 0 to 1. LayerNorm sets its mean and its variance, and "
        "leaves the range open.",
        answers=(wrong.zero_to_one,),
    ),
    Mistake(
        id="difference_of_squares",
        says="Right near zero, wrong far from it: the mean of squares minus the square of the mean is a small "
        "difference of huge numbers, and rounding eats it. Of what can you take the squares instead?",
        answers=(wrong.difference_of_squares, wrong.clamped_difference_of_squares),
    ),
    Mistake(
        id="casts_to_float32",
        says="Your numbers are right, but a float64 input comes back as float32. A layer should answer in the "
        "dtype that it is asked in: where do you name one?",
        answers=(wrong.casts_to_float32,),
    ),
    Mistake(
        id="inplace",
        says="Your result is right, but `hidden` was changed. An operator such as `-=` edits the caller's data; "
        "in a residual layer the stream would be lost.",
        answers=(wrong.inplace,),
    ),
    Mistake(
        id="detached",
        says="The values are right, the gradients are not: mean and variance are treated as constants, though "
        "they depend on the input. Look for `.detach()`, `.item()` or `no_grad`.",
        answers=(wrong.detached,),
    ),
    Mistake(
        id="deviation_squared",
        says="The values are right, but the gradient of a constant token is NaN: the slope of a root at 0 is "
        "infinite. You take a root only to square it again; what could you take at once?",
        answers=(wrong.deviation_squared,),
    ),
)
