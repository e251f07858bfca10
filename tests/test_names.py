"""Names of PyTorch and transformers are answered with ours, and every room hands out what its reference page lists."""

from __future__ import annotations

import inspect
import pickle
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
import torch

from ttutor.decoder import Decoder
from ttutor.encoder import Encoder, EncoderLayer
from ttutor.generation import beam_search, sample
from ttutor.layers import LayerNorm
from ttutor.masks import causal_mask
from ttutor.multihead import MultiHeadAttention
from ttutor.names import OURS
from ttutor.positions import RotaryPositions
from ttutor.tokenization import CharacterTokenizer
from ttutor.training.fit import fit
from ttutor.transformer import Transformer
from ttutor.translation.own_text import train_translator
from ttutor.variants import BERT, GPT, GPTConfig, ViT

pytestmark = pytest.mark.usefixtures("as_readers_run_it")

BOOK = Path(__file__).resolve().parents[1] / "book"
SIZES = {"vocab_size": 20, "d_model": 8, "n_heads": 2, "n_layers": 1, "d_ff": 16, "max_len": 16}
OF_THEIR_OWN = {"exercises", "grading", "widgets", "figures", "drawing", "claims", "measurement", "assets"}
"""Rooms whose pages list the inner modules as well, for whoever writes exercises, grades or explorers."""


@pytest.fixture(scope="module")
def gpt() -> GPT:
    return GPT(GPTConfig(**SIZES))


CALLS = {
    "constructor": (
        lambda: MultiHeadAttention(embed_dim=8, num_heads=2),
        "no `embed_dim`: here it is `d_model`; no `num",
    ),
    "one of two": (lambda: Encoder(8, 2, 16, num_layers=2), "Encoder has no `num_layers`: here it is `n_layers`$"),
    "config": (lambda: GPTConfig(hidden_size=8), "GPTConfig has no `hidden_size`: here it is `d_model`"),
    "model": (lambda: GPT(vocab_size=9, n_embd=8), r"GPT\(GPTConfig\(\.\.\.\)\); its `n_embd` is here `d_model`"),
    "norm": (lambda: LayerNorm(normalized_shape=8), "LayerNorm has no `normalized_shape`: here it is `d_model`"),
    "positions": (lambda: RotaryPositions(dim=8), "RotaryPositions has no `dim`"),
    "call": (lambda: MultiHeadAttention(8, 2)(torch.ones(1, 2, 8), key_padding_mask=None), r"mask=~key_padding_mask\["),
    "layer": (lambda: EncoderLayer(8, 2, 16)(torch.ones(1, 2, 8), src_mask=None), "EncoderLayer has no `src_mask`"),
    "function": (lambda: fit(None, [], None, steps=1, lr=1e-3), "fit has no `lr`: here it is `learning_rate`"),
    "search": (lambda: beam_search(None, None, max_new_tokens=3, num_beams=2), "here it is `beam_size`"),
}


@pytest.mark.parametrize("case", CALLS)
def test_a_keyword_of_theirs_is_answered_with_ours(case: str) -> None:
    call, expected = CALLS[case]
    with pytest.raises(TypeError, match=expected):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: MultiHeadAttention(8, 2, heads_of_mine=3),
        lambda: GPTConfig(nonsense=3),
        lambda: fit(None, [], None, steps=1, nonsense=3),
        lambda: Encoder(8, 2, 16, 1)(torch.ones(1, 2, 8), nonsense=3),
    ],
)
def test_a_name_of_nobody_keeps_the_message_of_python(call) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument '.*'; it takes [a-z_]+, [a-z_]+"):
        call()


def test_an_error_inside_a_call_stays_as_it_is() -> None:
    def loss(model: torch.nn.Module, batch: object) -> torch.Tensor:
        raise TypeError("mine")

    with pytest.raises(TypeError, match="^mine$"):
        fit(torch.nn.Linear(1, 1), [1], loss, steps=1)


