"""Token embeddings and what enters the first layer."""

import pytest
import torch

from ttutor.embeddings import Embeddings, TokenEmbedding
from ttutor.positions import SinusoidalPositions, sinusoidal_encoding


def test_lookup_is_a_product_with_one_hot_rows_times_the_factor():
    embedding = TokenEmbedding(vocab_size=11, d_model=16)
    token_ids = torch.tensor([[3, 0, 10]])
    one_hot = torch.nn.functional.one_hot(token_ids, 11).float()
    torch.testing.assert_close(embedding(token_ids), 4.0 * one_hot @ embedding.table.weight)


def test_positions_are_added_in_order_or_as_given():
    embeddings = Embeddings(TokenEmbedding(7, 8), SinusoidalPositions(8, max_len=5)).eval()
    token_ids = torch.tensor([[2, 2, 2]])
    encoding = sinusoidal_encoding(5, 8)
    bare = embeddings.token(token_ids)
    torch.testing.assert_close(embeddings(token_ids), bare + encoding[:3])
    given = torch.tensor([[4, 0, 1]])
    torch.testing.assert_close(embeddings(token_ids, given), bare + encoding[given])


def test_too_long_a_sequence_says_how_long_it_may_be():
    embeddings = Embeddings(TokenEmbedding(7, 8), SinusoidalPositions(8, max_len=5))
    with pytest.raises(ValueError, match=r"6 tokens are more than the 5 positions.* max_len=6"):
        embeddings(torch.zeros(1, 6, dtype=torch.long))


@pytest.mark.usefixtures("as_readers_run_it")
def test_ids_without_a_row_are_named():
    embedding = TokenEmbedding(7, 8)
    with pytest.raises(IndexError, match="token_ids run from 2 to 7, but this model knows 0 to 6"):
        embedding(torch.tensor([[2, 7]]))
    with pytest.raises(IndexError, match="token_ids run from -1 to 3"):
        embedding(torch.tensor([[-1, 3]]))
    with pytest.raises(TypeError, match=r"token_ids must be whole numbers, .* but came with dtype torch.float32"):
        embedding(torch.tensor([[2.0, 3.0]]))
    assert embedding(torch.empty(0, 3, dtype=torch.int32)).shape == (0, 3, 8)
