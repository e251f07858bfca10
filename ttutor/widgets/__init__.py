"""Figures that are alive: the course's visual language, its explorers, and its live cells.

Everything is loaded on first use, so that importing a colour does not load ipywidgets or Matplotlib.
"""

from ttutor.names import front_door

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

__getattr__, __dir__, __all__ = front_door(__name__, _HOMES)
