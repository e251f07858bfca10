"""Other people's decoders with our weights: each translates lists of token ids, greedily or with a beam.

All have the same model, Transformer-Tiny with the norm before each sublayer and tied embeddings, and the weights of one
training, so that what differs is how they decode. Each has its own search with its own rule for when to stop, a length
penalty of exponent 1 by its own formula, and at most twice the source's tokens and 50 more. None is changed inside.
"""

import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import torch
from torch import Tensor, nn

from ttutor.generation import Hypothesis
from ttutor.multihead import MultiHeadAttention
from ttutor.tokenization import BOS_ID, EOS_ID, PAD_ID, UNK_ID
from ttutor.training.batching import pad
from ttutor.transformer import Transformer
from ttutor.translation.engine import OwnEngine
from ttutor.translation.translator import _side_by_side

Ids = list[int]
Translate = Callable[[Sequence[Ids], int, int], list[Ids]]
"""Sources (with their end marks), width of the beam and sentences in a batch; the translations without end marks."""


def batches(sources: Sequence[Ids], size: int) -> Iterator[list[int]]:
    """Places of sources of like length, so many at a time."""
    places = sorted(range(len(sources)), key=lambda place: len(sources[place]))
    return (places[start : start + size] for start in range(0, len(places), size))


def by_batch(translate: Callable[[Tensor, int, int], list[Ids]]) -> Translate:
    """A translator of rectangles as one of lists, sorted by length."""

    @torch.inference_mode()
    def run(sources: Sequence[Ids], beam: int, size: int) -> list[Ids]:
        found: dict[int, Ids] = {}
        for places in batches(sources, size):
            rectangle = pad([sources[place] for place in places])
            limit = 2 * rectangle.shape[1] + 50
            found.update(zip(places, translate(rectangle, beam, limit), strict=True))
        return [found[place] for place in range(len(sources))]

    return run


def ended(row: Sequence[int]) -> Ids:
    """The tokens before the end mark."""
    row = [token for token in row if token not in (BOS_ID, PAD_ID)]
    return row[: row.index(EOS_ID)] if EOS_ID in row else row


def ours(model: Transformer, threads: int, precision: str = "fp32") -> Translate:
    """The search that `ttutor.translation.Translator` runs, in its number formats."""
    engine = OwnEngine(model, precision)

    def run(sources: Sequence[Ids], beam: int, size: int) -> list[Ids]:
        def search(batch: list[Ids]) -> list[list[Hypothesis]]:
            limit = 2 * max(map(len, batch)) + 50
            return engine.search(batch, beam_size=beam, length_penalty=1.0, max_new_tokens=limit)

        places_of = list(batches(sources, size))[::-1]  # longest first, as the translator does
        found: dict[int, Ids] = {}
        every = _side_by_side(search, [[sources[place] for place in places] for places in places_of], threads)
        for places, ranked in zip(places_of, every, strict=True):
            found.update((place, list(best[0].token_ids)) for place, best in zip(places, ranked, strict=True))
        return [found[place] for place in range(len(sources))]

    return run


def take(pairs: dict[nn.Module, nn.Module]) -> None:
    """Give their maps and norms (the keys) the numbers of ours; their norms also our epsilon."""
    with torch.no_grad():
        for theirs, our in pairs.items():
            theirs.weight.copy_(our.gain if hasattr(our, "gain") else our.weight)
            theirs.bias.copy_(our.bias)
            if hasattr(our, "eps"):
                theirs.eps = our.eps


def projections(attention: MultiHeadAttention) -> list[nn.Module]:
    """The four maps of a layer of attention of ours."""
    return [attention.to_query, attention.to_key, attention.to_value, attention.to_output]


def first_norm(layer: nn.Module) -> nn.Module:
    """The norm of a layer's self-attention, which our encoder calls its only attention."""
    return (layer.around_self_attention if hasattr(layer, "around_self_attention") else layer.around_attention).norm


# Hugging Face ---------------------------------------------------------------------------------------------------------


def hugging_face_model(model: Transformer) -> nn.Module:
    """M2M100, which is Marian's code with the norm before each sublayer as ours has it, and our waves as positions."""
    from transformers import M2M100Config, M2M100ForConditionalGeneration

    config = model.config
    side = {"layers": config.n_layers, "attention_heads": config.n_heads, "ffn_dim": config.d_ff, "layerdrop": 0.0}
    theirs = M2M100ForConditionalGeneration(
        M2M100Config(
            vocab_size=config.vocab_size,
            d_model=config.d_model,
            max_position_embeddings=config.max_len,
            activation_function=config.activation,
            pad_token_id=PAD_ID,
            bos_token_id=BOS_ID,
            eos_token_id=EOS_ID,
            decoder_start_token_id=BOS_ID,
            attn_implementation="sdpa",
            **{f"{stack}_{name}": size for stack in ("encoder", "decoder") for name, size in side.items()},
        )
    ).eval()
    with torch.no_grad():
        theirs.model.shared.weight.copy_(model.to_logits.weight)
    for stack, our in ((theirs.model.encoder, model.encoder), (theirs.model.decoder, model.decoder)):
        stack.embed_positions.weights[PAD_ID + 1 : PAD_ID + 1 + config.max_len] = (
            model.source_embeddings.position.encoding
        )[: len(stack.embed_positions.weights) - PAD_ID - 1]
        for their_layer, our_layer in zip(stack.layers, our.layers, strict=True):
            take_layer(their_layer, our_layer)
        take({stack.layer_norm: our.final_norm})
    return theirs


