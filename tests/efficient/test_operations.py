"""The counter counts what is run, and the comparison table's columns come out of it."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from ttutor.attention import scaled_dot_product_attention
from ttutor.efficient.eager import eager_attention
from ttutor.efficient.features import FavorFeatures
from ttutor.efficient.linear import linear_attention
from ttutor.efficient.operations import attention_operations, count_operations, decoding_cost
from ttutor.efficient.sdpa import sdpa_attention
from ttutor.efficient.sparse import sparse_attention
from ttutor.efficient.sparse_masks import draw_random_blocks
from ttutor.efficient.tiled import tiled_attention


def test_a_product_is_counted_by_its_shapes():
    counted = count_operations(torch.matmul, torch.zeros(2, 3, 5, device="meta"), torch.zeros(2, 5, 7, device="meta"))
    assert (counted.matrix_products, counted.multiply_adds, counted.largest) == (1, 2 * 3 * 5 * 7, 2 * 3 * 7)
    assert counted.by_name["bmm"] == 1


def test_attention_is_two_products_forward_and_four_backward():
    n, m, d = 11, 13, 5
    forward = attention_operations(scaled_dot_product_attention, n, m, n_heads=8, d_head=d)
    assert forward.matrix_products == 2
    assert forward.multiply_adds == 8 * n * m * 2 * d
    assert forward.exponentials == forward.largest == 8 * n * m
    assert forward.kept == 0
    both = attention_operations(scaled_dot_product_attention, n, m, n_heads=8, d_head=d, backward=True)
    assert both.matrix_products == 6
    assert both.multiply_adds == 3 * 8 * n * m * 2 * d
    assert both.kept >= 8 * n * m


@pytest.mark.parametrize("device", ["meta", "cpu"])
def test_tiles_cost_seven_products_where_the_plain_version_costs_six(device):
    options = {"n_queries": 600, "d_head": 8, "backward": True, "device": device}
    tiled = attention_operations(tiled_attention, **options)
    plain = attention_operations(eager_attention, **options)
    assert 6 * tiled.multiply_adds == 7 * plain.multiply_adds
    n_tiles = 3 * 2  # blocks of 256 queries and 512 keys
    assert tiled.matrix_products == 7 * n_tiles
    # Each tile's weights are computed once each way; forward also the correction of every row, for each tile.
    assert tiled.exponentials == 2 * 600**2 + 600 * 2
    assert plain.exponentials == plain.largest == 600**2
    assert tiled.largest < plain.largest / 2
    assert tiled.kept < plain.kept / 10


def test_the_tiled_memory_is_linear_though_its_work_is_not():
    sizes = [attention_operations(tiled_attention, n, backward=True) for n in (1024, 2048)]
    assert sizes[1].kept == 2 * sizes[0].kept
    assert sizes[1].largest <= 2 * sizes[0].largest
    assert sizes[1].multiply_adds == 4 * sizes[0].multiply_adds


def test_a_fused_kernel_is_counted_by_its_definition():
    options = {"n_queries": 64, "n_heads": 2, "d_head": 16, "device": "cpu"}
    forward = attention_operations(sdpa_attention, **options)
    assert forward.by_name["_scaled_dot_product_flash_attention_for_cpu"] == 1
    assert (forward.matrix_products, forward.multiply_adds) == (2, 2 * 2 * 64**2 * 16)
    assert forward.exponentials == 2 * 64**2
    both = attention_operations(sdpa_attention, **options, backward=True)
    assert (both.matrix_products, both.multiply_adds) == (7, 7 * 2 * 64**2 * 16)
    assert both.exponentials == 2 * 2 * 64**2


def test_linear_and_sparse_attention_double_where_full_attention_quadruples():
    generator = torch.Generator().manual_seed(0)
    blocks = draw_random_blocks(2048, block_size=64, n_random=2, generator=generator)
    favor = FavorFeatures.draw(128, d_head=64, generator=generator)
    linear_ones = {
        "elu": partial(linear_attention, causal=True),
        "favor": partial(linear_attention, causal=True, feature_map=favor),
        "window": partial(sparse_attention, window=128, causal=True),
        "sparse": partial(sparse_attention, window=64, n_global=2, random_blocks=blocks),
    }
    for name, attend in linear_ones.items():
        short, long = (attention_operations(attend, n, backward=True) for n in (1024, 2048))
        for count in ("multiply_adds", "exponentials", "pointwise", "kept", "largest"):
            assert getattr(long, count) <= 2.05 * getattr(short, count), (name, count)
        assert long.multiply_adds > 1.9 * short.multiply_adds, name
    short, long = (attention_operations(eager_attention, n, backward=True) for n in (1024, 2048))
    assert (long.multiply_adds, long.exponentials) == (4 * short.multiply_adds, 4 * short.exponentials)
    assert attention_operations(linear_ones["elu"], 2048, backward=True).multiply_adds < long.multiply_adds / 4


@pytest.mark.parametrize("n", [1, 2, 30])
def test_decoding_costs_a_sum_with_a_cache_and_a_sum_of_squares_without(n):
    with_cache, without = (decoding_cost(n, with_cache=cached) for cached in (True, False))
    assert with_cache.exponentials == n * (n + 1) // 2
    assert without.exponentials == n * (n + 1) * (2 * n + 1) // 6
    # Two products for each score, each of width 64; but the first step blends a single value, which is no product.
    for counted in (with_cache, without):
        assert counted.multiply_adds == (counted.exponentials * 2 - 1) * 64


def test_a_backward_pass_without_gradients_is_refused():
    with pytest.raises(ValueError, match="no input requires a gradient"):
        count_operations(torch.exp, torch.zeros(3), backward=True)