def test_methods_of_theirs_are_answered(gpt: GPT) -> None:
    with pytest.raises(AttributeError, match="GPT has no `generate`: here it is a function: `greedy_search`"):
        gpt.generate  # noqa: B018
    for model in (GPT, BERT, ViT, Transformer):
        with pytest.raises(AttributeError, match=f"{model.__name__} has no `from_pretrained`: .*from_huggingface"):
            model.from_pretrained  # noqa: B018
    with pytest.raises(AttributeError, match="GPT has no `lm_head`: here it is `to_logits`"):
        gpt.lm_head  # noqa: B018
    with pytest.raises(AttributeError, match="GPTConfig has no `hidden_size`: here it is `d_model`"):
        gpt.config.hidden_size  # noqa: B018
    assert not hasattr(gpt, "generate")
    assert not hasattr(GPT, "from_pretrained")
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        gpt.nonsense  # noqa: B018


IMPORTS = {
    "from ttutor.multihead import MultiheadAttention": "here it is `ttutor.multihead.MultiHeadAttention`",
    "from ttutor.transformer import TransformerEncoder": "here it is `ttutor.encoder.Encoder`",
    "from ttutor.variants import AutoModel": "from_huggingface",
    "from ttutor import GPT": "GPT stands in another room: from ttutor.variants import GPT",
    "from ttutor.attention import MultiHeadAttention": "from ttutor.multihead import MultiHeadAttention",
    "from ttutor.exercises import list_exercises": "here it is `ttutor.exercises.exercises`",
    "from ttutor.utils import set_seed": "ttutor has no `utils`: here it is no room: a helper stands with its subject",
    "import ttutor.models.gpt": "here it is `ttutor.variants`",
    "from ttutor import datasets": "here it is `ttutor.corpora`",
    "import ttutor.multi_head_attention": "here it is `ttutor.multihead.MultiHeadAttention`",
    "import ttutor.llama": "Llama stands in another room: from ttutor.variants import Llama",
    "from ttutor.mask import causal_mask": "there is no ttutor.mask; did you mean ttutor.masks?",
    "import ttutor.nonsense": "No module named 'ttutor.nonsense'",
    "from ttutor.masks import nonsense": "cannot import name 'nonsense' from 'ttutor.masks'; it has CAUSAL, Mask, ",
    "from ttutor.masks import casual_mask": "did you mean `causal_mask`? from ttutor.masks import causal_mask",
    "from ttutor.grading import Grader": "here it is a command: `ttutor grade submissions",
    "from ttutor.figures import plot_attention": "here it is `ttutor.figures.Heatmap`",
    "from ttutor.attention import self_attention": "has no `self_attention`: here it is `ttutor.multihead.MultiHead",
    "from ttutor.attention import attention_scores": "did you mean `attention_weights`? from ttutor.attention import",
    "from ttutor.generation import nonsense": "cannot import name 'nonsense' from 'ttutor.generation'; it has among",
    "from ttutor.layers import layernorm": "did you mean `layer_norm`? from ttutor.layers import",
}


@pytest.mark.parametrize("line", IMPORTS)
def test_an_import_of_what_is_not_there_says_where_it_is(line: str) -> None:
    with pytest.raises(ImportError, match=re.escape(IMPORTS[line])):
        exec(line)


ALONE = {
    "from ttutor import nonsense": "cannot import name 'nonsense' from 'ttutor'",
    "from ttutor.variants import nonsense": "cannot import name 'nonsense' from 'ttutor.variants'; it has among",
    "from ttutor.grading import load_assignment": "did you mean `read_assignment`? from ttutor.grading import",
    "import ttutor; ttutor.attention": "ttutor.attention is not loaded yet: import ttutor.attention",
    "import ttutor.grading; print(hasattr(ttutor.grading, 'load_assignment'))": "False",
}


@pytest.mark.parametrize("line", ALONE)
def test_a_room_that_loads_on_first_use_says_it_too(line: str) -> None:
    """In a Python of its own: what checks annotations stands between a room and whoever asks it."""
    done = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True)
    assert ALONE[line] in done.stdout + done.stderr


def test_parts_of_a_layer_are_answered_and_a_subclass_may_have_them() -> None:
    layer = EncoderLayer(8, 2, 16)
    with pytest.raises(AttributeError, match="EncoderLayer has no `self_attn`: here it is `self_attention`"):
        layer.self_attn  # noqa: B018
    with pytest.raises(AttributeError, match="MultiHeadAttention has no `in_proj_weight`: here it is three: `to_query"):
        layer.self_attention.in_proj_weight  # noqa: B018
    assert not hasattr(layer, "linear1")

    class Mine(EncoderLayer):
        def __init__(self) -> None:
            super().__init__(8, 2, 16)
            self.mlp = torch.nn.Linear(8, 8)

    assert isinstance(Mine().mlp, torch.nn.Linear)


