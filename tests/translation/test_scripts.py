"""Text of ten scripts, as people and machines write it: read in use as in training, given back as it was written."""

import unicodedata
from types import SimpleNamespace

import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st

from ttutor.corpora.corpus import Corpus, file_corpus
from ttutor.corpora.text_style import ENDS, TextStyle
from ttutor.generation import Hypothesis
from ttutor.tokenization import EOS_ID
from ttutor.tokenization.subword import SubwordTokenizer
from ttutor.training.preparation import token_pairs
from ttutor.training.recipe import TrainingRecipe
from ttutor.translation.evaluation import evaluate
from ttutor.translation.export.folder import portable_tokenizer
from ttutor.translation.translator import EngineTranslator

SCRIPTS = {
    "Latin": ["Die Kinder spielen im Garten.", "Où est-ce que l'oiseau dort ?", "¿Qué hora es?", "Łódź i pies"],
    "Cyrillic": ["Собака спит.", "Где мой синий йогурт?", "Їжак і я"],
    "Greek": ["Ο σκύλος κοιμάται.", "Πού είναι το σπίτι μου;", "Οδός και ΟΔΟΣ"],
    "Arabic": ["الكلب ينام.", "أَيْنَ بَيْتِي؟", "می\u200cخواهم بروم۔"],
    "Hebrew": ["הכלב ישן.", "שָׁלוֹם עֲלֵיכֶם", "צה״ל ושב״כ"],
    "Devanagari": ["कुत्ता सो रहा है।", "मेरा घर कहाँ है?", "हिन्दी और फ़ारसी"],
    "Thai": ["สุนัขกำลังนอนหลับ", "บ้านของฉันอยู่ที่ไหน", "น้ำเย็น ใช้ iPhone"],
    "Chinese": ["你好。", "狗在睡觉！", "我有iPhone手机", "猫\u3000犬"],
    "Japanese": ["犬が寝ています。", "私の家はどこですか？", "コーヒーを飲む", "ﾊﾝｶｸ\u3000だ"],
    "Korean": ["개가 자고 있다.", "우리 집은 어디예요?", "커피를 마셔요"],
}
KINDS = {
    "as it stands": str,
    "composed": lambda text: unicodedata.normalize("NFC", text),
    "decomposed": lambda text: unicodedata.normalize("NFD", text),
    "lower case": str.lower,
    "no-break blanks": lambda text: text.replace(" ", "\u00a0"),
    "narrow and wide blanks": lambda text: text.replace(" ", "\u202f", 1).replace(" ", "\u3000"),
    "two blanks and a tab": lambda text: text.replace(" ", "  ", 1).replace(" ", "\t", 3),
    "without marks": lambda text: text.rstrip("".join(ENDS) + ";"),
    "lower case without marks": lambda text: text.lower().rstrip("".join(ENDS) + ";"),
}
SIZES = SimpleNamespace(vocab_size=1_000, max_len=512)


class Parrot:
    """An engine that answers each training source with its translation, and keeps what it was asked."""

    def __init__(self, pairs):
        self.config, self.answers, self.asked = SIZES, {(*source, EOS_ID): target for source, target in pairs}, []

    def search(self, sources, **options):
        self.asked += sources
        return [[Hypothesis(tuple(self.answers[tuple(one)]), 0.0, True, 0.0)] for one in sources]


def trained(pairs):
    """What a training on these pairs makes, the weights aside: the tokens, and a translator of the same style."""
    corpus = Corpus("a text", pairs, pairs)
    tokenizer = SubwordTokenizer.train([one for pair in pairs for one in pair], vocab_size=600)
    learnt, left_out = token_pairs(pairs, tokenizer, max_tokens=400, style=corpus.style())
    assert left_out == 0
    return learnt, EngineTranslator(Parrot(learnt), tokenizer, corpus.style())


def targets_of(script, kind):
    other = list(SCRIPTS)[(list(SCRIPTS).index(script) + 3) % len(SCRIPTS)]
    return [KINDS[kind](one) for one in SCRIPTS[other]]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("script", SCRIPTS)
