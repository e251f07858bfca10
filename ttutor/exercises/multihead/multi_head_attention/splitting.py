"""Mistakes about splitting into heads and merging them. Wrong on purpose, hence without annotations."""

from einops import rearrange, reduce, repeat

from ttutor.exercises.exercise import Mistake
from ttutor.exercises.multihead.multi_head_attention.steps import attend, heads_of, linear, merge, project, split

FLAT = "(batch heads tokens d_head) -> batch heads tokens d_head"
ALL = "... d_model -> (... d_model)"


def reshaped(vectors, n_heads):
    """What `vectors.reshape(batch, heads, tokens, d_head)` gives."""
    batch, tokens, _ = vectors.shape
    return rearrange(
        rearrange(vectors, "batch tokens d_model -> (batch tokens d_model)"),
        FLAT,
        batch=batch,
        heads=n_heads,
        tokens=tokens,
    )


def reshaped_back(context):
    """What `context.reshape(batch, tokens, d_model)` gives."""
    batch, _, tokens, _ = context.shape
    flat = rearrange(context, "batch heads tokens d_head -> (batch heads tokens d_head)")
    return rearrange(flat, "(batch tokens d_model) -> batch tokens d_model", batch=batch, tokens=tokens)


def head_order_dh(hidden, w_query, w_key, w_value, w_output, n_heads):
    pattern = "batch tokens (d_head heads) -> batch heads tokens d_head"
    q, k, v = (rearrange(part, pattern, heads=n_heads) for part in project(hidden, w_query, w_key, w_value))
    return linear(merge(attend(q, k, v)), w_output)


def head_order_dh_both_ways(hidden, w_query, w_key, w_value, w_output, n_heads):
    pattern = "batch tokens (d_head heads) -> batch heads tokens d_head"
    q, k, v = (rearrange(part, pattern, heads=n_heads) for part in project(hidden, w_query, w_key, w_value))
    back = "batch heads tokens d_head -> batch tokens (d_head heads)"
    return linear(rearrange(attend(q, k, v), back), w_output)


def merged_dh(hidden, w_query, w_key, w_value, w_output, n_heads):
    context = attend(*heads_of(hidden, w_query, w_key, w_value, n_heads))
    return linear(rearrange(context, "batch heads tokens d_head -> batch tokens (d_head heads)"), w_output)


def split_no_transpose(hidden, w_query, w_key, w_value, w_output, n_heads):
    q, k, v = (reshaped(part, n_heads) for part in project(hidden, w_query, w_key, w_value))
    return linear(merge(attend(q, k, v)), w_output)


def merge_no_transpose(hidden, w_query, w_key, w_value, w_output, n_heads):
    return linear(reshaped_back(attend(*heads_of(hidden, w_query, w_key, w_value, n_heads))), w_output)


def both_raw(hidden, w_query, w_key, w_value, w_output, n_heads):
    q, k, v = (reshaped(part, n_heads) for part in project(hidden, w_query, w_key, w_value))
    return linear(reshaped_back(attend(q, k, v)), w_output)


def one_head(hidden, w_query, w_key, w_value, w_output, n_heads):
    return linear(merge(attend(*heads_of(hidden, w_query, w_key, w_value, 1))), w_output)


def always_three(hidden, w_query, w_key, w_value, w_output, n_heads):
    return linear(merge(attend(*heads_of(hidden, w_query, w_key, w_value, 3))), w_output)