def test_whatever_a_table_says_of_a_part_is_a_part() -> None:
    layer = Decoder(8, 2, 16, 1)
    for name in ("self_attn", "multihead_attn", "linear1", "linear2", "ln_2", "norm3"):
        (path,) = re.findall(r"`([\w.]+)`", OURS[name])
        assert layer.layers[0].get_submodule(path) is not None
    assert re.findall(r"`([\w.]+)`", OURS["norm1"] + OURS["norm2"]) == [
        "around_attention.norm",
        "around_self_attention.norm",
        "around_feed_forward.norm",
        "around_cross_attention.norm",
    ]


def test_methods_of_other_tokenizers_are_answered() -> None:
    tokenizer = CharacterTokenizer("abc")
    with pytest.raises(AttributeError, match="CharacterTokenizer has no `tokenize`: here it is `split`"):
        tokenizer.tokenize  # noqa: B018
    with pytest.raises(AttributeError, match="CharacterTokenizer has no `from_pretrained`"):
        CharacterTokenizer.from_pretrained  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        tokenizer.nonsense  # noqa: B018
    with pytest.raises(TypeError, match="CharacterTokenizer cannot be called: here it is `encode`, of a text"):
        tokenizer("abc")
    with pytest.raises(TypeError, match="encode has no `return_tensors`: here it is `torch.tensor"):
        tokenizer.encode("abc", return_tensors="pt")
    with pytest.raises(TypeError, match="decode has no `skip_special_tokens`: here it is not needed"):
        tokenizer.decode([4], skip_special_tokens=True)
    assert pickle.loads(pickle.dumps(tokenizer)).vocabulary == tokenizer.vocabulary


def test_a_name_that_is_nearly_right_is_answered_and_not_there() -> None:
    positions = import_module("ttutor.positions")
    with pytest.raises(AttributeError, match="did you mean `SinusoidalPositions`. from ttutor.positions import"):
        positions.SinusoidalPosition  # noqa: B018
    assert not hasattr(positions, "SinusoidalPosition")


def named(module: str) -> object:
    """What `ttutor.room.Name` leads to, a module or something in one."""
    found: object = import_module("ttutor")
    for part in module.split(".")[1:]:
        found = getattr(found, part, None) or import_module(f"{found.__name__}.{part}")
    return found


def test_whatever_the_table_names_is_there() -> None:
    named_there = {name for text in OURS.values() for name in re.findall(r"ttutor(?:\.\w+)+", text)}
    assert len(named_there) > 20
    assert all(named(name) is not None for name in named_there)


def listed(module: ModuleType, members: str) -> list[str]:
    """The functions and classes that the reference shows of a module."""
    names = re.findall(r"\w+", members) or list(getattr(module, "__all__", []))
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
    shown = names or [name for name in own if not name.startswith("_")]
    return [name for name in shown if callable(getattr(module, name)) and getattr(module, name).__doc__]


def test_every_room_hands_out_what_its_reference_page_lists() -> None:
    compared, missing = 0, []
    for page in sorted(BOOK.glob("api-*.md")):
        blocks = re.findall(r"automodule:: (\S+)\n(?:   :members:(.*))?", page.read_text(encoding="utf-8"))
        for name, members in blocks:
            room = import_module(".".join(name.split(".")[:2]))
            if room.__name__.removeprefix("ttutor.") in OF_THEIR_OWN:
                continue
            module = import_module(name)
            for one in listed(module, members):
                compared += 1
                is_module = isinstance(getattr(room, one, None), ModuleType)  # `what_if` is in a module of its name
                if not is_module and getattr(room, one, None) is not getattr(module, one):
                    missing.append(f"{room.__name__}: {one}")
    assert missing == []
    assert compared > 300


def test_every_room_of_the_reference_answers() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in BOOK.glob("api-*.md"))
    rooms = {".".join(name.split(".")[:2]) for name in re.findall(r"automodule:: (\S+)", pages)}
    silent = {room for room in rooms if "__getattr__" not in vars(import_module(room))}
    machinery = {"ttutor.assets", "ttutor.errors", "ttutor.names", "ttutor.other_names", "ttutor.shapes"}
    assert silent == machinery | {"ttutor.minimal"}, "minimal imports from nowhere else"
    assert len(rooms) > 25