def test_a_training_sentence_is_read_in_use_as_in_training_and_answered_as_learnt(script, kind, tmp_path):
    """Through files, as people train; the answers are in another script, and come back letter by letter."""
    lines = [KINDS[kind](one) for one in SCRIPTS[script]], targets_of(script, kind)
    paths = [tmp_path / "a", tmp_path / "b"]
    for path, side in zip(paths, lines, strict=True):
        path.write_text("".join(line + "\n" for line in side[:3]), encoding="utf-8")
    pairs = file_corpus(*paths, validation=tuple(paths)).train
    learnt, translator = trained(pairs)
    answers = translator.translate([source for source, _ in pairs])
    assert sorted(translator.engine.asked) == sorted([*source, EOS_ID] for source, _ in learnt)
    assert [answer.text for answer in answers] == [target for _, target in pairs]
    for source, _ in pairs:
        assert translator.style.prepare(source) == source
        prepared = portable_tokenizer(translator.tokenizer, translator.style).encode(source).ids
        assert prepared == [*translator.tokenizer.encode(source), EOS_ID]


texts = st.text(st.characters(exclude_categories=["Cs"])).map(str.strip)
mixed = st.lists(
    texts | st.sampled_from([one for of_one in SCRIPTS.values() for one in of_one]), min_size=1, max_size=4
)


@settings(max_examples=200)
@given(mixed, mixed, st.sampled_from(list(KINDS)), texts)
def test_any_text_is_prepared_as_it_stands_and_twice_is_once(sources, targets, kind, other):
    sources = [KINDS[kind](one).strip() for one in sources]
    style = TextStyle.of(sources, targets)
    assert [style.prepare(one) for one in sources] == sources
    assert [style.prepare_answer(one) for one in targets] == targets
    once = style.prepare(other)
    assert style.prepare(once) == once
    assert style.restore(other, once) == TextStyle().restore(other, once)
    restored = style.restore(once, other)
    assert style.restore(restored, other) == restored


LOWER = {
    "Italian": ("i gatti dormono", "I gatti dormono", "i gatti dormono"),
    "Polish": ("kot i pies", "Kot I pies", "kot i pies"),
    "English with its pronoun": ("the dog and I run", "The dog and i run", "the dog and I run"),
    "English without": ("i am here", "I am here", "i am here"),
    "both": ("chapter i and I", "Chapter I and i", "chapter I and i"),
    "Greek": ("ο σκύλος", "Ο ΣΚΎΛΟΣ", "ο σκύλος"),
    "Russian": ("собака и я", "Собака И я", "собака и я"),
    "a script without capitals": ("你好", "iPhone你好", "iPhone你好"),
}


@pytest.mark.parametrize(("corpus", "given", "read"), LOWER.values(), ids=LOWER)
def test_a_reader_s_sentence_takes_the_form_of_a_text_in_lower_case(corpus, given, read):
    assert TextStyle.of([corpus]).prepare(given) == read


