"""The translator: order, batches, beams, and what stands in its folder."""

import pytest
import torch

from ttutor.corpora.corpus import embedded_corpus
from ttutor.errors import FileError, InputError, SettingError
from ttutor.tokenization import PAD_ID
from ttutor.training.batching import make_batch
from ttutor.training.checkpoint import TENSORS
from ttutor.translation import engine
from ttutor.translation.translator import Translator

pytestmark = pytest.mark.trainer


CORPUS = embedded_corpus(0, {"train": 30, "validation": 5, "test": 5})
SENTENCES = [source for source, _ in CORPUS.train[:9]]


@pytest.fixture
def translator(learned):
    return Translator.of(learned)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_batch_answers_in_order_what_each_sentence_alone_answers(translator, beam_size):
    together = translator.translate(SENTENCES, beam_size=beam_size)
    alone = [translator(sentence, beam_size=beam_size) for sentence in SENTENCES]
    assert [answer.source for answer in together] == SENTENCES
    assert [answer.text for answer in together] == [answer.text for answer in alone]
    right = [answer.text == target for answer, (_, target) in zip(together, CORPUS.train[:9], strict=True)]
    assert sum(right) >= 8  # where sums round otherwise, one of them may be learned a little less well
    assert [answer.score for answer in together] == pytest.approx([answer.score for answer in alone], abs=1e-4)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_batches_side_by_side_answer_what_one_after_the_other_answers(monkeypatch, translator, beam_size):
    monkeypatch.setattr("ttutor.translation.translator.ROWS", 2 * beam_size)  # batches of two
    before = torch.get_num_threads()
    one, *others = (translator.translate(SENTENCES, beam_size=beam_size, threads=n) for n in (1, 2, 3))
    assert others == [one, one]
    assert torch.get_num_threads() == before
    with pytest.raises(SettingError, match="threads must be at least 1, got 0"):
        translator.translate(SENTENCES, threads=0)


def test_the_greedy_score_is_the_log_probability_of_the_answer(learned, translator):
    sentence = SENTENCES[0]
    answer = translator(sentence, beam_size=1)
    pair = (learned.tokenizer.encode(sentence), learned.tokenizer.encode(answer.text))
    batch = make_batch([pair])
    with torch.no_grad():
        log_probabilities = translator.model(batch.source, batch.target_in).log_softmax(dim=-1)
    expected = sum(log_probabilities[0, position, token] for position, token in enumerate(batch.target_out[0]))
    assert answer.score == pytest.approx(expected.item(), abs=1e-4)
    assert PAD_ID not in batch.target_out


@pytest.mark.parametrize("beam_size", [1, 3])
def test_in_bf16_it_knows_its_sentences_too_and_its_products_are_in_bf16(translator, beam_size):
    formats = []
    hook = translator.model.to_logits.register_forward_hook(lambda layer, inputs, logits: formats.append(logits.dtype))
    exact, rounded = (translator.translate(SENTENCES, beam_size=beam_size, precision=name) for name in ("fp32", "bf16"))
    hook.remove()
    assert set(formats) == {torch.float32, torch.bfloat16}
    assert [answer.text for answer in rounded] == [answer.text for answer in exact]
    assert [answer.score for answer in rounded] == pytest.approx([answer.score for answer in exact], abs=0.05)
    assert [answer.score for answer in rounded] != [answer.score for answer in exact]


def test_alternatives_are_ranked_and_different(translator):
    answer = translator(SENTENCES[0], beam_size=4)
    scores = [answer.score, *(score for _, score in answer.alternatives)]
    assert scores == sorted(scores, reverse=True)
    assert len({answer.text, *(text for text, _ in answer.alternatives)}) == 4


def test_it_translates_with_the_averaged_weights(learned, translator):
    for name, parameter in translator.model.named_parameters():
        assert torch.equal(parameter.detach(), learned.average.tensors[name])


