"""Hugging Face's form: Pegasus where the norm comes before each sublayer, Marian where it comes after."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer

from ttutor.generation import Hypothesis
from ttutor.interop import save_huggingface
from ttutor.tokenization import BOS_ID, EOS_ID, PAD_ID, SPECIAL_TOKENS, UNK_ID
from ttutor.training.batching import pad
from ttutor.transformer import Transformer, TransformerConfig
from ttutor.translation.engine import rank
from ttutor.translation.export.folder import needed

BEAM = 5
USE = """
```python
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

tokenizer, model = (kind.from_pretrained("THIS_FOLDER") for kind in (AutoTokenizer, AutoModelForSeq2SeqLM))
batch = tokenizer(["A sentence."], return_tensors="pt", padding=True)
print(tokenizer.batch_decode(model.generate(**batch), skip_special_tokens=True))
```

`generate` weighs length in its own way (log probability over tokens), so now and then it chooses another sentence of
the same beam than ttutor does.
"""


def write(model: Transformer, tokenizer: Tokenizer, folder: Path, quantization: str | None) -> None:
    """Write weights, config, and the settings of tokenizer and search."""
    save_huggingface(model, folder)
    marks = {"bos_token_id": BOS_ID, "eos_token_id": EOS_ID, "pad_token_id": PAD_ID, "decoder_start_token_id": BOS_ID}
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    _write_json(folder / "config.json", config | marks)
    search = {"num_beams": BEAM, "length_penalty": 1.0, "early_stopping": True, "max_length": model.config.max_len}
    _write_json(folder / "generation_config.json", marks | search)
    names = {"pad_token": PAD_ID, "unk_token": UNK_ID, "bos_token": BOS_ID, "eos_token": EOS_ID}
    _write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_input_names": ["input_ids", "attention_mask"],
            "model_max_length": model.config.max_len,
            "clean_up_tokenization_spaces": False,
            **{name: SPECIAL_TOKENS[token_id] for name, token_id in names.items()},
        },
    )


def load(transformers: Any, folder: Path) -> Any:
    """The model in a folder, read without a progress bar."""
    shows_bars = transformers.utils.logging.is_progress_bar_enabled()
    transformers.utils.logging.disable_progress_bar()
    try:
        return transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    finally:
        if shows_bars:
            transformers.utils.logging.enable_progress_bar()


class HuggingFaceEngine:
    """``generate`` of `transformers`.

    Args:
        folder: what `write` wrote.
        config: the sizes of the model.
        threads: for all of PyTorch; as many as it uses already when left out.
    """

    def __init__(self, folder: Path, config: TransformerConfig, threads: int | None = None) -> None:
        transformers: Any = needed("transformers")
        if threads is not None:
            torch.set_num_threads(threads)
        self.model = load(transformers, folder)
        self.config = config

    @torch.inference_mode()
    def search(
        self, sources: Sequence[Sequence[int]], *, beam_size: int, length_penalty: float, max_new_tokens: int
    ) -> list[list[Hypothesis]]:
        """What was found for each source, best first."""
        limit = min(max_new_tokens, self.config.max_len)
        source_ids = pad(sources)
        beam = {"length_penalty": 0.0, "early_stopping": True} if beam_size > 1 else {"length_penalty": None}
        found = self.model.generate(
            input_ids=source_ids,
            attention_mask=(source_ids != PAD_ID).long(),
            num_beams=beam_size,
            num_return_sequences=beam_size,
            do_sample=False,
            **beam,
            max_new_tokens=limit,
            max_length=None,
            return_dict_in_generate=True,
            output_scores=True,
        )
        if beam_size > 1:
            totals = found.sequences_scores.tolist()
        else:
            steps = self.model.compute_transition_scores(found.sequences, found.scores, normalize_logits=True)
            totals = steps.masked_fill(found.sequences[:, 1:] == PAD_ID, 0.0).sum(dim=1).tolist()
        rows = [_tokens(row[1:]) for row in found.sequences.tolist()]
        return [
            rank(
                zip(rows[start : start + beam_size], totals[start : start + beam_size], strict=True),
                beam_size=beam_size,
                alpha=length_penalty,
                limit=limit,
            )
            for start in range(0, len(rows), beam_size)
        ]


def _tokens(row: list[int]) -> list[int]:
    """The tokens before the end mark."""
    return row[: row.index(EOS_ID)] if EOS_ID in row else [token for token in row if token != PAD_ID]


def _write_json(path: Path, body: dict[str, Any]) -> None:
    path.write_text(json.dumps(body, indent=1) + "\n", encoding="utf-8")
