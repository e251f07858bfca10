"""ONNX: the network as two graphs that ONNX Runtime runs wherever it runs; the search stays ours.

``encoder.onnx`` reads sentences (``source_ids``, padded with 0) and gives the ``memory``: the keys and values that
every layer of cross-attention needs, side by side. ``decoder.onnx`` makes one step: from the newest token of each row
(``token_ids``), the memory, which of its tokens are real (``is_real``) and the keys and values of the tokens before
(``past``) it computes the ``logits`` of the next token and the new token's own keys and values (``present``).
"""

import copy
import logging
import warnings
from pathlib import Path
from typing import Any

import torch
from einops import rearrange
from jaxtyping import Bool, Float, Int
from tokenizers import Tokenizer
from torch import Tensor, nn

from ttutor.attention import scaled_dot_product_attention
from ttutor.cache import DecoderCache, KeyValueCache
from ttutor.generation import EncoderDecoder
from ttutor.multihead import MultiHeadAttention
from ttutor.tokenization import EOS_ID
from ttutor.transformer import Transformer, TransformerConfig
from ttutor.translation.engine import OwnEngine
from ttutor.translation.export.folder import needed

ENCODER, DECODER = "encoder.onnx", "decoder.onnx"
SIDE_BY_SIDE = "rows tokens (layers two heads d_head)"
BY_LAYER = "layers two rows heads tokens d_head"
USE = """
Two graphs, `encoder.onnx` and `decoder.onnx`, and a search of your own around them: feed `<bos>`, then the best token
each time, until `<eos>`. A greedy one:

```python
import numpy, onnxruntime, tokenizers

tokenizer = tokenizers.Tokenizer.from_file("THIS_FOLDER/tokenizer.json")
encoder, decoder = (onnxruntime.InferenceSession(f"THIS_FOLDER/{name}.onnx") for name in ("encoder", "decoder"))
source = numpy.array([tokenizer.encode("A sentence.").ids])
(memory,) = encoder.run(None, {"source_ids": source})
past, written = numpy.zeros((1, 0, memory.shape[2]), numpy.float32), [tokenizer.token_to_id("<bos>")]
while written[-1] != tokenizer.token_to_id("<eos>") and len(written) < 100:
    step = {"token_ids": numpy.array([written[-1:]]), "memory": memory, "is_real": source != 0, "past": past}
    logits, present = decoder.run(None, step)
    past, written = numpy.concatenate([past, present], axis=1), [*written, int(logits[0].argmax())]
print(tokenizer.decode(written))
```
"""


class JoinedCache(KeyValueCache):
    """A cache that joins old and new, for a graph, in which nothing is written in place."""

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Take in the keys and values of new tokens; give those of all tokens so far."""
        self._key = key if self._key is None else torch.cat([self._key, key], dim=2)
        self._value = value if self._value is None else torch.cat([self._value, value], dim=2)
        self._n_tokens = 1  # that there are some is all that is asked
        return self.read()

    def read(self) -> tuple[Tensor, Tensor]:
        """The keys and values of all tokens so far."""
        if self._key is None or self._value is None:
            raise ValueError("the cache is empty: append keys and values before reading it")
        return self._key, self._value


class EncoderGraph(nn.Module):
    """From sentences to the keys and values of cross-attention in every layer."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, source_ids: Int[Tensor, "rows source"]) -> Float[Tensor, "rows source width"]:
        """Read the sentences."""
        memory = self.model.encode(source_ids)
        attentions: list[Any] = [layer.cross_attention for layer in self.model.decoder.layers]
        return torch.cat([part(memory) for one in attentions for part in (one.to_key, one.to_value)], dim=-1)


