"""What becomes of nine words in eight fresh layers: with and without skips, with and without networks.

The words are those of a sentence, as our translator's embedding and positions give them. The layers are fresh
(Xavier's first weights), the same in all four runs, with a norm before each sublayer. After each layer the words are
put into a plane: their differences from the common mean, relative to the length of all, along the two directions in
which they differ most, turned so that each word stays as near as can be to where it was. The spread, as in chapter 5,
is stored beside them; over five seeds it is the same story.
"""

import torch
from torch import Tensor

from experiments import _record
from ttutor.encoder import Encoder
from ttutor.translation.packed import load_packed

SENTENCE = "The old woman sells fruit at the market."
N_LAYERS, SEEDS = 8, [0, 1, 2, 3, 4]
RUNS = {"attention": (False, False), "skips": (True, False), "networks": (False, True), "both": (True, True)}


def words() -> tuple[list[str], Tensor]:
    """The tokens, and their vectors as the translator's first layer reads them."""
    packed = load_packed()
    ids = packed.translator.tokenizer.encode(SENTENCE)
    embed = packed.translator.model.source_embeddings
    with torch.no_grad():
        hidden = embed(torch.tensor([ids]))[0].double()
    return [token.removeprefix("▁") for token in packed.translator.tokenizer.tokens(ids)], hidden


def spread(hidden: Tensor) -> float:
    """How far the words lie from their mean, relative to their size."""
    return ((hidden - hidden.mean(dim=0)).norm() / hidden.norm()).item()


@torch.no_grad()
def through(hidden: Tensor, seed: int, *, skips: bool, networks: bool) -> list[Tensor]:
    """The words' vectors before the first layer and after each."""
    torch.manual_seed(seed)
    width = hidden.shape[-1]
    states = [hidden]
    for layer in Encoder(width, n_heads=4, d_ff=4 * width, n_layers=N_LAYERS, norm="pre").layers:
        sublayers = [(layer.self_attention, layer.around_attention.norm)]
        sublayers += [(layer.feed_forward, layer.around_feed_forward.norm)] * networks
        for sublayer, norm in sublayers:
            written = sublayer(norm(hidden[None]))[0]
            hidden = hidden + written if skips else written
        states.append(hidden)
    return states


def planes(states: list[Tensor]) -> list[Tensor]:
    """Where the words lie after each layer, in the plane in which they differ most."""
    found: list[Tensor] = []
    for hidden in states:
        apart = (hidden - hidden.mean(dim=0)) / hidden.square().sum(dim=-1).mean().sqrt()
        left, sizes, _ = torch.linalg.svd(apart, full_matrices=False)
        place = left[:, :2] * sizes[:2]
        if found:
            one, _, other = torch.linalg.svd(place.T @ found[-1])
            place = place @ one @ other
        found.append(place)
    return found


def main() -> None:
    """Record all four runs."""
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    started = _record.start()
    tokens, hidden = words()
    runs = {}
    for name, (skips, networks) in RUNS.items():
        each = [through(hidden, seed, skips=skips, networks=networks) for seed in SEEDS]
        runs[name] = {
            "places": [[[round(x, 3) + 0.0 for x in word] for word in at.tolist()] for at in planes(each[0])],
            "spread": [round(spread(state), 3) for state in each[0]],
            "ends": [round(spread(states[-1]), 3) for states in each],
        }
        print(name, runs[name]["spread"], runs[name]["ends"], flush=True)
    _record.write("encoder_collapse", {"tokens": tokens, "runs": runs}, seeds=SEEDS, started=started)


if __name__ == "__main__":
    main()
