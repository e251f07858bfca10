"""A translator in one small file: weights in eight bits, the pieces of words, and what it is and where it comes from.

The file is in the format of `safetensors`, which a browser reads as easily as Python does. Every matrix is stored as
codes with one scale a row (`ttutor.variants.quantised`); gains and biases, a few in a hundred numbers, stay as they
are. `load_default` reads the one that ships with the package.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

import safetensors.torch
import torch
from einops import reduce
from jaxtyping import Float, Int
from torch import Tensor

from ttutor.corpora.text_style import TextStyle
from ttutor.errors import FileError
from ttutor.files import foreign_reader
from ttutor.inside import capture
from ttutor.layers.unfilled import Unfilled
from ttutor.schemas import parse_json
from ttutor.tokenization import BOS_ID, EOS_ID
from ttutor.tokenization.subword import SubwordTokenizer
from ttutor.training.checkpoint import check_tensors, copy_into
from ttutor.transformer import Transformer, TransformerConfig
from ttutor.translation.translator import Translator
from ttutor.variants.quantised import Quantised, quantise

__all__ = ["PackedTranslator", "head_means", "known_words", "load_default", "load_packed", "word_number"]

DEFAULT = "page_translator"
PARTS = {
    "encoder": "encoder.layers.{}.self_attention",
    "decoder": "decoder.layers.{}.self_attention",
    "cross": "decoder.layers.{}.cross_attention",
}
"""The kinds of attention, and where in the model each layer has its own."""
ABOUT, SCALES, MEANS, KNOWN = "about", ".scales", "head_means.", "known_words"
WORD = re.compile(r"[^\W\d_]+")
LARGEST_TABLE = 100_000_000
"""Numbers in the table of positions beyond which no translator goes: it is not in the file, but made."""
NO_WORDS = torch.zeros(0, dtype=torch.int32)


@dataclass(frozen=True, eq=False)
class PackedTranslator:
    """A translator, with what the page needs beside it.

    Attributes:
        translator: model, tokenizer and style. `from_bytes` gives it the weights as eight bits hold them.
        head_means: what each head of a part gives on average, to stand in for it when it is switched off.
        known_words: the numbers (`word_number`) of the words that it read in training; empty where nobody noted them.
        card: what the model is: data, recipe, scores, limits, terms.
    """

    translator: Translator
    head_means: Mapping[str, Float[Tensor, "layers heads d_head"]]
    known_words: Int[Tensor, " words"] = field(default_factory=lambda: NO_WORDS)
    card: Mapping[str, str] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """The file; `from_bytes` reads it, and so does the explorer's script."""
        model, tensors = self.translator.model, {}
        for name, parameter in model.named_parameters():
            tensors[name] = parameter.detach()
            if parameter.ndim == 2:
                tensors[name], tensors[name + SCALES] = quantise(parameter.detach())
        tensors |= {MEANS + part: means for part, means in self.head_means.items()}
        if len(self.known_words):
            tensors[KNOWN] = self.known_words
        about = {
            "config": model.config.to_dict(),
            "tokenizer": json.loads(self.translator.tokenizer.to_json()),
            "style": asdict(self.translator.style),
            "card": dict(self.card),
        }
        return safetensors.torch.save(tensors, {ABOUT: json.dumps(about, ensure_ascii=False, separators=(",", ":"))})

    @classmethod
    def from_bytes(cls, packed: bytes) -> "PackedTranslator":
        """Read what `to_bytes` wrote.

        Raises:
            FileError: it is something else.
        """
        with foreign_reader("this", "make it again", "is no packed translator, or a damaged one"):
            tensors = safetensors.torch.load(packed)
            header = parse_json(packed[8 : 8 + int.from_bytes(packed[:8], "little")], "its header", "make it again")
            about = parse_json(header["__metadata__"][ABOUT].encode(), "its description", "make it again")
            config, style, card = TransformerConfig(**about["config"]), TextStyle(**about["style"]), about["card"]
            pieces = json.dumps(about["tokenizer"]).encode()
            weights = {
                name: Quantised(tensors[name], tensors[name + SCALES]).restored()
                if name + SCALES in tensors
                else tensor
                for name, tensor in tensors.items()
                if not name.endswith(SCALES) and not name.startswith(MEANS) and name != KNOWN
            }
            model = _filled(config, weights)
            return cls(
                Translator(model, SubwordTokenizer.from_json(pieces, "the packed tokenizer"), style),
                {part: tensors[MEANS + part] for part in PARTS if MEANS + part in tensors},
                tensors.get(KNOWN, NO_WORDS),
                card,
            )

    def strange_words(self, sentence: str) -> list[str]:
        """The words of a sentence that the translator never read in training; none where nobody noted them."""
        if not len(self.known_words):
            return []
        known = set(self.known_words.tolist())
        return [word for word in WORD.findall(sentence) if word_number(word) not in known]

    @classmethod
    def of(cls, translator: Translator, sentences: Sequence[str]) -> "PackedTranslator":
        """A translator of your own, with the means of its heads over these sentences and its translations of them."""
        answers = translator.translate(sentences, beam_size=1)
        return cls(translator, head_means(translator, [(one.source, one.text) for one in answers]))