def take_layer(theirs: nn.Module, our: nn.Module) -> None:
    """One of Hugging Face's layers."""
    attentions = [(theirs.self_attn, our.self_attention)]
    pairs = {
        theirs.self_attn_layer_norm: first_norm(our),
        theirs.fc1: our.feed_forward.widen,
        theirs.fc2: our.feed_forward.narrow,
        theirs.final_layer_norm: our.around_feed_forward.norm,
    }
    if hasattr(theirs, "encoder_attn"):
        attentions.append((theirs.encoder_attn, our.cross_attention))
        pairs[theirs.encoder_attn_layer_norm] = our.around_cross_attention.norm
    for attention, ours_ in attentions:
        maps = (attention.q_proj, attention.k_proj, attention.v_proj, attention.out_proj)
        pairs |= dict(zip(maps, projections(ours_), strict=True))
    take(pairs)


def hugging_face(model: Transformer, threads: int) -> Translate:
    """Its `generate`, with a cache; a sentence is done when as many hypotheses as the beam is wide have ended."""
    theirs = hugging_face_model(model)

    def translate(source: Tensor, beam: int, limit: int) -> list[Ids]:
        options = {"length_penalty": 1.0, "early_stopping": True} if beam > 1 else {}
        rows = theirs.generate(
            input_ids=source,
            attention_mask=(source != PAD_ID).long(),
            num_beams=beam,
            do_sample=False,
            max_new_tokens=limit,
            **options,
        )
        return [ended(row) for row in rows.tolist()]

    return by_batch(translate)


# CTranslate2 ----------------------------------------------------------------------------------------------------------


def c_translate(model: Transformer, threads: int, compute_type: str) -> Translate:
    """Its `Translator` over our weights, converted by its own converter; it sorts by length itself.

    Its threads translate batches side by side, as ours do.
    """
    import ctranslate2

    with tempfile.TemporaryDirectory() as folder:
        convert(model, Path(folder))
        translator = ctranslate2.Translator(
            folder, device="cpu", compute_type=compute_type, inter_threads=threads, intra_threads=1
        )

    def translate(sources: Sequence[Ids], beam: int, size: int) -> list[Ids]:
        found = translator.translate_batch(
            [[f"w{token}" for token in source] for source in sources],
            beam_size=beam,
            length_penalty=1.0,
            max_batch_size=size,
            max_decoding_length=2 * max(map(len, sources)) + 50,
            max_input_length=0,
        )
        return [ended([int(token[1:]) for token in one.hypotheses[0]]) for one in found]

    return translate


def convert(model: Transformer, folder: Path) -> None:
    """Write our weights as a model of CTranslate2, by way of Hugging Face's form."""
    from ctranslate2.converters.transformers import M2M100Loader

    theirs = hugging_face_model(model)
    spec = M2M100Loader().get_model_spec(theirs)
    for stack, side in ((spec.encoder, theirs.model.encoder), (spec.decoder, theirs.model.decoder)):
        stack.position_encodings.encodings = side.embed_positions.weights[PAD_ID + 1 :].numpy()
    words = [f"w{token}" for token in range(model.config.vocab_size)]
    spec.register_source_vocabulary(words)
    spec.register_target_vocabulary(words)
    spec.config.bos_token = spec.config.decoder_start_token = words[BOS_ID]
    spec.config.eos_token, spec.config.unk_token = words[EOS_ID], words[UNK_ID]
    spec.validate()
    spec.optimize()
    spec.save(str(folder))


# JoeyNMT --------------------------------------------------------------------------------------------------------------


def joey(model: Transformer, threads: int) -> Translate:
    """Its model and its `search`, which keeps no cache."""
    from joeynmt.batch import Batch
    from joeynmt.search import search

    theirs = joey_model(model)

    def translate(source: Tensor, beam: int, limit: int) -> list[Ids]:
        batch = Batch(
            src=source,
            src_length=(source != PAD_ID).sum(dim=1),
            src_prompt_mask=None,
            trg=None,
            trg_prompt_mask=None,
            indices=torch.arange(len(source)),
            device=torch.device("cpu"),
            pad_index=PAD_ID,
            eos_index=EOS_ID,
            is_train=False,
        )
        rows, _, _ = search(theirs, batch, max_output_length=limit, beam_size=beam, beam_alpha=1.0)
        return [ended(row) for row in rows.astype(int).tolist()]

    return by_batch(translate)


