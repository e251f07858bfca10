"""What every backend is held against: the reference in float64, the error that is allowed, and calls of every kind."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ttutor.attention import scaled_dot_product_attention
from ttutor.masks import Mask, combine_masks

Attend = Callable[..., Tensor]


@dataclass(frozen=True)
class Case:
    """One call: sizes, mask, dtype. Its tensors are made from its own seed, so that a case can be run again alone."""

    n_queries: int = 5
    n_keys: int = 7
    batch: int = 2
    n_heads: int = 3
    n_kv_heads: int = 3
    d_head: int = 8
    d_value: int = 8
    masking: str = "none"
    bias: bool = False
    scale: float | None = None
    dtype: torch.dtype = torch.float32
    strided: bool = False
    seed: int = 0

    def __str__(self) -> str:
        """A short name for the test's report."""
        parts = [f"{self.n_queries}x{self.n_keys}", f"h{self.n_heads}/{self.n_kv_heads}", f"d{self.d_head}"]
        parts += [f"v{self.d_value}"] if self.d_value != self.d_head else []
        parts += [self.masking, str(self.dtype).removeprefix("torch.")]
        parts += ["bias"] if self.bias else []
        parts += ["strided"] if self.strided else []
        return "-".join(parts)


MASKINGS = (
    "none",
    "causal",
    "window",
    "causal+window",
    "lengths",
    "causal+lengths",
    "keys",
    "dense",
    "causal+dense",
    "everything",
    "nothing",
)


