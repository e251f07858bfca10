"""A small CLIP of coloured digits and captions of two words: what it names right, and what its training told it.

`small_clip`, `captions`, `in_colour` and the training stand here as they stand on the page, with five seeds. Of 30
pairs of colour and digit each digit lacks one colour in training. Stored are the shares right on 500 new digits in a
seen and in the unseen colour: colour, digit; how often a seen caption is named; what is right among the ten unseen
captions alone; and what the colour alone would give there. Then zero-shot lists: the ten captions of the image's
colour; captions that no batch held, of a digit alone. The arms: all 30 pairs in training; one pair alone held out,
three times; and the unseen captions as wrong answers in every batch.
"""

import torch
from einops import rearrange
from sklearn.datasets import load_digits
from torch import Tensor
from torch.nn import functional

from experiments import _record
from ttutor.variants.clip import CLIP, CLIPConfig
from ttutor.variants.gpt import GPTConfig
from ttutor.variants.vit import ViTConfig

SEEDS, FEW, END = [0, 1, 2, 3, 4], [0, 1], 13
PAIRS = [(colour, digit) for colour in range(3) for digit in range(10)]
SEEN = [(colour, digit) for colour, digit in PAIRS if colour != digit % 3]


def digits() -> tuple[Tensor, Tensor]:
    """The page's images and classes, in its order."""
    data = load_digits()
    row = torch.randperm(1797, generator=torch.Generator().manual_seed(0))
    images = torch.tensor(data.images, dtype=torch.float64)[row] / 16
    return rearrange(images, "images height width -> images 1 height width"), torch.tensor(data.target)[row]


def captions(pairs):
    return torch.tensor([[10 + colour, digit, END] for colour, digit in pairs])


def in_colour(images, colours):
    painted = torch.zeros(len(images), 3, 8, 8)
    painted[torch.arange(len(images)), colours] = images[:, 0]
    return painted


def small_clip():
    sizes = {"d_model": 32, "n_heads": 4, "d_ff": 64}
    vision = ViTConfig(image_size=8, patch_size=2, n_channels=3, n_layers=1, **sizes)
    text = GPTConfig(vocab_size=14, max_len=3, n_layers=1, dropout=0.0, **sizes)
    return CLIP(CLIPConfig(vision=vision, text=text, d_shared=32, end_id=END)).double()


def train_clip(pairs: list, seed: int, others: list, steps: int = 600, peak: float = 1e-3) -> CLIP:
    """Every batch has one image of each pair, and the captions of these pairs and of the others."""
    images, classes = digits()
    of_digit = [(classes[:1297] == digit).nonzero()[:, 0] for digit in range(10)]
    own = torch.arange(len(pairs))
    torch.manual_seed(seed)
    clip = small_clip()
    optimiser = torch.optim.Adam(clip.parameters())
    for step in range(1, steps + 1):
        optimiser.param_groups[0]["lr"] = peak * min(1, 10 * step / steps) * (1 - step / (steps + 1))
        rows = [of_digit[digit] for _, digit in pairs]
        rows = torch.stack([row[torch.randint(len(row), ())] for row in rows])
        painted = in_colour(images[rows], torch.tensor([colour for colour, _ in pairs]))
        scores = clip(painted, captions([*pairs, *others]))
        by_image = functional.cross_entropy(scores, own)
        by_caption = functional.cross_entropy(scores[:, : len(pairs)].T, own)
        optimiser.zero_grad()
        ((by_image + by_caption) / 2).backward()
        optimiser.step()
    return clip


@torch.no_grad()
def asked(clip: CLIP, colours: Tensor, digit_of: Tensor, painted: Tensor) -> dict[str, float]:
    """What a list of captions gets right on these images."""
    scores = clip(painted, captions(PAIRS))
    named = scores.argmax(dim=-1)
    unseen = [PAIRS.index(pair) for pair in PAIRS if pair not in SEEN]
    among = torch.tensor(unseen)[scores[:, unseen].argmax(dim=-1)]
    alone = clip(painted, torch.tensor([[digit, END, END] for digit in range(10)])).argmax(dim=-1)
    of_colour = scores.view(-1, 3, 10)[torch.arange(len(painted)), colours].argmax(dim=-1)
    found = {
        "colour": named // 10 == colours,
        "digit": named % 10 == digit_of,
        "a seen caption named": ~torch.isin(named, torch.tensor(unseen)),
        "digit, among the ten unseen captions": among % 10 == digit_of,
        "digit, among the ten captions of its colour": of_colour == digit_of,
        "digit, by captions of the digit alone": alone == digit_of,
    }
    return {name: round(right.double().mean().item(), 3) for name, right in found.items()}


def tested(clip: CLIP) -> dict[str, dict[str, float]]:
    """On new digits in a seen colour and in the one that was held out."""
    images, classes = digits()
    new, answers = images[1297:], classes[1297:]
    held = answers % 3
    kinds = (("seen", (held + 1) % 3), ("new", held))
    return {kind: asked(clip, colours, answers, in_colour(new, colours)) for kind, colours in kinds}


def one_held_out(pair: tuple[int, int], seed: int) -> float:
    """The share of new images of the one pair that was held out whose digit is named right, of 30 captions."""
    clip = train_clip([one for one in PAIRS if one != pair], seed, [])
    images, classes = digits()
    new = images[1297:][classes[1297:] == pair[1]]
    with torch.no_grad():
        named = clip(in_colour(new, torch.full((len(new),), pair[0])), captions(PAIRS)).argmax(dim=-1)
    return round((named % 10 == pair[1]).double().mean().item(), 3)


def main() -> None:
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    started = _record.start()
    _, classes = digits()
    answers = classes[1297:]
    # the best guess from the colour alone, among the ten unseen captions: the commonest digit of that colour
    best = sum(max(int((answers == digit).sum()) for digit in range(10) if digit % 3 == colour) for colour in range(3))
    unseen = [pair for pair in PAIRS if pair not in SEEN]
    results = {
        "runs": [tested(train_clip(SEEN, seed, [])) for seed in SEEDS],
        "by the colour alone, among the ten unseen captions": round(best / len(answers), 3),
        "attacks": {
            "all pairs in training": [tested(train_clip(PAIRS, seed, [])) for seed in FEW],
            "unseen captions as wrong answers": [tested(train_clip(SEEN, seed, unseen)) for seed in FEW],
            "1,200 steps": [tested(train_clip(SEEN, 0, [], steps=1200))],
            "one pair held out": {f"{pair}": [one_held_out(pair, 0)] for pair in ((0, 3), (1, 7), (2, 8))},
        },
    }
    print(results, flush=True)
    _record.write("vit_clip", results, seeds=SEEDS, started=started)


if __name__ == "__main__":
    main()
