"""The three GPU kernels behind `ttutor.efficient.triton`: the algorithms of FlashAttention-2 in Triton's language.

A kernel is written for one *program*: the GPU runs thousands of them at once, each for one block of one head. A program
reads tiles (small matrices) from the GPU's large, slow memory into its small, fast one, and multiplies them there. The
table of scores is never written out: a tile of it is made, used and dropped.

* `attend_kernel`, Dao (2023), algorithm 1: one program per block of queries walks along the keys.
* `query_gradient_kernel` and `key_value_gradient_kernel`, algorithm 2 in two: one program per block of queries walks
  along the keys once more, then one per block of keys walks along the queries.

Differs from the paper: its backward pass is one kernel whose programs add to the query gradient as they come by, in an
order that changes from run to run. Two kernels compute the scores twice and give the same bits every time.

Names in capitals are known when a kernel is compiled, so an ``if`` on them costs nothing. This module needs Triton,
which the rest of the package does not, so `ttutor.efficient.triton_launch` imports it only when it launches a kernel.
"""

from typing import no_type_check  # Triton reads these functions' text; the tests' annotation checks must not wrap them

import triton
import triton.language as tl

from ttutor.efficient.triton_tiles import (
    blocks_of_keys,
    blocks_of_queries,
    load_tile,
    may_attend,
    real_keys,
    store_tile,
)

LOG2_E = tl.constexpr(1.4426950408889634)  # exp(x) = 2^(x log2 e), and GPUs have an instruction for powers of two
MINUS_INFINITY = tl.constexpr(float("-inf"))
INFINITY = tl.constexpr(float("inf"))
INSIDE = tl.constexpr(1)  # of the three parts that a walk has: the left edge, the inside, the right edge
# One compiled kernel serves all of these, where Triton would compile anew for 1 and for multiples of 16.
SIZES = ("n_heads", "group", "n_queries", "n_keys", "window")


