"""T5 in both versions against Hugging Face's, with the same random weights, in float64."""

from __future__ import annotations

import json

import pytest
import torch
import transformers
from transformers.models.t5.modeling_t5 import T5Attention

from tests.interop.oracles import randomised, with_precise_norms
from ttutor.cache import DecoderCache
from ttutor.errors import SettingError
from ttutor.generation import greedy_search
from ttutor.inside import capture
from ttutor.interop import from_huggingface, save_huggingface
from ttutor.masks import padding_mask
from ttutor.positions import relative_bucket

VOCAB, PAD, END = 53, 0, 1
CLOSE = {"rtol": 0, "atol": 1e-10}

SIZES = {
    "vocab_size": VOCAB,
    "d_model": 12,
    "d_kv": 5,
    "d_ff": 20,
    "num_layers": 2,
    "num_heads": 3,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 7,  # so that the short rows of these tests reach the last bucket
    "decoder_start_token_id": PAD,
    "attn_implementation": "eager",
}
KINDS = {
    "first": {"num_layers": 3},
    "v1.1": {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False},
}


def build(**changes) -> transformers.T5ForConditionalGeneration:
    """A model of theirs as it is, none of whose weights is zero or one by design."""
    model = transformers.T5ForConditionalGeneration(transformers.T5Config(**{**SIZES, **changes})).double().eval()
    if not changes.get(
        "tie_word_embeddings", True
    ):  # as in the checkpoints of T5 1.1; they tie new models all the same
        model.lm_head.weight = torch.nn.Parameter(torch.empty(VOCAB, 12, dtype=torch.float64))
    return randomised(model)


@pytest.fixture(scope="module", params=KINDS)
def theirs(request):
    torch.manual_seed(0)
    return with_precise_norms(build(**KINDS[request.param]))


@pytest.fixture(scope="module")
def ours(theirs):
    return from_huggingface(theirs)


@pytest.fixture
def source_ids():
    ids = torch.randint(2, VOCAB, (3, 11))
    return torch.where(torch.arange(11) < torch.tensor([[11], [4], [2]]), ids, PAD)


@pytest.fixture
def target_ids():
    return torch.cat([torch.full((3, 1), PAD), torch.randint(2, VOCAB, (3, 7))], dim=1)


def answer(model, source_ids, target_ids, **options):
    """Their logits and states, with the padding of the source as their tokenizer would report it."""
    mask = (source_ids != PAD).long()
    return model(input_ids=source_ids, attention_mask=mask, decoder_input_ids=target_ids, **options)


def test_logits_and_every_hidden_state(ours, theirs, source_ids, target_ids):
    expected = answer(theirs, source_ids, target_ids, output_hidden_states=True)
    with capture(ours, "encoder.layers.*", "encoder", "decoder.layers.*", "decoder") as seen:
        logits = ours(source_ids, target_ids)
    torch.testing.assert_close(logits, expected.logits, **CLOSE)
    real = source_ids != PAD
    for i in range(ours.config.n_layers - 1):  # the last layer's they give normalised only
        mine, other = seen[f"encoder.layers.{i}"], expected.encoder_hidden_states[i + 1]
        torch.testing.assert_close(mine[real], other[real], **CLOSE)
        torch.testing.assert_close(seen[f"decoder.layers.{i}"], expected.decoder_hidden_states[i + 1], **CLOSE)
    torch.testing.assert_close(seen["encoder"][real], expected.encoder_last_hidden_state[real], **CLOSE)
    torch.testing.assert_close(seen["decoder"], expected.decoder_hidden_states[-1], **CLOSE)


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_of_source_and_target_on_either_side(ours, theirs, source_ids, target_ids, side):
    target_is_real = torch.arange(8) < torch.tensor([[8], [5], [1]])
    source_is_real = source_ids != PAD
    if side == "left":
        source_ids, target_ids = source_ids.flip(1), target_ids.flip(1)
        source_is_real, target_is_real = source_is_real.flip(1), target_is_real.flip(1)
    options = {"decoder_attention_mask": target_is_real.long()}
    expected = answer(theirs, source_ids, target_ids, **options).logits[target_is_real]
    by_id = ours(source_ids, target_ids, is_real=target_is_real)[target_is_real]
    torch.testing.assert_close(by_id, expected, **CLOSE)
    with_other_values = source_ids.masked_fill(~source_is_real, 7)
    target_ids = target_ids.masked_fill(~target_is_real, 8)
    said = ours(with_other_values, target_ids, source_is_real=source_is_real, is_real=target_is_real)[target_is_real]
    assert torch.equal(said, by_id)


