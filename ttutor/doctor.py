"""What this machine has, what is missing, and the command that gets it: ``ttutor doctor``.

Works with the core installed and nothing else, and when even PyTorch is broken: that is when it is needed.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
from dataclasses import asdict, dataclass, field
from pathlib import Path

from packaging.requirements import Requirement

import ttutor

EXTRAS = ("translation", "interop", "pretrained", "serve", "widgets", "chapters", "book", "test", "release")
PURPOSE = {
    "core": "the package itself",
    "translation": "ttutor fetch, train, translate, evaluate",
    "interop": "published weights in our models",
    "pretrained": "ttutor chat, ttutor fetch smollm2: a published model, opened",
    "serve": "ttutor export: the translator in other programs",
    "widgets": "explorers and plots in notebooks",
    "chapters": "running the chapters",
    "book": "building the book",
    "test": "running the tests",
    "release": "building the package",
}


@dataclass(frozen=True)
class Group:
    """The packages of one extra: versions found, and requirements that nothing installed meets."""

    name: str
    installed: dict[str, str]
    missing: list[str]

    @property
    def remedy(self) -> str:
        """The command that installs what is missing."""
        return f'pip install "{extra_target(self.name)}"'


@dataclass(frozen=True)
class Report:
    """Everything ``ttutor doctor`` says."""

    ttutor: str
    python: str
    system: str
    processor: str
    cores: int
    torch: dict[str, str]
    attention: dict[str, str]
    groups: list[Group]
    data: dict[str, str]
    problems: list[str] = field(default_factory=list)


def editable_checkout() -> Path | None:
    """Return the root of the checkout this package runs from, or None when it was installed as a wheel."""
    root = Path(ttutor.__file__).resolve().parent.parent
    return root if (root / "pyproject.toml").exists() else None


def extra_target(name: str) -> str:
    """Return what to hand to pip for an extra: the checkout when we run from one, else the package by name.

    >>> extra_target("widgets").endswith("[widgets]")
    True
    """
    package = "ttutor" if editable_checkout() is None else "."
    return package if name == "core" else f"{package}[{name}]"


def missing_extra() -> str:
    """Return the sentence that says how to get the commands that are not installed."""
    target = extra_target("translation")
    return f'For fetch, train, translate and evaluate, install the translation extra: pip install "{target}"'


def missing_package(error: ImportError) -> str:
    """Return what to tell a person for whom a package of the translation extra does not load."""
    return f"{error.name or 'a package'} does not load ({error}). {missing_extra()}; ttutor doctor shows what is there"


def extra_of(requirement: Requirement) -> str | None:
    """Return the extra that asks for a package (``core`` if none does), or None where this machine needs none of it.

    >>> extra_of(Requirement("einops>=0.8")), extra_of(Requirement('jupyter-book<2; extra == "book"'))
    ('core', 'book')
    >>> extra_of(Requirement("x>=1; sys_platform == 'amiga'"))
    """
    asking = ("", *EXTRAS)
    needed = [name for name in asking if requirement.marker is None or requirement.marker.evaluate({"extra": name})]
    return (needed[0] or "core") if needed else None


def survey_packages() -> list[Group]:
    """Compare what is installed with what the package's own metadata asks for, extra by extra."""
    groups = {name: Group(name, {}, []) for name in ("core", *EXTRAS)}
    for requirement in map(Requirement, importlib.metadata.requires("ttutor") or []):
        group = groups.get(extra_of(requirement) or "")
        if group is None:
            continue
        wanted = f"{requirement.name}{requirement.specifier}"
        try:
            version = importlib.metadata.version(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            group.missing.append(wanted)
            continue
        group.installed[requirement.name] = version
        if not requirement.specifier.contains(version, prereleases=True):
            group.missing.append(f"{wanted} (found {version})")
    return list(groups.values())


def processor_name() -> str:
    """Return the processor's name as the system gives it: results may differ in their last digits by it."""
    information = Path("/proc/cpuinfo")
    lines = information.read_text("utf-8").splitlines() if information.exists() else []
    named = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.processor() or platform.machine()


def survey_torch() -> dict[str, str]:
    """Return PyTorch's version, the device it would use, CPU capability and threads; or why it does not load."""
    try:
        import torch
    except (ImportError, OSError) as error:
        return {"error": f"{type(error).__name__}: {error}"}
    found = {
        "version": torch.__version__,
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "threads": survey_threads(torch.get_num_threads(), os.environ.get("OMP_NUM_THREADS")),
    }
    if torch.cuda.is_available():
        memory = torch.cuda.get_device_properties(0).total_memory / 2**30
        return found | {"device": "cuda", "gpu": f"{torch.cuda.get_device_name(0)}, {memory:.0f} GiB"}
    return found | {"device": "mps" if torch.backends.mps.is_available() else "cpu"}


def survey_threads(n_threads: int, wish: str | None) -> str:
    """Return how many threads a command takes, and why; ``wish`` is ``OMP_NUM_THREADS``."""
    if wish is not None:
        return f"{n_threads}, since OMP_NUM_THREADS is {wish}"
    if n_threads == 1:
        return "1, since there is one core"
    return (
        f"{n_threads}: translate and train work on so many batches side by side; 1 for chat, check and gpt up to size "
        "small, whose products are too small to share where other programs run (OMP_NUM_THREADS sets another number)"
    )


def survey_attention(torch: dict[str, str]) -> dict[str, str]:
    """Return for each backend of attention whether it can run on this machine's device, or why not.

    Each is asked about the calls it is made for: a window, half precision on a GPU, no training.
    """
    if "device" not in torch:
        return {}
    import torch as pytorch

    from ttutor.efficient import BACKENDS, AttentionCall
    from ttutor.efficient.attention_call import HAS_TRITON
    from ttutor.efficient.choice import unsupported_reason

    is_cuda = torch["device"] == "cuda"
    call = AttentionCall(
        device=torch["device"],
        capability=pytorch.cuda.get_device_capability() if is_cuda else None,
        dtype=pytorch.bfloat16 if is_cuda else pytorch.float32,
        n_queries=1024,
        n_keys=1024,
        causal=True,
        window=64,
        has_triton=HAS_TRITON,
    )
    reasons = {name: unsupported_reason(name, call) for name in BACKENDS}
    return {name: "can run" if reason is None else f"cannot: {reason}" for name, reason in reasons.items()}


def survey_data() -> dict[str, str]:
    """Return where ``TTUTOR_DATA`` points and whether Multi30k lies there."""
    folder = os.environ.get("TTUTOR_DATA", "")
    if not folder:
        return {"TTUTOR_DATA": "not set (only the Multi30k tests and examples need it)"}
    present = (Path(folder) / "multi30k").is_dir()
    return {"TTUTOR_DATA": folder, "multi30k": "found" if present else "not found there"}


def find_problems(groups: list[Group], torch: dict[str, str]) -> list[str]:
    """Return what keeps the core from working; a missing extra is a choice and no problem."""
    problems = []
    if "error" in torch:
        problems.append(f"PyTorch does not load ({torch['error']}): pip install --force-reinstall torch")
    problems += [f"{', '.join(g.missing)} missing: {g.remedy}" for g in groups if g.name == "core" and g.missing]
    return problems


def examine() -> Report:
    """Look at this machine and return the report."""
    torch, groups = survey_torch(), survey_packages()
    return Report(
        ttutor=ttutor.__version__,
        python=f"{platform.python_version()} ({platform.python_implementation()})",
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        processor=processor_name(),
        cores=os.cpu_count() or 1,
        torch=torch,
        attention=survey_attention(torch),
        groups=groups,
        data=survey_data(),
        problems=find_problems(groups, torch),
    )


def render(report: Report) -> str:
    """Return the report as text for a person."""
    lines = [
        f"ttutor    {report.ttutor}",
        f"Python    {report.python}",
        f"system    {report.system}, {report.cores} cores ({report.processor})",
    ]
    lines += [f"torch     {key.replace('_', ' ')}: {value}" for key, value in report.torch.items()]
    lines += [f"attention {name}: {state}" for name, state in report.attention.items()]
    lines += [f"data      {key}: {value}" for key, value in report.data.items()]
    for group in report.groups:
        state = "complete" if not group.missing else "missing " + ", ".join(group.missing)
        lines.append(f"\n{group.name} ({PURPOSE[group.name]}): {state}")
        lines += [f"  {name} {version}" for name, version in sorted(group.installed.items())]
        if group.missing:
            lines.append(f"  to get it: {group.remedy}")
    lines.append("")
    lines += [f"PROBLEM   {problem}" for problem in report.problems] or ["No problem found: the core works here."]
    return "\n".join(lines)


def run(as_json: bool = False) -> int:
    """Print the report, as text or as JSON; return 2 if the core cannot work here, which can be mended, else 0."""
    report = examine()
    print(json.dumps(asdict(report), indent=1) if as_json else render(report))
    return 2 if report.problems else 0
