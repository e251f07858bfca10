"""What a decoder alone writes while it learns real English: the manual that comes with every Python.

The text is that of `pydoc_data.topics`, the pages that `help()` shows. Of it the paragraphs of prose are kept, without
marks of emphasis, none twice, and every tenth page is held out. A GPT of three layers, like the road's decoder but for
its sizes, its rotary positions and its first weights, reads it character by character. At some steps: its loss on the
held-out pages, and how it continues one beginning at temperature 0.7. Beside the losses stands that of a table of the
characters' frequencies. At the end, of the words in 40 such texts: the share that the training pages have, too, and
for each text the longest run of words that stands there, which is copied rather than composed. One model and one rate:
nothing is compared.
"""

import re
from collections.abc import Iterator
from pydoc_data.topics import topics

import torch

from experiments import _record
from experiments._characters import loss_on, next_character_loss
from ttutor.generation import sample
from ttutor.training.fit import fit
from ttutor.variants.gpt import GPT, GPTConfig

SEED, SHOWN_AT = 0, (0, 50, 200, 600, 2500)
N_TOKENS, BATCH, PEAK = 128, 8, 4e-3
BEGINNING, TEMPERATURE, N_TEXTS = "The value of ", 0.7, 40


def paragraphs(pages: list[str]) -> list[str]:
    """The prose of some pages, a line for each paragraph, no paragraph twice."""
    parts = re.split(r"\n\s*\n", "\n\n".join(topics[page] for page in pages))
    lines = (" ".join(part.replace("*", "").split()) for part in parts)
    return list(dict.fromkeys(line for line in lines if len(line) > 40 and line[0].isalpha() and line[-1] in ".:"))


def words_of(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def longest_run(words: list[str], known: list[str]) -> int:
    """How many words in a row stand somewhere in the known text in this order."""
    within, longest = f" {' '.join(known)} ", 0
    for start in range(len(words)):
        while f" {' '.join(words[start : start + longest + 1])} " in within and start + longest < len(words):
            longest += 1
    return longest


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    pages = sorted(topics)
    train = paragraphs([page for page in pages if page not in pages[::10]])
    held_out = [line for line in paragraphs(pages[::10]) if line not in set(train)]
    alphabet = "".join(sorted(set("\n".join(train + held_out))))

    def ids_of(text: str) -> torch.Tensor:
        return torch.tensor([alphabet.index(character) for character in text])

    text, test = ids_of("\n".join(train)), ids_of("\n".join(held_out))
    pieces = test[: len(test) // (N_TOKENS + 1) * (N_TOKENS + 1)].reshape(-1, N_TOKENS + 1)
    share = (torch.bincount(text, minlength=len(alphabet)) + 1) / (len(text) + len(alphabet))

    torch.manual_seed(SEED)
    sizes = {"d_model": 96, "n_heads": 4, "n_layers": 3, "d_ff": 384, "max_len": N_TOKENS}
    choices = {"dropout": 0.0, "activation": "gelu", "positions": "rotary", "tie_embeddings": False}
    model = GPT(GPTConfig(vocab_size=len(alphabet), **sizes, **choices)).eval()
    n_steps = SHOWN_AT[-1]
    starts = torch.randint(len(text) - N_TOKENS - 1, (n_steps, BATCH))
    batches = [torch.stack([text[start : start + N_TOKENS + 1] for start in row]) for row in starts.tolist()]

    def continued(seed: int) -> str:
        beginning, generator = ids_of(BEGINNING)[None], torch.Generator().manual_seed(seed)
        n_new = N_TOKENS - len(BEGINNING)
        (made,) = sample(model, beginning, generator=generator, max_new_tokens=n_new, temperature=TEMPERATURE)
        return BEGINNING + "".join(alphabet[index] for index in made.token_ids)

    stages = []

    def show(step: int) -> None:
        stages.append({"step": step, "loss_held_out": loss_on(model, pieces), "text": continued(SEED)})
        print(stages[-1], flush=True)

    def shown_on_the_way() -> Iterator[torch.Tensor]:
        for step, batch in enumerate(batches):
            if step in SHOWN_AT:
                show(step)
            yield batch

    def rate(step: int) -> float:
        return PEAK * min(1, step / 100) * (1 - step / (n_steps + 1))

    fit(model, shown_on_the_way(), next_character_loss, steps=n_steps, learning_rate=rate)
    show(n_steps)

    known = words_of("\n".join(train))
    written = [words_of(continued(seed)[len(BEGINNING) :])[:-1] for seed in range(N_TEXTS)]  # the last may be cut off
    vocabulary, all_words = set(known), [word for words in written for word in words]
    result = {
        "settings": {
            "steps": n_steps, "parameters": sum(each.numel() for each in model.parameters()), **sizes,
            "characters": len(alphabet), "text": len(text), "held_out": len(test), "temperature": TEMPERATURE,
        },
        "frequencies_alone": round(-share[pieces[:, 1:]].log().mean().item(), 4),
        "loss_train": loss_on(model, text[: pieces.numel()].reshape(pieces.shape)),
        "stages": stages,
        "words": len(all_words),
        "words_known": round(sum(word in vocabulary for word in all_words) / len(all_words), 4),
        "longest_runs": sorted(longest_run(words, known) for words in written),
    }  # fmt: skip
    print({name: value for name, value in result.items() if name != "stages"})
    _record.write("decoder_text", result, seeds=[SEED], started=started)


if __name__ == "__main__":
    main()
