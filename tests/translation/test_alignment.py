"""Where a translation looked: shapes, sums, padding, words and links, and how a terminal shows them."""

import json

import pytest
import torch

from ttutor.corpora.corpus import embedded_corpus
from ttutor.inside import capture
from ttutor.tokenization import EOS_ID
from ttutor.translation.alignment import CrossAttention
from ttutor.translation.translator import Translator

pytestmark = pytest.mark.trainer

CORPUS = embedded_corpus(0, {"train": 30, "validation": 5, "test": 5})
SENTENCES = [source for source, _ in CORPUS.train[:9]]
N_LAYERS, N_HEADS = 2, 2


@pytest.fixture(scope="module")
def translator(learned):
    return Translator.of(learned)


def by_hand(*rows, source=("▁the", "▁dog", "<eos>"), target=None) -> CrossAttention:
    target = target or tuple(f"▁w{number}" for number in range(len(rows)))
    return CrossAttention(source, target, torch.tensor([[rows]]))


def test_one_sentence_comes_with_its_attention(translator):
    answer = translator(SENTENCES[0])
    tokens = translator.tokenizer.encode(SENTENCES[0])
    attention = answer.attention
    assert attention.weights.shape == (N_LAYERS, N_HEADS, len(attention.target_tokens), len(tokens) + 1)
    assert "".join(attention.source_tokens[:-1]).replace("▁", " ") == " " + SENTENCES[0]
    assert "".join(attention.target_tokens[:-1]).replace("▁", " ").strip() == answer.text
    assert (attention.source_tokens[-1], attention.target_tokens[-1]) == ("<eos>", "<eos>")


def test_many_sentences_come_without_unless_asked(translator, monkeypatch):
    assert all(answer.attention is None for answer in translator.translate(SENTENCES))
    monkeypatch.setattr("ttutor.translation.translator.cross_attention", lambda *_: pytest.fail("was run"))
    translator.translate(SENTENCES)
    with pytest.raises(pytest.fail.Exception):
        translator.translate(SENTENCES, attention=True)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_rows_add_up_to_one_and_padding_never_matters(translator, beam_size):
    together = translator.translate(SENTENCES, beam_size=beam_size, attention=True)
    assert len({len(answer.attention.source_tokens) for answer in together}) > 1
    for sentence, answer in zip(SENTENCES, together, strict=True):
        alone = translator(sentence, beam_size=beam_size).attention
        assert answer.attention.source_tokens == alone.source_tokens
        assert answer.attention.target_tokens == alone.target_tokens
        torch.testing.assert_close(answer.attention.weights, alone.weights, atol=1e-5, rtol=0)
        torch.testing.assert_close(alone.weights.sum(dim=-1), torch.ones(alone.weights.shape[:-1]))


def test_it_is_what_the_decoder_does_while_it_decodes_token_by_token(translator):
    """The pass over the whole translation sees what the search saw, one query at a time, with its cache."""
    answer = translator(SENTENCES[0], beam_size=1)
    ids = [*translator.tokenizer.encode(SENTENCES[0]), EOS_ID]
    with capture(translator.model, "decoder.layers.*.cross_attention.weights") as seen:
        translator._search(translator.engine, [ids[:-1]], 1, 0.6)
    steps = [torch.cat(seen.calls(name), dim=2)[0] for name in seen]
    torch.testing.assert_close(answer.attention.weights, torch.stack(steps), atol=1e-5, rtol=0)


def test_given_translations_are_aligned(translator):
    answers = translator.translate(SENTENCES, attention=True)
    pairs = [(answer.source, answer.text) for answer in answers if not answer.is_cut]
    assert len(pairs) > 3
    whole = [answer.attention for answer in answers if not answer.is_cut]
    same = [
        (ours, theirs)
        for ours, theirs in zip(translator.align(pairs), whole, strict=True)
        if ours.target_tokens == theirs.target_tokens  # a text may be written in other tokens than the model wrote
    ]
    assert len(same) > 3
    for ours, theirs in same:
        torch.testing.assert_close(ours.weights, theirs.weights, atol=1e-5, rtol=0)


@pytest.mark.parametrize("pair", [("", ""), ("the dog sleeps", ""), ("", "le chien dort"), ("the " * 400, "le " * 400)])
def test_strange_pairs_are_aligned(translator, pair):
    (attention,) = translator.align([pair])
    longest = translator.model.config.max_len
    assert len(attention.source_tokens) == min(len(translator.tokenizer.encode(pair[0])) * bool(pair[0]) + 1, longest)
    assert isinstance(str(attention), str)
    assert attention.target_tokens[-1] == "<eos>"


def test_nothing_to_translate_has_no_attention(translator):
    answers = translator.translate(["", SENTENCES[0]], attention=True)
    assert answers[0].attention is None
    assert answers[1].attention is not None


def test_weights_between_words_by_hand():
    """The source word "dogs" has two tokens, whose weights add; the target word "chiens" has two, whose mean counts."""
    attention = by_hand(
        [0.5, 0.2, 0.2, 0.1],
        [0.1, 0.3, 0.5, 0.1],
        [0.2, 0.1, 0.6, 0.1],
        [0.0, 0.0, 0.0, 1.0],
        source=("▁the", "▁dog", "s", "<eos>"),
        target=("▁les", "▁chi", "ens", "<eos>"),
    )
    torch.testing.assert_close(attention.by_word(), torch.tensor([[0.5, 0.4], [0.15, 0.75]]))
    assert [(link.target.text, link.source.text) for link in attention.links()] == [("les", "the"), ("chiens", "dogs")]
    assert [link.weight for link in attention.links()] == pytest.approx([0.5, 0.75])


def test_layers_are_chosen_or_averaged():
    weights = torch.tensor([[[[0.9, 0.1]], [[0.7, 0.3]]], [[[0.0, 1.0]], [[0.2, 0.8]]]])
    attention = CrossAttention(("▁a", "▁b"), ("▁c",), weights)
    torch.testing.assert_close(attention.mean(0), torch.tensor([[0.8, 0.2]]))
    torch.testing.assert_close(attention.mean(1), torch.tensor([[0.1, 0.9]]))
    torch.testing.assert_close(attention.mean(), torch.tensor([[0.45, 0.55]]))
    with pytest.raises(IndexError, match="layers 0 to 1, but layer 2"):
        attention.by_word(2)
    with pytest.raises(IndexError, match="but layer -1"):
        attention.mean(-1)


def test_a_word_that_looks_at_the_end_mark_has_no_link():
    attention = by_hand([0.3, 0.3, 0.4], [0.5, 0.1, 0.4])
    assert [(link.target.text, link.source.text) for link in attention.links()] == [("w1", "the")]
    assert str(attention) == "w0  w1\n-   the\n-   0.50"


def test_json_holds_tokens_weights_and_links(translator):
    attention = translator(SENTENCES[0]).attention
    body = json.loads(json.dumps(attention.as_dict()))
    assert body["source_tokens"] == list(attention.source_tokens)
    assert torch.tensor(body["weights"]).shape == (len(attention.target_tokens), len(attention.source_tokens))
    for link in body["links"]:
        tokens = attention.target_tokens[link["target"]["start"] : link["target"]["end"]]
        assert "".join(tokens).replace("▁", "") == link["target"]["text"]