def always_four_wide(hidden, w_query, w_key, w_value, w_output, n_heads):
    return linear(merge(attend(*heads_of(hidden, w_query, w_key, w_value, hidden.shape[-1] // 4))), w_output)


def heads_as_width(hidden, w_query, w_key, w_value, w_output, n_heads):
    heads = heads_of(hidden, w_query, w_key, w_value, hidden.shape[-1] // n_heads)
    return linear(merge(attend(*heads)), w_output)


def mean_of_heads(hidden, w_query, w_key, w_value, w_output, n_heads):
    context = attend(*heads_of(hidden, w_query, w_key, w_value, n_heads))
    mean = reduce(context, "batch heads tokens d_head -> batch tokens d_head", "mean")
    return linear(repeat(mean, "batch tokens d_head -> batch tokens (heads d_head)", heads=n_heads), w_output)


def sum_of_heads(hidden, w_query, w_key, w_value, w_output, n_heads):
    context = attend(*heads_of(hidden, w_query, w_key, w_value, n_heads))
    total = reduce(context, "batch heads tokens d_head -> batch tokens d_head", "sum")
    return linear(repeat(total, "batch tokens d_head -> batch tokens (heads d_head)", heads=n_heads), w_output)


def first_head_for_all(hidden, w_query, w_key, w_value, w_output, n_heads):
    q, k, v = heads_of(hidden, w_query, w_key, w_value, n_heads)
    return linear(merge(attend(q[:, :1].expand_as(q), k[:, :1].expand_as(k), v)), w_output)


def first_head_repeated(hidden, w_query, w_key, w_value, w_output, n_heads):
    q, k, v = (part[:, :1] for part in heads_of(hidden, w_query, w_key, w_value, n_heads))
    context = repeat(attend(q, k, v), "batch 1 tokens d_head -> batch heads tokens d_head", heads=n_heads)
    return linear(merge(context), w_output)


def last_head_first(hidden, w_query, w_key, w_value, w_output, n_heads):
    return linear(merge(attend(*heads_of(hidden, w_query, w_key, w_value, n_heads)).flip(1)), w_output)


def batch_and_heads_exchanged(hidden, w_query, w_key, w_value, w_output, n_heads):
    """All heads are laid into the batch, and taken out of it the other way round."""
    pattern = "batch heads tokens d_head -> (batch heads) 1 tokens d_head"
    q, k, v = (rearrange(part, pattern) for part in heads_of(hidden, w_query, w_key, w_value, n_heads))
    back = "(heads batch) 1 tokens d_head -> batch tokens (heads d_head)"
    return linear(rearrange(attend(q, k, v), back, heads=n_heads), w_output)


def keys_split_otherwise(hidden, w_query, w_key, w_value, w_output, n_heads):
    query, key, value = project(hidden, w_query, w_key, w_value)
    k = rearrange(key, "batch tokens (d_head heads) -> batch heads tokens d_head", heads=n_heads)
    return linear(merge(attend(split(query, n_heads), k, split(value, n_heads))), w_output)


MISTAKES = (
    Mistake(
        id="head_order_dh",
        says="Your heads take every h-th feature. Head 0 should own the first d_head features, next to one another: "
        "`(heads d_head)`, not `(d_head heads)`, for queries, keys and values alike.",
        answers=(head_order_dh, head_order_dh_both_ways, keys_split_otherwise),
    ),
    Mistake(
        id="merged_dh",
        says="Each head is right, but they are merged in another order than they were split: their features come out "
        "interleaved. Head 0 owns the first d_head features of the result too.",
        answers=(merged_dh,),
    ),
    Mistake(
        id="split_no_transpose",
        says="A reshape straight to `batch heads tokens d_head` mixes tokens, and the future leaks although you mask. "
        "Split the last axis first, then swap axes.",
        answers=(split_no_transpose,),
    ),
    Mistake(
        id="merge_no_transpose",
        says="The heads are right but merged in the wrong order: a reshape straight back mixes tokens. Swap the axes "
        "of heads and tokens back first.",
        answers=(merge_no_transpose,),
    ),
    Mistake(
        id="both_raw",
        says="Splitting and merging cancel in shape but not in meaning: your last token cannot see token 0. Split the "
        "last axis, then swap axes; undo both in reverse order.",
        answers=(both_raw,),
    ),
    Mistake(
        id="one_head",
        says="Your result does not depend on the number of heads: it is that of one wide head. Where is the split?",
        answers=(one_head,),
    ),
    Mistake(
        id="hard_coded_heads",
        says="Right for three heads of width 4, and for no others. Take the number of heads from the argument and the "
        "width from the vectors.",
        answers=(always_three, always_four_wide),
    ),
    Mistake(
        id="heads_as_width",
        says="You use the number of heads as the width of one. There should be `n_heads` heads, each d_model / n_heads "
        "wide.",
        answers=(heads_as_width,),
    ),
    Mistake(
        id="heads_added",
        says="You add or average the heads, and what each of them found is lost. Lay them side by side; the output "
        "weights do the mixing.",
        answers=(mean_of_heads, sum_of_heads),
    ),
    Mistake(
        id="first_head_for_all",
        says="All heads look where the first one looks. Each has queries and keys of its own: which index do you take?",
        answers=(first_head_for_all, first_head_repeated),
    ),
    Mistake(
        id="last_head_first",
        says="The heads stand side by side in reverse order. Head 0 comes first.",
        answers=(last_head_first,),
    ),
    Mistake(
        id="batch_and_heads_exchanged",
        says="Heads and sentences come out exchanged: you laid them on one axis in one order and took them apart in "
        "the other. Sentences must not influence each other.",
        answers=(batch_and_heads_exchanged,),
    ),
)