@pytest.mark.parametrize("chunks", [[3, 5], [5, 1, 1, 1]])
def test_cached_in_chunks_equals_theirs_at_once(ours, theirs, source_ids, target_ids, chunks):
    cache = DecoderCache(ours.config.n_layers)
    memory, mask = ours.encode(source_ids), padding_mask(source_ids, PAD)
    hidden = torch.cat([ours.decode(ids, memory, mask, cache) for ids in target_ids.split(chunks, dim=1)], dim=1)
    expected = answer(theirs, source_ids, target_ids).logits
    torch.testing.assert_close(ours.project(hidden), expected, **CLOSE)


def test_greedy_answers_token_by_token(ours, theirs, source_ids):
    mask = (source_ids != PAD).long()
    expected = theirs.generate(source_ids, attention_mask=mask, max_new_tokens=6, do_sample=False)[:, 1:]
    found = greedy_search(ours, source_ids, bos_id=PAD, eos_id=END, max_new_tokens=6)
    for hypothesis, row in zip(found, expected.tolist(), strict=True):
        assert list(hypothesis.token_ids) == row[: row.index(END) if END in row else None]


@pytest.mark.parametrize("max_shard_size", ["5GB", "8KB"])
def test_a_folder_of_theirs(theirs, source_ids, target_ids, tmp_path, max_shard_size):
    theirs.save_pretrained(tmp_path, max_shard_size=max_shard_size)
    n_files = len(list(tmp_path.glob("*.safetensors")))
    assert n_files == 1 if max_shard_size == "5GB" else n_files > 1
    expected = answer(theirs, source_ids, target_ids).logits
    torch.testing.assert_close(from_huggingface(tmp_path)(source_ids, target_ids), expected, **CLOSE)


def test_a_folder_of_ours(ours, source_ids, target_ids, tmp_path):
    folder = save_huggingface(ours, tmp_path / "saved")
    loaded = transformers.T5ForConditionalGeneration.from_pretrained(folder, attn_implementation="eager", dtype="auto")
    theirs = answer(with_precise_norms(loaded.eval()), source_ids, target_ids).logits
    torch.testing.assert_close(theirs, ours(source_ids, target_ids), **CLOSE)


@pytest.mark.parametrize("is_bidirectional", [True, False])
@pytest.mark.parametrize(("n_buckets", "max_distance"), [(32, 128), (8, 7), (16, 300)])
def test_every_offset_falls_into_their_bucket(n_buckets, max_distance, is_bidirectional):
    offset = torch.arange(-2000, 2001)
    expected = T5Attention._relative_position_bucket(offset, is_bidirectional, n_buckets, max_distance)
    sizes = {"n_buckets": n_buckets, "max_distance": max_distance, "is_bidirectional": is_bidirectional}
    assert torch.equal(relative_bucket(offset, **sizes), expected)


def test_a_new_model_of_theirs_shares_the_table_even_as_v1_1(source_ids, target_ids, tmp_path):
    """They tie every model that is not read from a checkpoint; what differs is only the scale of the logits."""
    model = transformers.T5ForConditionalGeneration(transformers.T5Config(**SIZES, tie_word_embeddings=False))
    model = with_precise_norms(model.double().eval())
    model.save_pretrained(tmp_path)
    expected = answer(model, source_ids, target_ids).logits
    for source in (model, tmp_path):
        ours = from_huggingface(source)
        assert not ours.config.tie_embeddings
        torch.testing.assert_close(ours(source_ids, target_ids), expected, **CLOSE)


def test_a_checkpoint_of_v1_1_from_before_transformers_5(source_ids, target_ids, tmp_path):
    """There "tie_word_embeddings" alone said that the projection is a matrix of its own and the logits are unscaled."""
    model = build(feed_forward_proj="gated-gelu", tie_word_embeddings=False)
    model.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    del config["scale_decoder_outputs"], config["is_gated_act"], config["dense_act_fn"]
    (tmp_path / "config.json").write_text(json.dumps({**config, "tie_word_embeddings": False}), encoding="utf-8")
    expected = answer(with_precise_norms(model), source_ids, target_ids).logits
    torch.testing.assert_close(from_huggingface(tmp_path)(source_ids, target_ids), expected, **CLOSE)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_decoder_layers": 3}, r"num_decoder_layers=3 \(only 2 is supported\)"),
        ({"layer_norm_epsilon": 1e-5}, "layer_norm_epsilon=1e-05"),
        ({"feed_forward_proj": "gelu"}, r"feed_forward_proj must be one of .*'relu'\], but is 'gelu'"),
    ],
)
def test_a_config_that_asks_for_more_is_refused(changes, message):
    with pytest.raises(SettingError, match=message):
        from_huggingface(build(**changes))


def test_the_first_checkpoints_hold_a_table_for_nothing(source_ids, target_ids):
    model = build()
    expected = from_huggingface(model)(source_ids, target_ids)
    model.decoder.block[0].layer[1].EncDecAttention.relative_attention_bias = torch.nn.Embedding(8, 3)
    assert torch.equal(from_huggingface(model)(source_ids, target_ids), expected)