class DecoderGraph(nn.Module):
    """One step of the decoder."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(
        self,
        token_ids: Int[Tensor, "rows 1"],
        memory: Float[Tensor, "rows source width"],
        is_real: Bool[Tensor, "rows source"],
        past: Float[Tensor, "rows tokens width"],
    ) -> tuple[Float[Tensor, "rows vocab_size"], Float[Tensor, "rows 1 width"]]:
        """Logits of the next token, and what the new token adds to ``past``."""
        model, config = self.model, self.model.config
        axes = {"layers": config.n_layers, "two": 2, "heads": config.n_heads}
        read = rearrange(memory, f"{SIDE_BY_SIDE} -> {BY_LAYER}", **axes)
        written = rearrange(past, f"{SIDE_BY_SIDE} -> {BY_LAYER}", **axes)
        cache = DecoderCache(config.n_layers, make_cache=JoinedCache)
        for layer, (read_keys, read_values), (keys, values) in zip(cache.layers, read, written, strict=True):
            layer.cross_attention.append(read_keys, read_values)
            layer.self_attention.append(keys, values)
        hidden = model.target_embeddings(token_ids, torch.zeros_like(token_ids) + past.shape[1])
        seen = rearrange(is_real, "rows source -> rows 1 1 source")
        hidden = model.decoder(hidden, memory[:, :, : config.d_model], None, seen, cache)  # the cache has the memory
        new = [torch.stack([part[:, :, -1:] for part in layer.self_attention.read()]) for layer in cache.layers]
        present = rearrange(torch.stack(new), f"{BY_LAYER} -> {SIDE_BY_SIDE}")
        return model.project(hidden)[:, -1], present


def write(model: Transformer, tokenizer: Tokenizer, folder: Path, quantization: str | None) -> None:
    """Write the two graphs; all that is counted (rows, tokens) may be of any number."""
    for package in ("onnx", "onnxscript"):
        needed(package)
    model = copy.deepcopy(model).cpu().float().eval()
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            module.attend = scaled_dot_product_attention
    source_ids = torch.tensor([[5, 6, 7, EOS_ID], [8, EOS_ID, 0, 0]])
    encoder, decoder = EncoderGraph(model), DecoderGraph(model)
    with torch.no_grad():
        memory = encoder(source_ids)
    step = (source_ids[:, :1], memory, source_ids != 0, torch.zeros(2, 3, memory.shape[-1]))
    _write_graph(encoder, (source_ids,), ["source_ids"], ["memory"], folder / ENCODER)
    _write_graph(decoder, step, ["token_ids", "memory", "is_real", "past"], ["logits", "present"], folder / DECODER)
    if quantization == "int8":
        _quantise(folder)


def _write_graph(
    graph: nn.Module, example: tuple[Tensor, ...], inputs: list[str], outputs: list[str], path: Path
) -> None:
    """Export a graph whose first two axes are dynamic, but for the one column of new tokens."""
    dynamic = torch.export.Dim.DYNAMIC
    axes = tuple({0: dynamic} | ({1: dynamic} if tensor.shape[1] > 1 else {}) for tensor in example)
    exporter = logging.getLogger("torch.onnx")
    level = exporter.level
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # of PyTorch's exporter, about itself,
        exporter.setLevel(logging.ERROR)  # and about other packages, of which no graph of ours has a part
        try:
            program: Any = torch.onnx.export(
                graph,
                example,
                dynamo=True,
                verbose=False,
                dynamic_shapes=axes,
                input_names=inputs,
                output_names=outputs,
            )
        finally:
            exporter.setLevel(level)
    program.save(str(path))


def _quantise(folder: Path) -> None:
    """Store all matrices in eight bits; what they are multiplied with is put into eight bits as it comes."""
    quantization: Any = needed("onnxruntime.quantization")
    for name in (ENCODER, DECODER):
        (folder / name).rename(folder / f"{name}.float")
        quantization.quantize_dynamic(
            str(folder / f"{name}.float"), str(folder / name), weight_type=quantization.QuantType.QInt8
        )
        (folder / f"{name}.float").unlink()


class OnnxModel(EncoderDecoder):
    """The two graphs as an encoder-decoder that our search understands.

    Args:
        folder: what `write` wrote.
        config: the sizes of the model.
        threads: how many ONNX Runtime uses; it decides when left out.
    """

    def __init__(self, folder: Path, config: TransformerConfig, threads: int | None = None) -> None:
        super().__init__()
        runtime: Any = needed("onnxruntime")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = threads or 0
        options.log_severity_level = 3  # errors
        providers = runtime.get_available_providers()
        self.encoder_session, self.decoder_session = (
            runtime.InferenceSession(str(folder / name), options, providers=providers) for name in (ENCODER, DECODER)
        )
        self.config = config

    def encode(self, source_ids: Int[Tensor, "rows source"]) -> Float[Tensor, "rows source width"]:
        """What `EncoderGraph` gives."""
        return torch.from_numpy(self.encoder_session.run(None, {"source_ids": source_ids.numpy()})[0])

    def decode(
        self,
        token_ids: Int[Tensor, "rows 1"],
        memory: Float[Tensor, "rows source width"],
        memory_mask: Bool[Tensor, "rows 1 1 source"],
        cache: DecoderCache,
        *,
        is_real: Bool[Tensor, "rows 1"],
    ) -> Float[Tensor, "rows 1 vocab_size"]:
        """The logits of the next token; ``past`` of the graph is kept as the first layer's keys."""
        cache.extend(is_real)
        kept = cache.layers[0].self_attention
        past = kept.read()[0] if len(kept) else memory.new_zeros(len(memory), 1, 0, memory.shape[-1])
        step = {
            "token_ids": token_ids,
            "memory": memory,
            "is_real": rearrange(memory_mask, "rows 1 1 source -> rows source"),
            "past": past[:, 0],
        }
        logits, present = self.decoder_session.run(
            None, {name: tensor.contiguous().numpy() for name, tensor in step.items()}
        )
        new = rearrange(torch.from_numpy(present), "rows tokens width -> rows 1 tokens width")
        kept.append(new, new[..., :0])
        return rearrange(torch.from_numpy(logits), "rows vocab_size -> rows 1 vocab_size")

    def project(self, logits: Float[Tensor, "... vocab_size"]) -> Float[Tensor, "... vocab_size"]:
        """Nothing is left to do: the graph ends with the logits."""
        return logits


def onnx_engine(folder: Path, config: TransformerConfig, threads: int | None = None) -> OwnEngine:
    """Our search over `OnnxModel`."""
    return OwnEngine(OnnxModel(folder, config, threads))
