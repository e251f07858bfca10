"""The caches: room, rows, and which tokens are real."""

import pytest
import torch

from ttutor.cache import DecoderCache, KeyValueCache, real_positions
from ttutor.errors import ShapeError


@pytest.mark.parametrize("steps", [[1] * 9, [4, 1, 1, 7], [3]])
def test_holds_what_was_appended_in_order(steps):
    cache, keys, values = KeyValueCache(), [], []
    for n in steps:
        keys.append(torch.randn(2, 3, n, 5))
        values.append(torch.randn(2, 3, n, 4))
        key, value = cache.append(keys[-1], values[-1])
    assert torch.equal(key, torch.cat(keys, dim=2))
    assert torch.equal(value, torch.cat(values, dim=2))
    assert len(cache) == sum(steps)


def test_selecting_rows_repeats_and_reorders_them():
    cache = KeyValueCache()
    key, value = torch.randn(3, 1, 2, 4), torch.randn(3, 1, 2, 4)
    cache.append(key, value)
    cache.select(torch.tensor([2, 0, 0]))
    kept_key, kept_value = cache.read()
    assert torch.equal(kept_key, key[[2, 0, 0]])
    assert torch.equal(kept_value, value[[2, 0, 0]])
    cache.append(torch.zeros(3, 1, 1, 4), torch.zeros(3, 1, 1, 4))
    assert torch.equal(cache.read()[0][:, :, :2], key[[2, 0, 0]])


def test_reading_an_empty_cache_is_an_error():
    with pytest.raises(ValueError, match="the cache is empty"):
        KeyValueCache().read()
    with pytest.raises(ValueError, match="the cache is empty"):
        DecoderCache(1).lengths()


def test_positions_count_real_tokens_only():
    is_real = torch.tensor([[True, True, True], [False, True, True], [True, False, True], [False, False, False]])
    assert real_positions(is_real).tolist() == [[0, 1, 2], [0, 0, 1], [0, 0, 1], [0, 0, 0]]


def test_a_decoder_cache_goes_on_counting_where_each_row_stopped():
    cache = DecoderCache(n_layers=2)
    assert cache.n_tokens == 0
    cache.extend(torch.tensor([[True, True, True], [False, False, True]]))
    positions, keys = cache.extend(torch.tensor([[True, False], [True, True]]))
    assert positions.tolist() == [[3, 3], [1, 2]]
    assert keys[:, 0, 0].int().tolist() == [[1, 1, 1, 1, 0], [0, 0, 1, 1, 1]]
    assert cache.lengths().tolist() == [4, 3]
    cache.select(torch.tensor([1]))
    assert cache.lengths().tolist() == [3]
    assert cache.n_tokens == 5


@pytest.mark.usefixtures("as_readers_run_it")
def test_what_does_not_fit_the_cache_is_refused():
    cache = KeyValueCache()
    cache.append(torch.zeros(2, 3, 4, 5), torch.zeros(2, 3, 4, 5))
    cache.append(torch.zeros(2, 3, 1, 5), torch.zeros(2, 3, 1, 5))  # now there is room left over
    with pytest.raises(ShapeError, match="axis 'batch' is 1 in key but 2 in cached_key"):
        cache.append(torch.zeros(1, 3, 1, 5), torch.zeros(1, 3, 1, 5))
    with pytest.raises(ShapeError, match="axis 'heads' is 1 in key but 3 in cached_key"):
        cache.append(torch.zeros(2, 1, 1, 5), torch.zeros(2, 1, 1, 5))
    with pytest.raises(ShapeError, match="axis 'tokens' is 1 in key but 2 in value"):
        cache.append(torch.zeros(2, 3, 1, 5), torch.zeros(2, 3, 2, 5))
    with pytest.raises(TypeError, match="the cache holds torch.float32, but the new keys are torch.float64"):
        cache.append(torch.zeros(2, 3, 1, 5).double(), torch.zeros(2, 3, 1, 5).double())
    assert len(cache) == 5


@pytest.mark.usefixtures("as_readers_run_it")
def test_tokens_that_do_not_belong_are_refused_and_leave_the_cache_as_it_was():
    cache = DecoderCache(1)
    cache.extend(torch.ones(3, 2, dtype=torch.bool))
    with pytest.raises(ShapeError, match="axis 'batch' is 3 in cached_tokens but 2 in new_tokens"):
        cache.extend(torch.ones(2, 1, dtype=torch.bool))
    with pytest.raises(TypeError, match=r"is_real is a bool tensor .* torch.int64; write `is_real.bool\(\)`"):
        cache.extend(torch.ones(3, 1, dtype=torch.int64))
    assert cache.n_tokens == 2
    with pytest.raises(TypeError, match="is_real is a bool tensor"):
        real_positions(torch.ones(3, 2))


@pytest.mark.parametrize("chunks", [[1] * 9, [4, 1, 6], [3]])
def test_a_cache_with_a_window_gives_all_that_a_window_reaches_and_keeps_no_more(chunks):
    plain, rolling = KeyValueCache(), KeyValueCache(window=3)
    for n_new in chunks:
        new = torch.randn(2, 3, n_new, 5), torch.randn(2, 3, n_new, 4)
        reach = min(len(plain), 3) + n_new
        for all_of_it, given in zip(plain.append(*new), rolling.append(*new), strict=True):
            assert torch.equal(given, all_of_it[:, :, -reach:])
    assert len(rolling) == min(3, sum(chunks))
    assert rolling.n_bytes == 2 * 3 * len(rolling) * 9 * 4


def test_a_cache_with_a_window_goes_back_only_while_nothing_is_gone():
    cache = KeyValueCache(window=3)
    cache.append(torch.zeros(1, 1, 3, 2), torch.zeros(1, 1, 3, 2))
    cache.forget(1)
    assert len(cache) == 2
    cache.append(torch.zeros(1, 1, 3, 2), torch.zeros(1, 1, 3, 2))
    with pytest.raises(ValueError, match="a window of 3 has dropped older tokens and cannot go back"):
        cache.forget(1)
    with pytest.raises(ValueError, match="window must be at least 1, but is 0"):
        KeyValueCache(window=0)