def _filled(config: TransformerConfig, weights: Mapping[str, Tensor]) -> Transformer:
    """A model with these weights, of which nothing is made before its sizes are known to be theirs."""
    if config.n_layers > len(weights) or config.max_len * config.d_model > LARGEST_TABLE:
        raise FileError(
            f"{config.n_layers:,} layers, {config.max_len:,} positions and a width of {config.d_model:,} are those "
            "of no packed translator"
        )
    with torch.device("meta"), Unfilled():
        check_tensors(dict(Transformer(config).named_parameters()), weights, "the packed weights")
    model = Transformer(config)
    copy_into(dict(model.named_parameters()), weights, "the packed weights")
    return model


def head_means(
    translator: Translator, pairs: Sequence[tuple[str, str]]
) -> dict[str, Float[Tensor, "layers heads d_head"]]:
    """What each head hands on, averaged over all tokens of these sentences and translations."""
    model, n_layers = translator.model, translator.model.config.n_layers
    totals: dict[str, Any] = {}
    sites = {part: [where.format(layer) + ".context" for layer in range(n_layers)] for part, where in PARTS.items()}
    counts = dict.fromkeys(PARTS, 0)
    for source, target in pairs:
        longest = model.config.max_len - 1
        prepared = translator.style.prepare(source), translator.style.prepare_answer(target)
        sides = (translator.tokenizer.encode(text)[:longest] for text in prepared)
        read, written = sides
        with torch.no_grad(), capture(model, *(name for names in sites.values() for name in names)) as seen:
            model(torch.tensor([[*read, EOS_ID]]), torch.tensor([[BOS_ID, *written]]))
        for part, names in sites.items():
            context = torch.cat([seen[name] for name in names])
            total = reduce(context, "layers heads tokens d_head -> layers heads d_head", "sum")
            totals[part] = totals.get(part, 0) + total
            counts[part] += context.shape[2]
    return {part: total / counts[part] for part, total in totals.items()}


def word_number(word: str) -> int:
    """A word as a number of 32 bits, capital or not: the hash of Fowler, Noll and Vo, variant 1a.

    Example:
        >>> word_number("Cat") == word_number("cat") != word_number("cats")
        True
    """
    number = 0x811C9DC5
    for byte in word.lower().encode():
        number = (number ^ byte) * 0x01000193 % 2**32
    return number - 2**32 * (number >= 2**31)


def known_words(sentences: Iterable[str]) -> Int[Tensor, " words"]:
    """The numbers of all words in these sentences, by which an unknown word is known without a list of words."""
    words = {word for sentence in sentences for word in WORD.findall(sentence.lower())}
    return torch.tensor(sorted(map(word_number, words)), dtype=torch.int32)


@cache
def load_packed() -> PackedTranslator:
    """The translator that ships with the package, with its card."""
    return PackedTranslator.from_bytes((files("ttutor.assets") / f"{DEFAULT}.safetensors").read_bytes())


def notice() -> bytes:
    """On what terms the text was offered from which the translator that ships learned."""
    return (files("ttutor.assets") / "NOTICE").read_bytes()


def load_default() -> Translator:
    """The translator that ships with the package: captions of photographs, English to German."""
    return load_packed().translator