def joey_model(model: Transformer) -> nn.Module:
    """JoeyNMT's Transformer with our weights."""
    from joeynmt.decoders import TransformerDecoder
    from joeynmt.embeddings import Embeddings
    from joeynmt.encoders import TransformerEncoder
    from joeynmt.model import Model

    config = model.config
    sizes = {
        "num_layers": config.n_layers,
        "num_heads": config.n_heads,
        "hidden_size": config.d_model,
        "ff_size": config.d_ff,
        "layer_norm": "pre",
        "activation": config.activation,
    }
    marks = {"pad_index": PAD_ID, "unk_index": UNK_ID, "bos_index": BOS_ID, "eos_index": EOS_ID, "sep_index": None}
    vocabulary = SimpleNamespace(specials=[], lang_tags=[], **marks)
    embeddings = Embeddings(config.d_model, scale=True, vocab_size=config.vocab_size, padding_idx=PAD_ID)
    encoder, decoder = TransformerEncoder(**sizes), TransformerDecoder(vocab_size=config.vocab_size, **sizes)
    theirs = Model(encoder, decoder, embeddings, embeddings, vocabulary, vocabulary).eval()
    decoder.output_layer.weight = embeddings.lut.weight
    with torch.no_grad():
        embeddings.lut.weight.copy_(model.to_logits.weight)
    pairs = {encoder.layer_norm: model.encoder.final_norm, decoder.layer_norm: model.decoder.final_norm}
    for layer, our in zip(encoder.layers, model.encoder.layers, strict=True):
        pairs |= joey_attention(layer.src_src_att, our.self_attention) | joey_feed_forward(layer, our)
        pairs[layer.layer_norm] = first_norm(our)
    for layer, our in zip(decoder.layers, model.decoder.layers, strict=True):
        pairs |= joey_attention(layer.trg_trg_att, our.self_attention) | joey_feed_forward(layer, our)
        pairs |= joey_attention(layer.src_trg_att, our.cross_attention)
        pairs[layer.x_layer_norm] = first_norm(our)
        pairs[layer.dec_layer_norm] = our.around_cross_attention.norm
    take(pairs)
    return theirs


def joey_attention(theirs: nn.Module, our: MultiHeadAttention) -> dict[nn.Module, nn.Module]:
    """Its four maps and ours."""
    maps = (theirs.q_layer, theirs.k_layer, theirs.v_layer, theirs.output_layer)
    return dict(zip(maps, projections(our), strict=True))


def joey_feed_forward(theirs: nn.Module, our: nn.Module) -> dict[nn.Module, nn.Module]:
    """Its two maps with their norm, and ours."""
    block = theirs.feed_forward
    return {
        block.layer_norm: our.around_feed_forward.norm,
        block.pwff_layer[0]: our.feed_forward.widen,
        block.pwff_layer[3]: our.feed_forward.narrow,
    }


# nn.Transformer -------------------------------------------------------------------------------------------------------