@triton.jit(do_not_specialize=SIZES)
@no_type_check
def attend_kernel(
    query, query_strides, key, key_strides, value, value_strides, key_lengths, output, log_total,
    n_heads, group, n_queries, n_keys, scale, window,
    CAUSAL: tl.constexpr, WINDOW: tl.constexpr, D_HEAD: tl.constexpr, D_VALUE: tl.constexpr,
    PADDED_HEAD: tl.constexpr, PADDED_VALUE: tl.constexpr, PRECISION: tl.constexpr,
    BLOCK_QUERIES: tl.constexpr, BLOCK_KEYS: tl.constexpr,
):  # fmt: skip
    """One block of queries of one head: its blend of the values (Dao 2023, algorithm 1, lines 3 to 14)."""
    n_blocks = tl.cdiv(n_queries, BLOCK_QUERIES)
    block, head = tl.program_id(0) % n_blocks, tl.program_id(0) // n_blocks  # neighbours share keys: they stay in cache
    if CAUSAL:  # the last queries see most: begin with them, so that none is waited for at the end
        block = n_blocks - 1 - block
    batch, head = head // n_heads, head % n_heads
    row = tl.cast(batch, tl.int64) * n_heads + head
    query += tl.cast(batch, tl.int64) * query_strides[0] + tl.cast(head, tl.int64) * query_strides[1]
    key += tl.cast(batch, tl.int64) * key_strides[0] + tl.cast(head // group, tl.int64) * key_strides[1]
    value += tl.cast(batch, tl.int64) * value_strides[0] + tl.cast(head // group, tl.int64) * value_strides[1]

    start, offset = block * BLOCK_QUERIES, n_keys - n_queries
    index = start + tl.arange(0, BLOCK_QUERIES)
    n_real = real_keys(key_lengths, batch, n_keys)
    first, last = start + offset, tl.minimum(start + BLOCK_QUERIES, n_queries) - 1 + offset
    begin, inner_begin, inner_end, end = blocks_of_keys(first, last, n_real, window, CAUSAL, WINDOW, BLOCK_KEYS)

    q = load_tile(query, query_strides[2], start, n_queries, BLOCK_QUERIES, D_HEAD, PADDED_HEAD, True)  # line 4
    largest = tl.full([BLOCK_QUERIES], MINUS_INFINITY, tl.float32)  # line 5: m, the largest score so far
    total = tl.zeros([BLOCK_QUERIES], tl.float32)  # the sum of 2^(score - m) so far, the paper's l
    blend = tl.zeros([BLOCK_QUERIES, PADDED_VALUE], tl.float32)  # and of 2^(score - m) times the value, the paper's O

    for part in tl.static_range(0 if WINDOW else 1, 3):  # only a window has a left edge
        low = begin if part == 0 else (inner_begin if part == INSIDE else inner_end)
        high = inner_begin if part == 0 else (inner_end if part == INSIDE else end)
        for at in range(low, high, BLOCK_KEYS):  # line 6
            k = load_tile(key, key_strides[2], at, n_real, BLOCK_KEYS, D_HEAD, PADDED_HEAD, part != INSIDE)  # line 7
            v = load_tile(value, value_strides[2], at, n_real, BLOCK_KEYS, D_VALUE, PADDED_VALUE, part != INSIDE)
            scores = tl.dot(q, tl.trans(k), input_precision=PRECISION) * (scale * LOG2_E)  # line 8, in powers of two
            if part != INSIDE:  # the inside needs no mask
                here = at + tl.arange(0, BLOCK_KEYS)
                allowed = may_attend((index + offset)[:, None], here[None, :], n_real, window, CAUSAL, WINDOW)
                scores = tl.where(allowed, scores, MINUS_INFINITY)
            new_largest = tl.maximum(largest, tl.max(scores, axis=1))  # line 9
            # A row that has seen nothing yet has m = -inf, and -inf - -inf is no number: measure from zero instead.
            pivot = tl.where(new_largest == MINUS_INFINITY, 0.0, new_largest)
            weights = tl.exp2(scores - pivot[:, None])
            shrink = tl.exp2(largest - pivot)  # what was summed up to now was measured from the older, smaller m
            total = total * shrink + tl.sum(weights, axis=1)
            blend = tl.dot(weights.to(v.dtype), v, blend * shrink[:, None], input_precision=PRECISION)  # line 10
            largest = new_largest

    # Line 12: divide once, at the end. A query that saw no key has a total of zero and gets a blend of zeros.
    saw_nothing = total == 0.0
    blend = blend / tl.where(saw_nothing, 1.0, total)[:, None]
    # Line 13: what the backward pass needs to find the weights again, weight = 2^(score - log_total). Infinity for a
    # query that saw nothing makes all its weights 2^-inf = 0 there, and with them its gradients.
    log_total_here = tl.where(saw_nothing, INFINITY, largest + tl.log2(tl.where(saw_nothing, 1.0, total)))
    store_tile(output + row * n_queries * D_VALUE, blend, start, n_queries, BLOCK_QUERIES, D_VALUE, PADDED_VALUE)
    tl.store(log_total + row * n_queries + index, log_total_here, mask=index < n_queries)


@triton.jit(do_not_specialize=SIZES)
@no_type_check
def query_gradient_kernel(
    query, query_strides, key, key_strides, value, value_strides, key_lengths, output, log_total,
    grad_output, grad_output_strides, projection, grad_query,
    n_heads, group, n_queries, n_keys, scale, window,
    CAUSAL: tl.constexpr, WINDOW: tl.constexpr, D_HEAD: tl.constexpr, D_VALUE: tl.constexpr,
    PADDED_HEAD: tl.constexpr, PADDED_VALUE: tl.constexpr, PRECISION: tl.constexpr,
    BLOCK_QUERIES: tl.constexpr, BLOCK_KEYS: tl.constexpr,
):  # fmt: skip
    """One block of queries of one head: the gradient of its scores, times the keys (Dao 2023, algorithm 2)."""
    n_blocks = tl.cdiv(n_queries, BLOCK_QUERIES)
    block, head = tl.program_id(0) % n_blocks, tl.program_id(0) // n_blocks
    if CAUSAL:
        block = n_blocks - 1 - block
    batch, head = head // n_heads, head % n_heads
    row = tl.cast(batch, tl.int64) * n_heads + head
    query += tl.cast(batch, tl.int64) * query_strides[0] + tl.cast(head, tl.int64) * query_strides[1]
    key += tl.cast(batch, tl.int64) * key_strides[0] + tl.cast(head // group, tl.int64) * key_strides[1]
    value += tl.cast(batch, tl.int64) * value_strides[0] + tl.cast(head // group, tl.int64) * value_strides[1]
    grad_output += tl.cast(batch, tl.int64) * grad_output_strides[0] + tl.cast(head, tl.int64) * grad_output_strides[1]
    output += row * n_queries * D_VALUE

    start, offset = block * BLOCK_QUERIES, n_keys - n_queries
    index = start + tl.arange(0, BLOCK_QUERIES)
    n_real = real_keys(key_lengths, batch, n_keys)
    first, last = start + offset, tl.minimum(start + BLOCK_QUERIES, n_queries) - 1 + offset
    begin, inner_begin, inner_end, end = blocks_of_keys(first, last, n_real, window, CAUSAL, WINDOW, BLOCK_KEYS)

    q = load_tile(query, query_strides[2], start, n_queries, BLOCK_QUERIES, D_HEAD, PADDED_HEAD, True)
    do = load_tile(grad_output, grad_output_strides[2], start, n_queries, BLOCK_QUERIES, D_VALUE, PADDED_VALUE, True)
    out = load_tile(output, D_VALUE, start, n_queries, BLOCK_QUERIES, D_VALUE, PADDED_VALUE, True)
    total = tl.load(log_total + row * n_queries + index, mask=index < n_queries, other=INFINITY)
    # Line 4: D, how much of the gradient lies along the output itself. Softmax's derivative takes it off everywhere,
    # because weights that sum to one cannot all grow.
    along = tl.sum(out.to(tl.float32) * do.to(tl.float32), axis=1)
    tl.store(projection + row * n_queries + index, along, mask=index < n_queries)
    dq = tl.zeros([BLOCK_QUERIES, PADDED_HEAD], tl.float32)

    for part in tl.static_range(0 if WINDOW else 1, 3):
        low = begin if part == 0 else (inner_begin if part == INSIDE else inner_end)
        high = inner_begin if part == 0 else (inner_end if part == INSIDE else end)
        for at in range(low, high, BLOCK_KEYS):
            k = load_tile(key, key_strides[2], at, n_real, BLOCK_KEYS, D_HEAD, PADDED_HEAD, part != INSIDE)
            v = load_tile(value, value_strides[2], at, n_real, BLOCK_KEYS, D_VALUE, PADDED_VALUE, part != INSIDE)
            scores = tl.dot(q, tl.trans(k), input_precision=PRECISION) * (scale * LOG2_E)
            weights = tl.exp2(scores - total[:, None])  # line 11: computed again, not remembered
            if part != INSIDE:  # the inside needs no mask
                here = at + tl.arange(0, BLOCK_KEYS)
                allowed = may_attend((index + offset)[:, None], here[None, :], n_real, window, CAUSAL, WINDOW)
                weights = tl.where(allowed, weights, 0.0)
            dweights = tl.dot(do, tl.trans(v), input_precision=PRECISION)  # line 13
            dscores = weights * (dweights - along[:, None])  # line 14
            dq = tl.dot(dscores.to(k.dtype), k, dq, input_precision=PRECISION)  # line 15

    place = grad_query + row * n_queries * D_HEAD
    store_tile(place, dq * scale, start, n_queries, BLOCK_QUERIES, D_HEAD, PADDED_HEAD)


@triton.jit(do_not_specialize=SIZES)
@no_type_check
def key_value_gradient_kernel(
    query, query_strides, key, key_strides, value, value_strides, key_lengths, log_total,
    grad_output, grad_output_strides, projection, grad_key, grad_value,
    n_heads, group, n_queries, n_keys, scale, window,
    CAUSAL: tl.constexpr, WINDOW: tl.constexpr, D_HEAD: tl.constexpr, D_VALUE: tl.constexpr,
    PADDED_HEAD: tl.constexpr, PADDED_VALUE: tl.constexpr, PRECISION: tl.constexpr,
    BLOCK_QUERIES: tl.constexpr, BLOCK_KEYS: tl.constexpr,
):  # fmt: skip
    """One block of keys and values of one shared head: what flows back to it from all queries that look at it.

    Dao (2023), algorithm 2, lines 5 to 19. All tiles lie on their side, ``keys queries``, so that the products need
    none turned. The query heads that share these keys come one after another and add up in place.
    """
    n_blocks = tl.cdiv(n_keys, BLOCK_KEYS)
    block, shared = tl.program_id(0) % n_blocks, tl.program_id(0) // n_blocks
    n_shared = n_heads // group
    row = tl.cast(shared, tl.int64)
    batch, shared = shared // n_shared, shared % n_shared
    key += tl.cast(batch, tl.int64) * key_strides[0] + tl.cast(shared, tl.int64) * key_strides[1]
    value += tl.cast(batch, tl.int64) * value_strides[0] + tl.cast(shared, tl.int64) * value_strides[1]

    start, offset = block * BLOCK_KEYS, n_keys - n_queries
    index = start + tl.arange(0, BLOCK_KEYS)
    n_real = real_keys(key_lengths, batch, n_keys)
    k = load_tile(key, key_strides[2], start, n_real, BLOCK_KEYS, D_HEAD, PADDED_HEAD, True)  # line 6
    v = load_tile(value, value_strides[2], start, n_real, BLOCK_KEYS, D_VALUE, PADDED_VALUE, True)
    dk = tl.zeros([BLOCK_KEYS, PADDED_HEAD], tl.float32)  # line 7
    dv = tl.zeros([BLOCK_KEYS, PADDED_VALUE], tl.float32)

    last = start + BLOCK_KEYS - 1
    begin, inner_begin, inner_end, end = blocks_of_queries(
        start, last, offset, n_queries, window, CAUSAL, WINDOW, BLOCK_QUERIES
    )
    if start >= n_real:
        begin, inner_begin, inner_end, end = 0, 0, 0, 0  # nobody looks at padding

    for head in range(shared * group, (shared + 1) * group):
        queries = query + tl.cast(batch, tl.int64) * query_strides[0] + tl.cast(head, tl.int64) * query_strides[1]
        dos = grad_output + tl.cast(batch, tl.int64) * grad_output_strides[0]
        dos += tl.cast(head, tl.int64) * grad_output_strides[1]
        query_row = (tl.cast(batch, tl.int64) * n_heads + head) * n_queries
        for part in tl.static_range(0 if WINDOW or CAUSAL else 1, 3):
            low = begin if part == 0 else (inner_begin if part == INSIDE else inner_end)
            high = inner_begin if part == 0 else (inner_end if part == INSIDE else end)
            for at in range(low, high, BLOCK_QUERIES):  # line 8
                here = at + tl.arange(0, BLOCK_QUERIES)
                q = load_tile(
                    queries, query_strides[2], at, n_queries, BLOCK_QUERIES, D_HEAD, PADDED_HEAD, part != INSIDE
                )
                do = load_tile(
                    dos, grad_output_strides[2], at, n_queries, BLOCK_QUERIES, D_VALUE, PADDED_VALUE, part != INSIDE
                )  # line 9
                total = tl.load(log_total + query_row + here, mask=here < n_queries, other=INFINITY)
                along = tl.load(projection + query_row + here, mask=here < n_queries, other=0.0)
                scores = tl.dot(k, tl.trans(q), input_precision=PRECISION) * (scale * LOG2_E)  # line 10
                weights = tl.exp2(scores - total[None, :])  # line 11
                if part != INSIDE:
                    allowed = may_attend((here + offset)[None, :], index[:, None], n_real, window, CAUSAL, WINDOW)
                    weights = tl.where(allowed, weights, 0.0)
                dv = tl.dot(weights.to(do.dtype), do, dv, input_precision=PRECISION)  # line 12
                dweights = tl.dot(v, tl.trans(do), input_precision=PRECISION)  # line 13
                dscores = weights * (dweights - along[None, :])  # line 14
                dk = tl.dot(dscores.to(q.dtype), q, dk, input_precision=PRECISION)  # line 16

    # Each key's gradient is a row of its own, so inside the loop the rows of padding needed no mask: drop them here.
    is_real = (index < n_real)[:, None]
    dk, dv = tl.where(is_real, dk * scale, 0.0), tl.where(is_real, dv, 0.0)
    store_tile(grad_key + row * n_keys * D_HEAD, dk, start, n_keys, BLOCK_KEYS, D_HEAD, PADDED_HEAD)  # line 18
    store_tile(grad_value + row * n_keys * D_VALUE, dv, start, n_keys, BLOCK_KEYS, D_VALUE, PADDED_VALUE)
