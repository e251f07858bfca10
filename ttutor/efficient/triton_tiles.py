"""What the GPU kernels of `ttutor.efficient.triton_kernels` share: reading tiles, and finding the blocks that matter.

A mask of structure (causal, window, lengths) makes the keys that a block of queries sees a range. Its ends are found by
arithmetic, so that hidden blocks are never read, and its inside, where nothing is hidden, needs no mask at all.
"""

from typing import no_type_check  # Triton reads these functions' text; the tests' annotation checks must not wrap them

import triton
import triton.language as tl


@triton.jit
@no_type_check
def load_tile(
    matrix, stride, start, stop, ROWS: tl.constexpr, D: tl.constexpr, PADDED: tl.constexpr, AT_EDGE: tl.constexpr
):
    """Read ``ROWS`` rows of a matrix ``tokens D`` from ``start`` on; what lies at ``stop`` or beyond column D is 0.

    Rows can only be missing at an edge, so only there are they checked. ``PADDED`` is D rounded up to a power of two.
    """
    row = tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, PADDED)[None, :]
    # The start in 64 bits: in a long strided tensor the distance from the first row passes 2^31.
    tile = matrix + tl.cast(start, tl.int64) * stride + row * stride + column
    if AT_EDGE:
        return tl.load(tile, mask=(start + row < stop) & (column < D), other=0.0)
    elif PADDED > D:
        return tl.load(tile, mask=column < D, other=0.0)
    else:
        return tl.load(tile)


@triton.jit
@no_type_check
def store_tile(matrix, tile, start, stop, ROWS: tl.constexpr, D: tl.constexpr, PADDED: tl.constexpr):
    """Write a tile to rows ``start`` to ``stop`` of a contiguous matrix ``tokens D``, rounded to the matrix's dtype."""
    row = tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, PADDED)[None, :]
    place = matrix + tl.cast(start, tl.int64) * D + row * D + column
    tl.store(place, tile.to(matrix.dtype.element_ty), mask=(start + row < stop) & (column < D))


@triton.jit
@no_type_check
def whole_blocks(begin, inner_begin, inner_end, end, BLOCK: tl.constexpr):
    """Cut a range into blocks: those at the left edge, those wholly inside, those at the right edge.

    Everything in ``begin .. end`` has to be looked at, and nothing in ``inner_begin .. inner_end`` is hidden. Gives
    four multiples of BLOCK that never decrease: the left edge lies between the first two, and so on.
    """
    begin = tl.maximum(begin, 0) // BLOCK * BLOCK
    end = tl.maximum(tl.cdiv(tl.maximum(end, 0), BLOCK) * BLOCK, begin)
    inner_begin = tl.minimum(tl.cdiv(tl.maximum(inner_begin, begin), BLOCK) * BLOCK, end)
    inner_end = tl.maximum(tl.maximum(inner_end, 0) // BLOCK * BLOCK, inner_begin)
    return begin, inner_begin, inner_end, end


@triton.jit
@no_type_check
def blocks_of_keys(first, last, n_real, window, CAUSAL: tl.constexpr, WINDOW: tl.constexpr, BLOCK_KEYS: tl.constexpr):
    """The blocks of keys that queries at the positions ``first`` to ``last`` may look at, cut as by `whole_blocks`."""
    begin, end = 0, n_real  # some query sees these keys ...
    inner_begin, inner_end = 0, n_real  # ... and every query these
    if WINDOW:
        begin, end = first - window + 1, tl.minimum(end, last + window)
        inner_begin, inner_end = last - window + 1, tl.minimum(inner_end, first + window)
    if CAUSAL:
        end = tl.minimum(end, last + 1)
        inner_end = tl.minimum(inner_end, first + 1)
    return whole_blocks(begin, inner_begin, inner_end, end, BLOCK_KEYS)


@triton.jit
@no_type_check
def blocks_of_queries(
    first, last, offset, n_queries, window, CAUSAL: tl.constexpr, WINDOW: tl.constexpr, BLOCK_QUERIES: tl.constexpr
):
    """The blocks of queries that may look at the keys ``first`` to ``last``: the same conditions, solved for the query.

    Query i stands at position i + offset, so what is a bound on positions is a bound on queries after ``- offset``.
    """
    begin, end = 0, n_queries
    inner_begin, inner_end = 0, n_queries
    if WINDOW:
        begin, end = first - window + 1 - offset, tl.minimum(end, last + window - offset)
        inner_begin, inner_end = last - window + 1 - offset, tl.minimum(inner_end, first + window - offset)
    if CAUSAL:
        begin = tl.maximum(begin, first - offset)
        inner_begin = tl.maximum(inner_begin, last - offset)
    return whole_blocks(begin, inner_begin, inner_end, end, BLOCK_QUERIES)


@triton.jit
@no_type_check
def may_attend(query_position, key_position, n_real, window, CAUSAL: tl.constexpr, WINDOW: tl.constexpr):
    """The mask of one tile: `ttutor.masks.Mask` in the kernel's words."""
    allowed = key_position < n_real
    if CAUSAL:
        allowed = allowed & (key_position <= query_position)
    if WINDOW:
        allowed = allowed & (tl.abs(query_position - key_position) < window)
    return allowed


@triton.jit
@no_type_check
def real_keys(key_lengths, batch, n_keys):
    """How many keys of a row of the batch are real; the rest is padding and is never read."""
    if key_lengths is None:
        return n_keys
    else:
        return tl.minimum(tl.load(key_lengths + batch).to(tl.int32), n_keys)