@pytest.mark.parametrize(
    "room", ["variants", "training", "corpora", "translation", "pretrained", "tokenization", "grading"]
)
def test_a_lazy_room_has_all_that_it_promises(room: str) -> None:
    module = import_module(f"ttutor.{room}")
    assert [name for name in module.__all__ if getattr(module, name, None) is None] == []


def test_signatures_and_pickles_are_those_of_the_classes(gpt: GPT) -> None:
    assert list(inspect.signature(MultiHeadAttention).parameters)[:3] == ["d_model", "n_heads", "n_kv_heads"]
    assert list(inspect.signature(GPTConfig).parameters)[:2] == ["vocab_size", "d_model"]
    assert "learning_rate" in inspect.signature(fit).parameters
    assert pickle.loads(pickle.dumps(gpt.config)) == gpt.config
    assert type(pickle.loads(pickle.dumps(gpt))) is GPT
    assert pickle.loads(pickle.dumps(fit)) is fit


def test_what_needs_no_argument_has_a_default(gpt: GPT) -> None:
    token_ids = torch.tensor([[4, 5]])
    torch.manual_seed(1)
    first = sample(gpt, token_ids, max_new_tokens=6)
    torch.manual_seed(1)
    assert sample(gpt, token_ids, max_new_tokens=6) == first
    for stack in (Encoder(8, 2, 16, 2, dropout=0.3), Decoder(8, 2, 16, 2, dropout=0.3)):
        assert {module.p for module in stack.modules() if isinstance(module, torch.nn.Dropout)} == {0.0, 0.3}
    sizes = {"d_model": 16, "d_ff": 32, "n_heads": 2, "n_layers": 1, "vocab_size": 270, "steps": 1}
    pairs = [(f"the cat {number}", f"le chat {number}") for number in range(30)]
    with pytest.warns(UserWarning, match="hardly learned yet"):
        translator = train_translator(pairs, quiet=True, **sizes)
    assert isinstance(translator("the cat 1").text, str)


def test_a_causal_mask_of_no_number_says_so() -> None:
    with pytest.raises(TypeError, match=r"n_queries must be a whole number, .* came a tensor of shape \(2, 5\)"):
        causal_mask(torch.ones(2, 5))
    with pytest.raises(TypeError, match="n_keys must be a whole number, .* came 2.5"):
        causal_mask(2, 2.5)


def test_pairs_of_another_form_are_refused() -> None:
    with pytest.raises(ValueError, match=r"but pair 2 is \('a',\)"):
        train_translator([("a", "b"), ("a",)], quiet=True)
    with pytest.raises(ValueError, match="leave the target out"):
        train_translator([("a", "b")], "my.fr", quiet=True)


def test_a_module_that_is_there_is_not_refused_to_whoever_looks_in_the_wrong_folder() -> None:
    ours = next(finder for finder in sys.meta_path if getattr(finder, "__name__", "") == "_OtherModules")
    assert ours.find_spec("ttutor.widgets", ["elsewhere"]) is None
    with pytest.raises(ModuleNotFoundError, match=r"there is no ttutor.widget; did you mean ttutor.widgets\?"):
        ours.find_spec("ttutor.widget", ["elsewhere"])


def test_a_recipe_and_a_translator_answer_and_no_completion_offers_what_only_raises() -> None:
    from ttutor.errors import SettingError
    from ttutor.tokenization import SubwordTokenizer
    from ttutor.training import TrainingRecipe
    from ttutor.translation import load_default

    with pytest.raises(SettingError, match="a recipe has no `lr`: here it is `learning_rate`"):
        TrainingRecipe.preset("embedded").replace(lr=0.1)
    with pytest.raises(SettingError, match="`tokens_per_batch` in a recipe"):
        TrainingRecipe.preset("embedded").replace(batch_size=8)
    with pytest.raises(TypeError, match="translate has no `num_beams`: here it is `beam_size`"):
        load_default()("A dog runs.", num_beams=3)
    tokenizer = SubwordTokenizer.train(["a dog"], vocab_size=270)
    assert "decode" in dir(tokenizer)
    assert not {"from_pretrained", "batch_decode"} & set(dir(tokenizer))
