"""BERT in Hugging Face's form: the same model under other names, with or without a head.

Which of our models comes out is what the config's ``architectures`` says. One case is special: the checkpoints that
BERT's authors published call themselves ``BertForMaskedLM`` and hold all that pre-training needs. They become what they
are, a `BERTForPreTraining`, so that no tensor is lost.
"""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from torch import Tensor, nn

from ttutor.errors import SettingError
from ttutor.interop.classes import class_names, n_classes
from ttutor.interop.families import Family, agree, architecture_of, choose
from ttutor.interop.rules import Rule, copied, linear, norm, same
from ttutor.variants.bert import BERT, BERTConfig, BERTForMaskedLM, BERTForPreTraining
from ttutor.variants.heads import Pooler, TransformerForSequenceClassification, TransformerForTokenClassification

ACTIVATIONS = {"gelu": "gelu", "gelu_new": "gelu_tanh", "relu": "relu", "silu": "silu"}
NAMES = {
    "vocab_size": "vocab_size",
    "hidden_size": "d_model",
    "num_attention_heads": "n_heads",
    "num_hidden_layers": "n_layers",
    "intermediate_size": "d_ff",
    "max_position_embeddings": "max_len",
    "type_vocab_size": "n_segments",
}
ARCHITECTURES: dict[str, type[nn.Module]] = {
    "BertModel": BERT,
    "BertForMaskedLM": BERTForMaskedLM,
    "BertForPreTraining": BERTForPreTraining,
    "BertForSequenceClassification": TransformerForSequenceClassification,
    "BertForTokenClassification": TransformerForTokenClassification,
}
WITH_POOLER = (BERTForPreTraining, TransformerForSequenceClassification)
CLASSIFIERS = (TransformerForSequenceClassification, TransformerForTokenClassification)