class TorchTransformer(nn.Module):
    """``nn.Transformer`` with our weights, as tutorials wrap it: no cache, all tokens anew for every token."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        config = model.config
        self.table, self.scale = model.to_logits.weight, math.sqrt(config.d_model)
        self.register_buffer("positions", model.source_embeddings.position.encoding)
        sizes = {"d_model": config.d_model, "nhead": config.n_heads, "dim_feedforward": config.d_ff}
        n_layers = {"num_encoder_layers": config.n_layers, "num_decoder_layers": config.n_layers}
        self.body = nn.Transformer(**sizes, **n_layers, batch_first=True, norm_first=True).eval()
        pairs = {
            self.body.encoder.norm: model.encoder.final_norm,
            self.body.decoder.norm: model.decoder.final_norm,
        }
        for layer, our in zip(self.body.encoder.layers, model.encoder.layers, strict=True):
            take_packed(layer.self_attn, our.self_attention)
            norms = (first_norm(our), our.around_feed_forward.norm)
            pairs |= {layer.linear1: our.feed_forward.widen, layer.linear2: our.feed_forward.narrow}
            pairs |= dict(zip((layer.norm1, layer.norm2), norms, strict=True))
        for layer, our in zip(self.body.decoder.layers, model.decoder.layers, strict=True):
            take_packed(layer.self_attn, our.self_attention)
            take_packed(layer.multihead_attn, our.cross_attention)
            norms = (first_norm(our), our.around_cross_attention.norm, our.around_feed_forward.norm)
            pairs |= {layer.linear1: our.feed_forward.widen, layer.linear2: our.feed_forward.narrow}
            pairs |= dict(zip((layer.norm1, layer.norm2, layer.norm3), norms, strict=True))
        take(pairs)

    def embed(self, token_ids: Tensor) -> Tensor:
        """Vectors of the tokens at their positions."""
        return nn.functional.embedding(token_ids, self.table) * self.scale + self.positions[: token_ids.shape[1]]

    def encode(self, source: Tensor) -> Tensor:
        """The memory."""
        return self.body.encoder(self.embed(source), src_key_padding_mask=source == PAD_ID)

    def next_logits(self, target: Tensor, memory: Tensor, hides: Tensor) -> Tensor:
        """Logits of the token after each target."""
        causal = nn.Transformer.generate_square_subsequent_mask(target.shape[1], dtype=torch.bool)
        hidden = self.body.decoder(
            self.embed(target), memory, tgt_mask=causal, memory_key_padding_mask=hides, tgt_is_causal=True
        )
        return hidden[:, -1] @ self.table.T


def take_packed(theirs: nn.MultiheadAttention, our: MultiHeadAttention) -> None:
    """``nn.MultiheadAttention`` keeps three of the four maps as one."""
    with torch.no_grad():
        query, key, value, output = projections(our)
        theirs.in_proj_weight.copy_(torch.cat([query.weight, key.weight, value.weight]))
        theirs.in_proj_bias.copy_(torch.cat([query.bias, key.bias, value.bias]))
        theirs.out_proj.weight.copy_(output.weight)
        theirs.out_proj.bias.copy_(output.bias)


def torch_transformer(model: Transformer, threads: int) -> Translate:
    """A tutorial's loop over ``nn.Transformer``; all sentences go on until the last one of the batch has ended."""
    theirs = TorchTransformer(model)

    def translate(source: Tensor, beam: int, limit: int) -> list[Ids]:
        search = greedy_without_cache if beam == 1 else partial(beam_without_cache, beam=beam)
        return [ended(row) for row in search(theirs, source, limit).tolist()]

    return by_batch(translate)


def greedy_without_cache(model: TorchTransformer, source: Tensor, limit: int) -> Tensor:
    """The most probable token, again and again."""
    memory, hides = model.encode(source), source == PAD_ID
    target = source.new_full((len(source), 1), BOS_ID)
    is_over = torch.zeros(len(source), dtype=torch.bool)
    while not is_over.all() and target.shape[1] <= limit:
        token = model.next_logits(target, memory, hides).argmax(dim=-1).masked_fill(is_over, PAD_ID)
        target = torch.cat([target, token[:, None]], dim=1)
        is_over |= token == EOS_ID
    return target


def beam_without_cache(model: TorchTransformer, source: Tensor, limit: int, beam: int) -> Tensor:
    """The best of so many beginnings; one that has ended stays in the beam, filled up with padding."""
    memory = model.encode(source).repeat_interleave(beam, dim=0)
    hides = (source == PAD_ID).repeat_interleave(beam, dim=0)
    target = source.new_full((len(source) * beam, 1), BOS_ID)
    totals = torch.tensor([0.0] + [-math.inf] * (beam - 1)).repeat(len(source), 1)
    is_over = torch.zeros(len(target), dtype=torch.bool)
    stays = torch.full((model.table.shape[0],), -math.inf)
    stays[PAD_ID] = 0.0
    first = torch.arange(0, len(target), beam)[:, None]
    while not is_over.all() and target.shape[1] <= limit:
        gains = model.next_logits(target, memory, hides).log_softmax(dim=-1)
        gains[is_over] = stays
        totals, flat = (totals[:, :, None] + gains.unflatten(0, (-1, beam))).flatten(1).topk(beam, dim=-1)
        rows, token = (first + flat // gains.shape[1]).flatten(), (flat % gains.shape[1]).flatten()
        target = torch.cat([target[rows], token[:, None]], dim=1)
        is_over = is_over[rows] | (token == EOS_ID)
    lengths = ((target != PAD_ID).sum(dim=1) - 1).unflatten(0, (-1, beam))
    best = (totals / ((5 + lengths) / 6)).argmax(dim=-1, keepdim=True)
    return target[(first + best).flatten()]


MAKERS: dict[str, Callable[[Transformer, int], Translate]] = {
    "ttutor": ours,
    "ttutor, bf16": partial(ours, precision="bf16"),
    "CTranslate2, fp32": partial(c_translate, compute_type="float32"),
    "CTranslate2, int8": partial(c_translate, compute_type="int8"),
    "Hugging Face generate": hugging_face,
    "nn.Transformer, no cache": torch_transformer,
    "JoeyNMT": joey,
}
SLOW = ("nn.Transformer, no cache", "JoeyNMT")
