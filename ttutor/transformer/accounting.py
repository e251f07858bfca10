"""What a model costs, from its config alone: parameters, operations and memory, as numbers and as a small table.

Nothing is built and nothing is run, so that GPT-3 can be counted on a laptop. The formulas stand in
`ttutor.transformer.costs` and, for the memory of a training step, in `ttutor.transformer.activations`; here they are
summed over a model's `Blueprint`. The tests hold the sums equal to built modules, to torch's operation counter, and to
what autograd keeps.
"""

from collections import Counter
from dataclasses import dataclass

import torch

from ttutor.configs import Config
from ttutor.transformer import costs
from ttutor.transformer.activations import ActivationPolicy, activation_bytes
from ttutor.transformer.blueprint import PARTS, Blueprint
from ttutor.transformer.stacks import stack_cache_bytes, stack_flops, stack_parameters
from ttutor.transformer.table import Section, quantity, share, to_html, to_text


@dataclass(frozen=True, kw_only=True)
class Account:
    """What a model costs; made by `account`. It prints as a table, in a notebook as HTML.

    Attributes:
        blueprint: the model's pieces.
        n_tokens: length of each sequence; the target's, if the model has an encoder and a decoder.
        n_memory: length of the source, if so.
        batch: how many sequences.
        dtype: of weights, gradients, cache and activations.
    """

    blueprint: Blueprint
    n_tokens: int
    n_memory: int
    batch: int
    dtype: torch.dtype

    @property
    def parameters(self) -> dict[str, int]:
        """Parameters by part; a shared matrix counts once, where it is looked up."""
        counts = Counter(dict.fromkeys(PARTS, 0))
        counts.update(self.blueprint.further)
        for stack in self.blueprint.stacks:
            counts.update(stack_parameters(stack))
        for projection in self.blueprint.projections:
            matrix = 0 if projection.is_tied else projection.d_in * projection.d_out
            counts[projection.part] += matrix + (projection.d_out if projection.bias else 0)
        return dict(counts)

    @property
    def parameters_by_stack(self) -> dict[str, int]:
        """Parameters of each stack, and of what stands around them."""
        stacks = {stack.name: sum(stack_parameters(stack).values()) for stack in self.blueprint.stacks}
        return {**stacks, "around them": self.n_parameters - sum(stacks.values())}

    @property
    def n_parameters(self) -> int:
        """All parameters."""
        return sum(self.parameters.values())

    @property
    def n_active_parameters(self) -> int:
        """The parameters that work for one token: all but those of the experts that it does not visit."""
        resting = (
            stack_parameters(stack)["feed-forward"] - stack_parameters(stack, only_active=True)["feed-forward"]
            for stack in self.blueprint.stacks
        )
        return self.n_parameters - sum(resting)

    @property
    def flops(self) -> dict[str, int]:
        """Operations of one forward pass over the batch, by kind; see `ttutor.transformer.costs` for what counts."""
        counts: Counter[str] = Counter()
        lengths = self.blueprint.lengths(self.n_tokens, self.n_memory)
        for stack, length in zip(self.blueprint.stacks, lengths, strict=True):
            counts.update(stack_flops(stack, length, self.n_memory))
        for projection in self.blueprint.projections:
            rows = projection.n_rows(self.n_tokens)
            counts[projection.part] += costs.projection_flops(rows, projection.d_in, projection.d_out)
        return {kind: self.batch * count for kind, count in counts.items()}

    @property
    def forward_flops(self) -> int:
        """Operations of one forward pass over the batch."""
        return sum(self.flops.values())

    @property
    def forward_flops_per_token(self) -> float:
        """The same for each token; with two stacks for each target token, its share of the source included."""
        return self.forward_flops / (self.batch * self.n_tokens)

    @property
    def training_flops(self) -> int:
        """Operations of a training step: forward, and twice as much backward, for inputs' and weights' gradients."""
        return 3 * self.forward_flops

    @property
    def approximate_training_flops(self) -> int:
        """The rule of thumb $6ND$ for the same step, with all parameters and the tokens of the last stack."""
        return costs.approximate_training_flops(self.n_parameters, self.batch * self.n_tokens)

    @property
    def cache_bytes_per_token(self) -> int:
        """Keys and values that generation keeps for each token of a sequence; 0 where tokens look ahead."""
        return sum(stack_cache_bytes(stack, 1, dtype=self.dtype) for stack in self.blueprint.stacks if stack.is_causal)

    @property
    def cache_bytes(self) -> int:
        """Keys and values that generation keeps for the batch; with cross-attention, those of the source as well."""
        memory = sum(
            stack_cache_bytes(stack, self.n_memory, dtype=self.dtype)
            for stack in self.blueprint.stacks
            if stack.is_causal and stack.cross_attention
        )
        return self._own_cache() + self.batch * memory

    @property
    def rolling_cache_bytes(self) -> int:
        """The same, if layers with a window keep only the tokens that it reaches (``DecoderCache(windows=...)``)."""
        return self.cache_bytes - self._own_cache() + self._own_cache(rolling=True)

    def _own_cache(self, *, rolling: bool = False) -> int:
        """Keys and values of the sequences themselves."""
        return self.batch * sum(
            stack_cache_bytes(stack, self.n_tokens, rolling=rolling, dtype=self.dtype)
            for stack in self.blueprint.stacks
            if stack.is_causal
        )

    @property
    def weight_bytes(self) -> int:
        """The parameters themselves; their gradients take as much again."""
        return self.n_parameters * self.dtype.itemsize

    @property
    def adam_bytes(self) -> int:
        """Adam's two running means, `ttutor.transformer.costs.adam_bytes`."""
        return costs.adam_bytes(self.n_parameters, dtype=self.dtype)

    @property
    def activation_bytes(self) -> int:
        """What a training step keeps for the backward pass, `ttutor.transformer.activations.activation_bytes`."""
        return sum(self.activations.values())

    @property
    def activations(self) -> dict[str, int]:
        """The same by stack, and around them."""
        policy = ActivationPolicy(dtype=self.dtype)
        return activation_bytes(self.blueprint, self.n_tokens, self.n_memory, batch=self.batch, policy=policy)

    def __str__(self) -> str:
        return to_text(self._sections())

    def _repr_html_(self) -> str:
        return to_html(self._sections())

    def _sections(self) -> list[Section]:
        """What the table shows."""
        parameters = [
            (part, f"{count:,}", share(count, self.n_parameters)) for part, count in self.parameters.items() if count
        ]
        stacks = [
            (name, f"{count:,}", share(count, self.n_parameters)) for name, count in self.parameters_by_stack.items()
        ]
        flops = [
            (kind, quantity(count, "FLOP"), share(count, self.forward_flops)) for kind, count in self.flops.items()
        ]
        source = f" and as many sources of {self.n_memory:,}" if len(self.blueprint.stacks) > 1 else ""
        has_experts = self.n_active_parameters < self.n_parameters
        active = f", {self.n_active_parameters:,} of them active for a token" if has_experts else ""
        call = f"{self.batch:,} × {self.n_tokens:,} tokens{source}"
        return [
            Section(f"{self.blueprint.name}: {self.n_parameters:,} parameters{active}, by part", parameters),
            Section("by stack", stacks),
            Section(
                f"Matrix products of a forward pass over {call}: {quantity(self.forward_flops, 'FLOP')}",
                [
                    *flops,
                    ("for each token", quantity(self.forward_flops_per_token, "FLOP"), ""),
                    ("training step", quantity(self.training_flops, "FLOP"), "3 × forward"),
                    ("training step, 6ND", quantity(self.approximate_training_flops, "FLOP"), "rule of thumb"),
                ],
            ),
            Section(f"Memory in {str(self.dtype).removeprefix('torch.')} (1 GB = 10^9 bytes)", self._memory()),
        ]

    def _memory(self) -> list[tuple[str, str, str]]:
        """The table's last rows."""
        rows = [
            ("weights", self.weight_bytes, ""),
            ("gradients", self.weight_bytes, "while training"),
            ("Adam's two means", self.adam_bytes, "while training"),
            ("activations", self.activation_bytes, "while training"),
        ]
        if self.cache_bytes:
            rows += [
                ("key/value cache", self.cache_bytes, "while generating"),
                ("cache, for each token", self.cache_bytes_per_token, "of each sequence"),
            ]
        if self.rolling_cache_bytes < self.cache_bytes:
            rows.append(("cache within the windows", self.rolling_cache_bytes, "while generating"))
        return [(label, quantity(count, "B"), remark) for label, count, remark in rows]


