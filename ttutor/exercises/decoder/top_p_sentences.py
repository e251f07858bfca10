"""What a tutor says to each known mistake in top-p filtering."""

from ttutor.exercises.decoder import top_p_mistakes as wrong
from ttutor.exercises.exercise import Mistake

__all__ = ["MISTAKES"]

MISTAKES = (
    Mistake(
        id="drops_crossing_token",
        says="What you keep holds less than `p`: the token with which the sum crosses `p` must stay. Where the "
        "best token alone has more than `p`, its own sum is too large already, and nothing at all would be kept.",
        answers=(wrong.drops_crossing_token, wrong.drops_crossing_token_but_one),
    ),
    Mistake(
        id="keeps_one_too_many",
        says="You keep one token too many: without your least probable one the sum would reach `p` as well. "
        "Which sum decides about a token, with or without its own share?",
        answers=(wrong.keeps_one_too_many,),
    ),
    Mistake(
        id="always_keeps_two",
        says="Right unless the model is sure: where the best token alone has more than `p`, it is the whole "
        "nucleus, and you keep a second one.",
        answers=(wrong.always_keeps_two,),
    ),
    Mistake(
        id="not_unsorted",
        says="Your probabilities come out in sorted order, so that entry 0 is always the largest. Entry i must "
        "belong to token i: how do you get back?",
        answers=(wrong.not_unsorted,),
    ),
    Mistake(
        id="gathered_by_order",
        says="The right probabilities stand at the wrong tokens: you go through the sorting a second time "
        "instead of undoing it. Which permutation undoes another?",
        answers=(wrong.gathered_by_order,),
    ),
    Mistake(
        id="mask_not_unsorted",
        says="You keep the first tokens of the vocabulary, not the most probable ones: what you drop is counted "
        "in sorted order and applied in the order of tokens.",
        answers=(wrong.mask_not_unsorted,),
    ),
    Mistake(
        id="not_sorted",
        says="You add up the probabilities in the order of the vocabulary, so that a token's fate depends on its "
        "id. In which order must they be added for the set to be the smallest?",
        answers=(wrong.not_sorted,),
    ),
    Mistake(
        id="sorted_upwards",
        says="You keep the least probable tokens and drop the best: the sum starts from the wrong end. Which way "
        "does `sort` sort?",
        answers=(wrong.sorted_upwards,),
    ),
    Mistake(
        id="temp_multiplied",
        says="A higher temperature should flatten the distribution; yours sharpens it. Do you multiply or divide?",
        answers=(wrong.temp_multiplied,),
    ),
    Mistake(
        id="temp_ignored",
        says="`temperature` has no effect. Either it is not used, or the probabilities are divided by it and "
        "then renormalised, which cancels. It must act before the exponential.",
        answers=(wrong.temp_ignored, wrong.temp_on_probabilities),
    ),
    Mistake(
        id="temp_after_cut",
        says="You choose the tokens at temperature 1 and apply the temperature afterwards. Here the temperature "
        "comes first: the nucleus is cut from the distribution that it has made.",
        answers=(wrong.temp_after_cut,),
    ),
    Mistake(
        id="temp_for_cut_only",
        says="You choose the right tokens, but give them their probabilities at temperature 1. Both steps work "
        "on one distribution: have you two of them?",
        answers=(wrong.temp_for_cut_only,),
    ),
    Mistake(
        id="not_renormalised",
        says="The right tokens are kept, but their probabilities do not sum to 1: what the dropped ones had is "
        "missing. Who gets it?",
        answers=(wrong.not_renormalised,),
    ),
    Mistake(
        id="softmax_of_probabilities",
        says="The right tokens are kept, but they have become almost equally probable: you take the softmax of "
        "probabilities, where it expects logits.",
        answers=(wrong.softmax_of_probabilities,),
    ),
    Mistake(
        id="zeroed_logits",
        says="Dropped tokens still have probability: you set their logits to 0, and exp(0) = 1. Which logit has "
        "a probability of exactly 0?",
        answers=(wrong.zeroed_logits,),
    ),
    Mistake(
        id="returns_logits",
        says="You return logits, −inf for the dropped tokens. The exercise asks for probabilities: one step is "
        "missing.",
        answers=(wrong.returns_logits,),
    ),
    Mistake(
        id="returns_log_probabilities",
        says="None of your numbers is above 0: these are log-probabilities. The exercise asks for the "
        "probabilities themselves.",
        answers=(wrong.returns_log_probabilities,),
    ),
    Mistake(
        id="renormalised_over_batch",
        says="Right for a single distribution. In a batch you divide by the sum over all rows; each row should "
        "sum to 1 by itself.",
        answers=(wrong.renormalised_over_batch, wrong.renormalised_over_all),
    ),
    Mistake(
        id="evenly_shared",
        says="The right tokens are kept, but all with one probability. Among themselves they should keep their "
        "proportions.",
        answers=(wrong.evenly_shared,),
    ),
    Mistake(
        id="above_p",
        says="You keep the tokens whose own probability is at least `p`, often none at all. `p` is the share "
        "that the kept ones must have together.",
        answers=(wrong.above_p, wrong.above_p_or_nothing),
    ),
    Mistake(
        id="min_p",
        says="You compare each token with the best one, as min-p sampling does. Top-p adds the best ones up "
        "until they hold `p` together.",
        answers=(wrong.min_p,),
    ),
    Mistake(
        id="share_of_the_vocabulary",
        says="You keep a share `p` of the tokens, as many for a sure model as for an unsure one: that is top-k "
        "in disguise. `p` is a share of the probability.",
        answers=(wrong.share_of_the_vocabulary,),
    ),
    Mistake(
        id="unstable",
        says="Right for small logits, NaN for logits in the hundreds: the exponential overflows. Taking a "
        "constant off all logits of a row changes nothing; which constant helps?",
        answers=(wrong.unstable,),
    ),
    Mistake(
        id="nothing_dropped",
        says="Every token still has some probability: `p` has no effect on your result.",
        answers=(wrong.nothing_dropped,),
    ),
    Mistake(
        id="greedy",
        says="All probability goes to the best token. That is greedy decoding, whatever `p` is; or you keep the others "
        "only where their own probability reaches `p`, which is what the kept ones must have together.",
        answers=(wrong.greedy, wrong.above_p_or_the_best),
    ),
    Mistake(
        id="inplace",
        says="Your result is right, but the logits were edited on the way, by `/=` or by an assignment to part "
        "of them. The next filter would get what you have left of them.",
        answers=(wrong.inplace,),
    ),
)
