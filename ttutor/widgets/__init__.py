"""Figures that are alive: the course's visual language, its explorers, and its live cells.

Everything is loaded on first use, so that importing a colour does not load ipywidgets or Matplotlib.
"""

from ttutor.names import hand_out

_HOMES = {
    "AttentionExplorer": "attention",
    "BlocksExplorer": "blocks",
    "CausalMaskExplorer": "causal_mask",
    "CollapseExplorer": "collapse",
    "DecodingExplorer": "decoding",
    "Explorer": "base",
    "SizesExplorer": "sizes",
    "SoftmaxScaleExplorer": "softmax_scale",
    "GroupExplorer": "group",
    "HeadsExplorer": "heads",
    "LearningExplorer": "learning",
    "LensExplorer": "lens",
    "LiveCell": "live_cell",
    "PatchesExplorer": "patches",
    "PlaygroundExplorer": "playground",
    "live": "live_cell",
    "PALETTE": "style",
    "Quiz": "quiz",
    "ScheduleExplorer": "training",
    "TranslatorExplorer": "translator",
    "AlibiExplorer": "positions",
    "RotaryExplorer": "positions",
    "MergesExplorer": "merges",
    "TilesExplorer": "tiles",
    "WavesExplorer": "positions",
    "SequentialExplorer": "sequential",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> object:
    return hand_out(__name__, name, _HOMES)


def __dir__() -> list[str]:
    return __all__