def test_loaded_from_its_folder_it_answers_the_same(begin):
    trainer = begin()
    trainer.run()
    loaded, direct = Translator.load(trainer.folder.path), Translator.of(trainer)
    assert [one.text for one in loaded.translate(SENTENCES)] == [one.text for one in direct.translate(SENTENCES)]
    assert loaded.messages == []


@pytest.mark.parametrize("sentence", ["", "   ", "."])
def test_nothing_to_translate_is_translated_to_nothing(translator, sentence):
    answers = translator.translate([SENTENCES[0], sentence, SENTENCES[1]])
    assert answers[1].text == ""
    assert [answer.source for answer in answers] == [SENTENCES[0], sentence, SENTENCES[1]]


def test_an_answer_is_one_line_whatever_the_model_writes(translator, monkeypatch):
    monkeypatch.setattr(translator.tokenizer, "decode", lambda _: "one\nanswer\x0bon \u2028 a line")
    assert translator(SENTENCES[0]).text == "one answer on a line"


def test_a_beam_below_one_is_named(translator):
    with pytest.raises(ValueError, match="beam_size must be at least 1, got 0"):
        translator("x", beam_size=0)


def test_a_training_that_has_not_ended_is_told(begin):
    trainer = begin()
    trainer.run()
    assert Translator.load(trainer.folder.path).unfinished == ""
    (max(trainer.folder.checkpoints.iterdir()) / TENSORS).write_bytes(b"damaged")
    assert Translator.load(trainer.folder.path).unfinished == "this model has trained 12 of 14 steps"


def test_a_sentence_longer_than_the_model_reads_is_told(translator):
    n_tokens = len(translator.tokenizer.encode(("the " * 3000).strip()))
    answer = translator("the " * 3000, beam_size=1)
    assert answer.is_cut
    assert answer.cut == f"it has {n_tokens:,} tokens, of which the model read the first 255"
    whole = translator(SENTENCES[0])
    assert (whole.is_cut, whole.cut) == (False, "")


@pytest.mark.parametrize("beam_size", [1, 2])
def test_a_translation_without_an_end_is_told(begin, beam_size, monkeypatch):
    untrained = Translator.of(begin())
    monkeypatch.setattr(engine, "EOS_ID", 299)  # the search looks for an end that never comes
    answer = untrained("the dog sleeps", beam_size=beam_size)
    assert answer.cut.startswith("no end of the translation came within ")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam_size": 301}, "at most half the vocabulary, 300, got 301"),
        ({"length_penalty": 1e5}, "length_penalty must be a number from 0 to 10, got 100000.0"),
        ({"length_penalty": -0.1}, "length_penalty must be a number from 0 to 10, got -0.1"),
        ({"length_penalty": float("nan")}, "length_penalty must be a number from 0 to 10, got nan"),
        ({"precision": "fp8"}, "precision must be auto, fp32 or bf16, got 'fp8'"),
    ],
)
def test_impossible_searches_are_named(translator, options, message):
    with pytest.raises(SettingError, match=message):
        translator("x", **options)


def test_what_is_no_text_is_named(translator):
    with pytest.raises(InputError, match=r"sentence 2 is no text .* character 4 is '\\udcff'"):
        translator.translate(["good", "bad\udcff"])


def test_a_folder_that_holds_no_run_is_named(tmp_path, begin):
    with pytest.raises(FileError, match="there is no trained model in .*ttutor train"):
        Translator.load(tmp_path / "nowhere")
    folder = begin().folder
    with pytest.raises(FileError, match="there is no checkpoint"):
        Translator.load(folder.path)


def test_a_checkpoint_of_another_model_is_named(begin):
    trainer = begin()
    trainer.run()
    recipe = trainer.folder.path / "recipe.toml"
    recipe.write_text(recipe.read_text().replace("d_ff = 32 ", "d_ff = 48 "))
    with pytest.raises(FileError, match=r"another model than .*: d_ff=32 \(the recipe has 48\)"):
        Translator.load(trainer.folder.path)