@pytest.mark.parametrize(
    ("source", "target", "original", "answer", "restored"),
    [
        ("你好。", "Hello.", "你好!", "Hello.", "Hello."),
        ("你好", "Hello.", "你好。", "Hello.", "Hello."),
        ("the cat sleeps", "Le chat dort.", "The cat sleeps!", "Le chat dort.", "Le chat dort."),
        ("the cat sleeps", "die Katze schläft", "The cat sleeps!", "die Katze schläft", "die Katze schläft!"),
        ("the cat sleeps", "le chat dort", "The cat sleeps!", "«le chat» dort", "«Le chat» dort!"),
        ("où est-il", "где он", "« Où est-il ?", "где он", "Где он?"),
        ("le chat", "der\u00a0Kater  x", "le chat", "der\u00a0Kater  x", "der\u00a0Kater  x"),
        ("le chat", "der Kater", "le chat", "der\nKater\u2028x ", "der Kater x"),
    ],
)
def test_an_answer_is_changed_only_by_what_was_taken_from_the_question(source, target, original, answer, restored):
    assert TextStyle.of([source], [target]).restore(answer, original) == restored


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("script", SCRIPTS)
def test_a_frequent_word_becomes_one_token_whatever_its_marks(script, form):
    words = {
        "Latin": "été", "Cyrillic": "йогурт", "Greek": "κοιμάται", "Arabic": "كِتَابٌ", "Hebrew": "שָׁלוֹם",
        "Devanagari": "हिन्दी", "Thai": "น้ำ", "Chinese": "手机", "Japanese": "ガラス", "Korean": "커피",
    }  # fmt: skip
    word = unicodedata.normalize(form, words[script])
    tokenizer = SubwordTokenizer.train([f"{word} x"] * 300, vocab_size=1_000)
    assert len(tokenizer.encode(word)) == 1
    assert tokenizer.decode(tokenizer.encode(word)) == word


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("我有iPhone手机", ["▁我有", "iPhone", "手机"]),
        ("私は猫が好き。", ["▁私", "は", "猫", "が", "好", "き", "。"]),
        ("می\u200cخواهم", ["▁می\u200cخواهم"]),
        ("❤\ufe0f 👩\u200d👧", ["▁❤\ufe0f", "▁👩\u200d👧"]),
        ("l'été", ["▁l'", "été"]),
    ],
)
def test_where_a_text_is_cut(text, pieces):
    tokenizer = SubwordTokenizer.train([text] * 300, vocab_size=1_000)
    assert tokenizer.pieces(tokenizer.encode(text)) == pieces


SCORED = {
    "Chinese": ("zh", "zh", "今天天气很好我们去公园散步", "今天天气非常好我们去公园散步"),
    "Chinese of Taiwan": ("zh_TW", "zh", "他昨天買了一本新書", "他昨天買了一本新的書"),
    "Japanese": ("ja", "char", "私は毎朝コーヒーを飲みます", "私は毎朝お茶を飲みます"),
    "Korean": ("ko", "char", "나는 매일 아침 커피를 마신다", "나는 매일 아침 차를 마신다"),
    "Thai": ("th", "char", "ฉันไปตลาดวันนี้กับแม่", "ฉันไปตลาดเมื่อวานกับแม่"),
    "Khmer": ("km", "char", "ខ្ញុំទៅផ្សារថ្ងៃនេះ", "ខ្ញុំទៅផ្សារម្សិលមិញ"),
    "Burmese": ("my", "char", "ကျွန်တော်ဈေးသွားတယ်", "ကျွန်တော်ကျောင်းသွားတယ်"),
}


@pytest.mark.parametrize("told", ["told", "not told"])
@pytest.mark.parametrize("case", SCORED)
def test_bleu_of_a_language_without_blanks_is_sacrebleus_by_a_tokenizer_that_can_cut_it(case, told):
    language, tokenizer, found, wanted = SCORED[case]
    scores = evaluate([found], [wanted], language=language if told == "told" else "other")
    assert scores.bleu == pytest.approx(sacrebleu.corpus_bleu([found], [[wanted]], tokenize=tokenizer).score)
    assert 30 < scores.bleu_as_words < 90
    assert f"tok:{tokenizer}" in scores.bleu_signature
    assert f"tok:{tokenizer}" in scores.bleu_as_words_signature


def test_the_recipe_s_own_vocabulary_is_learnt_from_prepared_text():
    from ttutor.training.preparation import train_tokenizer

    recipe = TrainingRecipe.preset("multi30k-tiny").replace(vocab_size=400)
    pairs = [("the  dog ", "le chien"), ("the cat", "le chat")] * 20
    tokenizer = train_tokenizer(Corpus("a text", pairs, pairs), recipe)
    same = SubwordTokenizer.train([one.strip() for pair in pairs for one in pair], vocab_size=400)
    assert tokenizer.to_json() == same.to_json()