def build(config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> nn.Module:
    """Our model with the sizes of their config."""
    agree(
        config,
        is_decoder=False,
        add_cross_attention=False,
        position_embedding_type="absolute",
        layer_norm_eps=1e-12,
        tie_word_embeddings=True,
    )
    kind = ARCHITECTURES[architecture_of(config, ARCHITECTURES)]
    if kind is BERTForMaskedLM and _holds(tensors, "cls.seq_relationship."):
        kind = BERTForPreTraining
    dropout = config["hidden_dropout_prob"]
    bert = BERT(
        BERTConfig(
            **{ours: config[theirs] for theirs, ours in NAMES.items()},
            dropout=dropout,
            activation=choose(config, "hidden_act", ACTIVATIONS),
        ),
        pooler=kind in WITH_POOLER or (kind is BERT and _holds(tensors, "pooler.")),
    )
    if kind in CLASSIFIERS:
        last_dropout = config.get("classifier_dropout")
        last_dropout = dropout if last_dropout is None else last_dropout
        return kind(bert, bert.config.d_model, n_classes(config), dropout=last_dropout)
    return bert if kind is BERT else kind(bert)


def _holds(tensors: Mapping[str, Tensor], prefix: str) -> bool:
    """Whether there are tensors of an optional part; all of them are then demanded."""
    return any(name.startswith(prefix) for name in tensors)


def describe(model: Any) -> dict[str, Any]:
    """Their config of our model."""
    bert, _, _ = _places(model)
    theirs = next(name for name, ours in ARCHITECTURES.items() if isinstance(model, ours))
    _check(model, bert, theirs)
    config = bert.config
    described = {
        "architectures": [theirs],
        **{theirs: getattr(config, ours) for theirs, ours in NAMES.items()},
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": 0.0,
        "hidden_act": {ours: theirs for theirs, ours in ACTIVATIONS.items()}[config.activation],
        "layer_norm_eps": 1e-12,
    }
    if isinstance(model, CLASSIFIERS):
        described |= {
            "classifier_dropout": model.dropout.p,
            **class_names(cast(nn.Linear, model.classifier).out_features),
        }
    return described


def _check(model: Any, bert: nn.Module, theirs: str) -> None:
    """Refuse what their class of that name has not, or has otherwise."""
    if not isinstance(bert, BERT):
        raise SettingError(
            f"{type(model).__name__} stands on a {type(bert).__name__}; transformers has only one on a BERT"
        )
    if isinstance(model, WITH_POOLER) and not isinstance(bert.pooler, Pooler):
        raise SettingError(f"the {theirs} of transformers has a pooler, but this BERT was made without")
    if not isinstance(model, (BERT, *WITH_POOLER)) and isinstance(bert.pooler, Pooler):
        raise SettingError(
            f"the {theirs} of transformers has no pooler, but this BERT has one, which would be lost: "
            "make it with pooler=False, or replace its pooler by nn.Identity()"
        )
    if getattr(model, "pooling", "cls") != "cls":
        raise SettingError(f'the classifier of transformers pools by "cls", but this one by {model.pooling!r}')


def rules(model: nn.Module) -> Iterator[Rule]:
    """How Hugging Face's tensor names map to ours."""
    bert, theirs, ours = _places(model)
    yield same(f"{theirs}embeddings.word_embeddings.weight", f"{ours}embeddings.token.table.weight")
    yield same(f"{theirs}embeddings.position_embeddings.weight", f"{ours}embeddings.position.table.weight")
    yield same(f"{theirs}embeddings.token_type_embeddings.weight", f"{ours}segments.weight")
    yield from norm(f"{theirs}embeddings.LayerNorm", f"{ours}norm")
    for i in range(bert.config.n_layers):
        yield from _layer(f"{theirs}encoder.layer.{i}", f"{ours}encoder.layers.{i}")
    if isinstance(bert.pooler, Pooler):
        yield from linear(f"{theirs}pooler.dense", f"{ours}pooler.map")
    if isinstance(model, CLASSIFIERS):
        yield from linear("classifier", "classifier")
    if isinstance(model, BERTForMaskedLM | BERTForPreTraining):
        yield from linear("cls.predictions.transform.dense", "head.transform")
        yield from norm("cls.predictions.transform.LayerNorm", "head.norm")
        yield same("cls.predictions.bias", "head.to_logits.bias")
        yield copied("cls.predictions.decoder.bias", "head.to_logits.bias")
        yield copied("cls.predictions.decoder.weight", f"{ours}embeddings.token.table.weight")
    if isinstance(model, BERTForPreTraining):
        yield from linear("cls.seq_relationship", "next_sentence")


def _places(model: Any) -> tuple[Any, str, str]:
    """The `BERT` of a model, and what stands before the names of its tensors: theirs and ours."""
    if isinstance(model, BERT):
        return model, "", ""
    return (model.encoder, "bert.", "encoder.") if isinstance(model, CLASSIFIERS) else (model.bert, "bert.", "bert.")


def _layer(theirs: str, ours: str) -> Iterator[Rule]:
    for part in ("query", "key", "value"):
        yield from linear(f"{theirs}.attention.self.{part}", f"{ours}.self_attention.to_{part}")
    yield from linear(f"{theirs}.attention.output.dense", f"{ours}.self_attention.to_output")
    yield from norm(f"{theirs}.attention.output.LayerNorm", f"{ours}.around_attention.norm")
    yield from linear(f"{theirs}.intermediate.dense", f"{ours}.feed_forward.widen")
    yield from linear(f"{theirs}.output.dense", f"{ours}.feed_forward.narrow")
    yield from norm(f"{theirs}.output.LayerNorm", f"{ours}.around_feed_forward.norm")


def normalise(tensors: dict[str, Tensor], config: Mapping[str, Any]) -> dict[str, Tensor]:
    """Call gains and biases of norms as newer checkpoints do; drop the list 0, 1, 2, ... that older ones hold."""
    renamed = {}
    for name, tensor in tensors.items():
        stem, _, last = name.rpartition(".")
        if last != "position_ids":
            renamed[f"{stem}.{ {'gamma': 'weight', 'beta': 'bias'}.get(last, last) }"] = tensor
    return renamed


FAMILY = Family("bert", tuple(ARCHITECTURES.values()), build, describe, rules, normalise)
