"""What a tutor says to each known mistake in decoding with a key/value cache."""

from ttutor.exercises.decoder import key_value_cache_mistakes as wrong
from ttutor.exercises.exercise import Mistake

__all__ = ["MISTAKES"]

MISTAKES = (
    Mistake(
        id="pos0",
        says="Right for the prompt, wrong from then on: each new call counts positions from 0 again. How long is "
        "the cache already?",
        answers=(wrong.pos0,),
    ),
    Mistake(
        id="pos_plus_1",
        says="Your positions are one too high: with nothing in the cache, the first token stands at position 0.",
        answers=(wrong.pos_plus_1,),
    ),
    Mistake(
        id="same_position",
        says="Right for one new token; of several, all get the position of the first. New tokens stand side by "
        "side: how many rows of the table does the call need?",
        answers=(wrong.same_position,),
    ),
    Mistake(
        id="no_positions",
        says="`position_table` has no effect on your result: the new tokens do not know where they stand. "
        "Positions are added before the projections.",
        answers=(wrong.no_positions,),
    ),
    Mistake(
        id="value_without_position",
        says="Your values are made from the tokens without their positions. That is how rotary positions work; "
        "here a position is added to the stream, and all three projections read the sum.",
        answers=(wrong.value_without_position,),
    ),
    Mistake(
        id="overwrite",
        says="New tokens see only one another: the cache is replaced, never extended. How many keys should there "
        "be when four are cached and two come in?",
        answers=(wrong.overwrite,),
    ),
    Mistake(
        id="returns_new_only",
        says="Your context is right, but you hand back the new keys and values alone; in the next call all "
        "earlier tokens will be forgotten.",
        answers=(wrong.returns_new_only,),
    ),
    Mistake(
        id="returns_old",
        says="Your context is right, but you hand the cache back as it came: in the next call these tokens will "
        "never have been there.",
        answers=(wrong.returns_old,),
    ),
    Mistake(
        id="prepend",
        says="New keys come first and new values last, so that key and value of a token no longer stand at the "
        "same place. At which end does a text grow?",
        answers=(wrong.prepend,),
    ),
    Mistake(
        id="prepend_both",
        says="New keys and values are put before the old ones, so that the causal mask takes the past for the "
        "future. At which end does a text grow?",
        answers=(wrong.prepend_both,),
    ),
    Mistake(
        id="v_stale",
        says="Right while the cache is empty; then there are fewer values than keys, which raises an error or "
        "leaves the new tokens without a say. Print both shapes: which of the two does not grow?",
        answers=(wrong.v_stale, wrong.v_stale_cut, wrong.v_stale_zeros, wrong.v_stale_repeated),
    ),
    Mistake(
        id="tril_no_offset",
        says="With five tokens cached, your new token sees only key 0: the mask's diagonal starts in the upper "
        "left corner. The last query belongs to the last key, so where must it start?",
        answers=(wrong.tril_no_offset,),
    ),
    Mistake(
        id="mask_of_new_only",
        says="Right for a first call and for single tokens, an error for two tokens after a cache: your mask has "
        "columns for the new keys only. How many keys are there?",
        answers=(wrong.mask_of_new_only,),
    ),
    Mistake(
        id="no_mask",
        says="Tokens that come in together see one another in both directions. One new token needs no mask, "
        "several do: each may look back, none ahead.",
        answers=(wrong.no_mask,),
    ),
    Mistake(
        id="no_mask_with_a_cache",
        says="Right for a prompt and for single tokens. Two tokens that arrive after a cache still need the "
        "mask: the first of them may not see the second.",
        answers=(wrong.no_mask_with_a_cache,),
    ),
    Mistake(
        id="no_mask_for_the_prompt",
        says="With an empty cache your tokens see the future: the prompt is read without a mask. Being the first "
        "call is no reason to look ahead.",
        answers=(wrong.no_mask_for_the_prompt,),
    ),
    Mistake(
        id="not_oneself",
        says="Your tokens see what came before them, but not themselves; the first of all sees nothing. By how "
        "much is the diagonal off?",
        answers=(wrong.not_oneself,),
    ),
    Mistake(
        id="last_token_only",
        says="You return the context of the last new token only. Every token that comes in gets its context, "
        "also when a whole prompt comes at once.",
        answers=(wrong.last_token_only,),
    ),
    Mistake(
        id="squeezed",
        says="With one new token your context loses an axis. A single token is still a sequence, of length one: "
        "look for `squeeze` or an index where a slice should be.",
        answers=(wrong.squeezed,),
    ),
    Mistake(
        id="keys_and_values_exchanged",
        says="`w_key` and `w_value` have changed places: what is found and what is handed over are mixed up, in "
        "the cache too.",
        answers=(wrong.keys_and_values_exchanged,),
    ),
    Mistake(
        id="one_map_for_both",
        says="Your new keys and values are the same vectors: one map makes both. What a token is found by and "
        "what it hands over are learnt apart.",
        answers=(wrong.values_from_w_key, wrong.keys_from_w_value),
    ),
    Mistake(
        id="no_scale",
        says="The cache is right, the weights are too sharp: the scores are not divided by √d_head.",
        answers=(wrong.no_scale,),
    ),
    Mistake(
        id="scale_d_model",
        says="The cache is right, the weights are too flat: you scale by √d_model, and queries and keys have "
        "only d_head features.",
        answers=(wrong.scale_d_model,),
    ),
    Mistake(
        id="inplace",
        says="Your result is right, but adding the positions has changed `hidden` for whoever called you: `+=` "
        "edits the tensor itself.",
        answers=(wrong.inplace,),
    ),
)
