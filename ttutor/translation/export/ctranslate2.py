"""CTranslate2's form: a compiled engine for translation on processors and GPUs, in float32 or eight bits."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from ttutor.generation import Hypothesis
from ttutor.tokenization import BOS_ID, EOS_ID, SPECIAL_TOKENS, UNK_ID
from ttutor.transformer import Transformer, TransformerConfig
from ttutor.translation.engine import rank
from ttutor.translation.export import huggingface
from ttutor.translation.export.folder import TOKENIZER, needed

USE = """
```python
import ctranslate2, tokenizers

tokenizer = tokenizers.Tokenizer.from_file("THIS_FOLDER/tokenizer.json")
translator = ctranslate2.Translator("THIS_FOLDER")
(found,) = translator.translate_batch([tokenizer.encode("A sentence.").tokens], beam_size=5)
print(tokenizer.decode([tokenizer.token_to_id(token) for token in found.hypotheses[0]]))
```
"""


def write(model: Transformer, tokenizer: Tokenizer, folder: Path, quantization: str | None) -> None:
    """Convert the weights, by way of Hugging Face's form and CTranslate2's own loader."""
    transformers: Any = needed("transformers")
    loaders: Any = needed("ctranslate2.converters.transformers")
    with tempfile.TemporaryDirectory() as there:
        huggingface.write(model, tokenizer, Path(there), None)
        theirs = huggingface.load(transformers, Path(there))
    theirs.config.normalize_before, theirs.config.normalize_embedding = model.config.norm == "pre", False
    spec = loaders.BartLoader().get_model_spec(theirs)
    words = [tokenizer.id_to_token(token_id) for token_id in range(model.config.vocab_size)]
    spec.register_source_vocabulary(words)
    spec.register_target_vocabulary(words)
    spec.config.bos_token = spec.config.decoder_start_token = SPECIAL_TOKENS[BOS_ID]
    spec.config.eos_token, spec.config.unk_token = SPECIAL_TOKENS[EOS_ID], SPECIAL_TOKENS[UNK_ID]
    spec.validate()
    spec.optimize(quantization=quantization)
    spec.save(str(folder))


class CTranslate2Engine:
    """CTranslate2's ``Translator``.

    Args:
        folder: what `write` wrote.
        config: the sizes of the model.
        threads: how many it uses; as many as there are cores, up to four, when left out.
    """

    NEARLY_NONE = 1e-6
    """A length penalty that changes no score, but keeps the search from ending before its beam is full."""

    def __init__(self, folder: Path, config: TransformerConfig, threads: int | None = None) -> None:
        program: Any = needed("ctranslate2")
        self.translator = program.Translator(str(folder), inter_threads=1, intra_threads=threads or 0)
        tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
        self.words = [tokenizer.id_to_token(token_id) for token_id in range(config.vocab_size)]
        self.ids = {word: token_id for token_id, word in enumerate(self.words)}
        self.config = config

    def search(
        self, sources: Sequence[Sequence[int]], *, beam_size: int, length_penalty: float, max_new_tokens: int
    ) -> list[list[Hypothesis]]:
        """What was found for each source, best first."""
        limit = min(max_new_tokens, self.config.max_len)
        found = self.translator.translate_batch(
            [[self.words[token_id] for token_id in source] for source in sources],
            beam_size=beam_size,
            num_hypotheses=beam_size,
            length_penalty=self.NEARLY_NONE,
            max_input_length=0,
            min_decoding_length=0,  # as ours: the end may come first; 1, its own, takes the end from the first choice
            max_decoding_length=limit,
            return_scores=True,
        )
        return [
            rank(
                (
                    ([self.ids[word] for word in words], score)
                    for words, score in zip(one.hypotheses, one.scores, strict=True)
                ),
                beam_size=beam_size,
                alpha=length_penalty,
                limit=limit,
            )
            for one in found
        ]