def account(
    model: Config,
    *,
    n_tokens: int | None = None,
    n_memory: int | None = None,
    batch: int = 1,
    dtype: torch.dtype = torch.float32,
) -> Account:
    """Say what a model costs.

    Args:
        model: a config of any family, or a `Blueprint`.
        n_tokens: length of each sequence; the longest the model was made for when left out.
        n_memory: length of the source, for a model with encoder and decoder; ``n_tokens`` when left out.
        batch: how many sequences.
        dtype: of weights, gradients, cache and activations.

    Example:
        >>> from ttutor.transformer import TransformerConfig
        >>> base = account(TransformerConfig.base())
        >>> base.n_parameters
        63082496
        >>> base.parameters["attention"] / base.n_parameters  # doctest: +ELLIPSIS
        0.299...
    """
    make_blueprint = (lambda: model) if isinstance(model, Blueprint) else getattr(model, "blueprint", None)
    if isinstance(model, type) or not callable(make_blueprint):
        raise TypeError(
            "account takes a config, such as TransformerConfig.base(), or a Blueprint, but got "
            f"{model if isinstance(model, type) else type(model)}; of a model, give its config"
        )
    blueprint = make_blueprint()
    n_tokens = blueprint.n_tokens if n_tokens is None else n_tokens
    if n_memory is not None and len(blueprint.stacks) == 1:
        raise ValueError(f"{blueprint.name} has a single stack and reads no memory, but n_memory={n_memory}")
    n_memory = n_tokens if n_memory is None else n_memory
    for name, value in {"n_tokens": n_tokens, "n_memory": n_memory, "batch": batch}.items():
        if not isinstance(value, int) or value < 1:
            raise ValueError(f"{name} must be a positive integer ({name}={value!r})")
    return Account(blueprint=blueprint, n_tokens=n_tokens, n_memory=n_memory, batch=batch, dtype=dtype)