def mask_of(case: Case) -> Mask | None:
    """The mask of a case. ``keys`` is padding as a tensor, ``nothing`` hides all keys from some queries."""
    generator = torch.Generator().manual_seed(case.seed + 1)
    lengths = torch.randint(0, case.n_keys + 1, (case.batch,), generator=generator)
    lengths[0] = case.n_keys
    dense = torch.rand(case.batch, 1, case.n_queries, case.n_keys, generator=generator) < 0.7
    window = max(1, case.n_keys // 3)
    keys = torch.rand(case.batch, 1, 1, case.n_keys, generator=generator) < 0.7
    rows = torch.rand(case.batch, case.n_heads, case.n_queries, 1, generator=generator) < 0.5
    return {
        "none": None,
        "causal": Mask(causal=True),
        "window": Mask(window=window),
        "causal+window": Mask(causal=True, window=window),
        "lengths": Mask(key_lengths=lengths),
        "causal+lengths": Mask(causal=True, key_lengths=lengths),
        "keys": Mask(dense=keys),
        "dense": Mask(dense=dense),
        "causal+dense": Mask(causal=True, dense=dense),
        "everything": Mask(causal=True, window=window, key_lengths=lengths, dense=dense),
        "nothing": Mask(dense=rows),
    }[case.masking]


@dataclass
class Inputs:
    """The tensors of a case, in its dtype."""

    query: Tensor
    key: Tensor
    value: Tensor
    keywords: dict[str, object] = field(default_factory=dict)

    def tensors(self) -> tuple[Tensor, Tensor, Tensor]:
        """Query, key and value."""
        return self.query, self.key, self.value


def inputs_of(case: Case, *, requires_grad: bool = False, device: str = "cpu") -> Inputs:
    """Make the tensors of a case."""
    generator = torch.Generator().manual_seed(case.seed)

    def make(heads: int, tokens: int, width: int) -> Tensor:
        if case.strided:  # as they come out of a fused projection: heads and tokens swapped, and a wider row
            wide = torch.randn(case.batch, tokens, heads, 2 * width, generator=generator, dtype=torch.float64)
            tensor = wide.to(device, case.dtype).transpose(1, 2)[..., :width]
        else:
            tensor = torch.randn(case.batch, heads, tokens, width, generator=generator, dtype=torch.float64)
            tensor = tensor.to(device, case.dtype)
        return tensor.detach().requires_grad_(requires_grad)

    query = make(case.n_heads, case.n_queries, case.d_head)
    key = make(case.n_kv_heads, case.n_keys, case.d_head)
    value = make(case.n_kv_heads, case.n_keys, case.d_value)
    keywords: dict[str, object] = {"mask": mask_of(case), "scale": case.scale}
    if device != "cpu" and keywords["mask"] is not None:
        mask = keywords["mask"]
        keywords["mask"] = Mask(
            causal=mask.causal,
            window=mask.window,
            key_lengths=None if mask.key_lengths is None else mask.key_lengths.to(device),
            dense=None if mask.dense is None else mask.dense.to(device),
        )
    if case.bias:
        shape = (case.batch, case.n_heads, case.n_queries, case.n_keys)
        keywords["bias"] = torch.randn(shape, generator=generator, dtype=torch.float64).to(device, case.dtype)
    return Inputs(query, key, value, keywords)


def run(attend: Attend, inputs: Inputs, *, gradients: bool = False) -> list[Tensor]:
    """The output of one call and, if asked for, the gradients of query, key and value under a fixed weighting."""
    output = attend(*inputs.tensors(), **inputs.keywords)
    if not gradients:
        return [output.detach()]
    return [output.detach(), *torch.autograd.grad(output, inputs.tensors(), weighting_of(output))]


def weighting_of(output: Tensor) -> Tensor:
    """The fixed weighting under which gradients are taken."""
    generator = torch.Generator().manual_seed(99)
    return torch.randn(output.shape, generator=generator, dtype=torch.float64).to(output.device, output.dtype)


def in_float64(inputs: Inputs) -> Inputs:
    """The same numbers, in float64, for the reference."""
    tensors = [tensor.detach().double().requires_grad_(tensor.requires_grad) for tensor in inputs.tensors()]
    keywords = dict(inputs.keywords)
    if keywords.get("bias") is not None:
        keywords["bias"] = keywords["bias"].double()
    return Inputs(*tensors, keywords)


def ulp(tensor: Tensor, dtype: torch.dtype) -> float:
    """The distance between neighbouring numbers of a dtype at the size of the tensor's largest entry."""
    largest = float(tensor.abs().max()) if tensor.numel() else 0.0
    return torch.finfo(dtype).eps * 2.0 ** torch.tensor(largest).log2().floor().item() if largest > 0 else 0.0


def assert_as_good_as_plain(attend: Attend, case: Case, *, gradients: bool = False, device: str = "cpu") -> None:
    """Hold a backend to the contract: its error at most twice the plain version's in the same dtype, plus 4 ulp.

    Both are taken over all gradients together: one of them may vanish by cancellation, or be right by luck. Since a
    fused backward pass subtracts sums that the plain one never forms (Dao et al. 2022, appendix B.4), its gradients may
    also be wrong by the rounding of those sums. In float64 the reference itself is rounded; there 64 ulp are allowed.
    """
    inputs = inputs_of(case, requires_grad=gradients, device=device)
    exact = run(scaled_dot_product_attention, in_float64(inputs), gradients=gradients)
    plain = run(scaled_dot_product_attention, inputs, gradients=gradients)
    found = run(attend, inputs, gradients=gradients)
    n_ulp = 64 if case.dtype == torch.float64 else 4
    errors = [float((rough.double() - true).abs().max()) for rough, true in zip(plain, exact, strict=True)]
    bounds = [2 * error + n_ulp * ulp(true, case.dtype) for error, true in zip(errors, exact, strict=True)]
    of_gradients = max(bounds[1:], default=0.0) + rounding_of_what_cancels(inputs, exact[0])
    for name, true, mine, allowed in zip(
        ("output", "query", "key", "value"), exact, found, (bounds[0], *[of_gradients] * 3), strict=False
    ):
        assert mine.shape == true.shape, f"{case}: {name} has shape {tuple(mine.shape)}, not {tuple(true.shape)}"
        assert mine.dtype == case.dtype, f"{case}: {name} has dtype {mine.dtype}"
        assert mine.isfinite().all(), f"{case}: {name} is not finite"
        error = float((mine.double() - true).abs().max())
        assert error <= allowed, f"{case}: the error of {name} is {error:.3g}, allowed are {allowed:.3g}"
        if name in ("output", "query"):
            hidden = (~sees(case, inputs)).expand(*true.shape[:-1], 1)
            assert (mine * hidden == 0).all(), f"{case}: {name} is not zero where a query sees nothing"


def rounding_of_what_cancels(inputs: Inputs, output: Tensor) -> float:
    """How far rounding alone may move a gradient: one ulp of the largest sums, signs aside, that it is made of."""
    query, key, value = (tensor.detach().double().abs() for tensor in inputs.tensors())
    weighting = weighting_of(output).double().abs()
    by_weight = weighting @ value.repeat_interleave(query.shape[1] // value.shape[1], 1).mT
    scale = query.shape[-1] ** -0.5 if inputs.keywords.get("scale") is None else inputs.keywords["scale"]
    of_query = float(by_weight.max() * key.max()) * abs(scale)
    of_value = float(weighting.sum(dim=-2).max())
    return torch.finfo(inputs.query.dtype).eps * max(of_query, of_value)


def sees(case: Case, inputs: Inputs) -> Tensor:
    """Which queries see any key at all, ``batch heads queries 1``."""
    drawn = combine_masks(inputs.keywords["mask"], None).materialise(
        case.n_queries, case.n_keys, device=inputs.query.device
    )
    if drawn is None:
        drawn = torch.ones(case.n_queries, case.n_keys, dtype=torch.bool, device=inputs.query.device)
    everywhere = drawn.expand(case.batch, case.n_heads, case.n_queries, case.n_keys)
    return everywhere.any(dim=-1, keepdim=True)


SMALL_SIZES = (
    {"n_queries": 5, "n_keys": 7},
    {"n_queries": 7, "n_keys": 5},
    {"n_queries": 1, "n_keys": 1},
    {"n_queries": 1, "n_keys": 9},
    {"n_queries": 64, "n_keys": 65, "n_heads": 4, "n_kv_heads": 2, "d_head": 16, "d_value": 16},
    {"n_queries": 33, "n_keys": 63, "n_heads": 4, "n_kv_heads": 1, "d_head": 8, "d_value": 12},
)


def small_cases(
    maskings: tuple[str, ...] = MASKINGS, sizes: tuple[dict[str, int], ...] = SMALL_SIZES, **changes: object
) -> list[Case]:
    """Calls of every kind at sizes that take no time, for `make test`."""
    return [Case(**{**size, "masking": masking, **changes}) for size, masking in itertools.product(sizes, maskings)]
