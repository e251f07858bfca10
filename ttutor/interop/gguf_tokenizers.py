"""The tokenizer inside a GGUF file, in the package `tokenizers`, and the template of its conversations."""

from typing import TYPE_CHECKING, Any

from ttutor.errors import FileError, SettingError
from ttutor.interop.gguf_files import GGUFFile

if TYPE_CHECKING:
    from tokenizers import Tokenizer

CONTROL, USER_DEFINED = 3, 4
"""What a GGUF file calls the kinds of tokens that no merge makes."""
LLAMA_3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,%d}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""How Llama 3 cuts a text before any merge, and Qwen 2 with single digits."""
SPLITS = {"llama-bpe": LLAMA_3 % 3, "qwen2": LLAMA_3 % 1}
KNOWN = ("default", "gpt-2", "smollm", *SPLITS)


def tokenizer_of(file: GGUFFile) -> "Tokenizer":
    """The byte-pair tokenizer of a file: the same ids for a text as llama.cpp has.

    Raises:
        SettingError: the tokenizer is of another kind, or cuts texts beforehand in a way that is not known here.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models, processors

    kind, cut = file.field("tokenizer.ggml.model", str), file.field("tokenizer.ggml.pre", str, "default")
    if kind != "gpt2" or cut not in KNOWN:
        raise SettingError(
            f"the tokenizer of {file.path} must be of the kind 'gpt2' and cut like one of {list(KNOWN)}, but is of the "
            f"kind {kind!r} and cuts like {cut!r}"
        )
    pieces, kinds = file.texts("tokenizer.ggml.tokens"), file.field("tokenizer.ggml.token_type", list)
    merges: list[Any] = [tuple(merge.split(" ")) for merge in file.texts("tokenizer.ggml.merges")]
    vocabulary = {piece: token_id for token_id, piece in enumerate(pieces)}
    strange = [merge for merge in merges if len(merge) != 2 or not vocabulary.keys() >= {*merge, "".join(merge)}]
    if strange or len(kinds) != len(pieces):
        what = f"the merge {strange[0]} is not one of two of them" if strange else f"{len(kinds)} have a kind"
        raise FileError(f"{file.path} is damaged: its tokenizer has {len(pieces)} pieces, but {what}; fetch it again")
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, ignore_merges=cut == "llama-bpe"))
    tokenizer.pre_tokenizer = _cuts(cut)
    tokenizer.decoder = decoders.ByteLevel()
    marks = [(piece, one) for piece, one in zip(pieces, kinds, strict=True) if one in (CONTROL, USER_DEFINED)]
    tokenizer.add_special_tokens([AddedToken(piece, normalized=False) for piece, one in marks if one == CONTROL])
    tokenizer.add_tokens([AddedToken(piece, normalized=False) for piece, one in marks if one == USER_DEFINED])
    if file.field("tokenizer.ggml.add_bos_token", bool, cut == "llama-bpe"):
        bos = mark_of(file, "bos")
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{bos} $A", special_tokens=[(bos, vocabulary[bos])]
        )
    return tokenizer


def mark_of(file: GGUFFile, name: str) -> str:
    """The piece that starts a text ("bos") or ends it ("eos")."""
    pieces, token_id = file.texts("tokenizer.ggml.tokens"), file.field(f"tokenizer.ggml.{name}_token_id", int)
    if token_id >= len(pieces):
        raise FileError(f"{file.path} is damaged: token {token_id} is its {name}, but it has {len(pieces)} tokens")
    return pieces[token_id]


def _cuts(name: str) -> Any:
    """What cuts a text before any merge."""
    from tokenizers import Regex, pre_tokenizers

    if name in SPLITS:
        split = pre_tokenizers.Split(Regex(SPLITS[name]), behavior="isolated")
        return pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    bytes_alone = pre_tokenizers.ByteLevel(add_prefix_space=False)
    if name == "smollm":
        return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), bytes_alone])
    return bytes_alone


def end_ids_of(file: GGUFFile) -> tuple[int, ...]:
    """The tokens that end an answer."""
    names = (f"tokenizer.ggml.{end}_token_id" for end in ("eos", "eot", "eom"))
    return tuple(sorted({file.field(name, int) for name in names if file.fields.get(name) is not None}))
