"""A published language model continues beginnings of sentences: greedy, at four temperatures, by nucleus sampling.

Opens SmolLM2-135M-Instruct (`ttutor fetch smollm2`) by our own classes. It gets the first four words of 24 sentences,
which were written for this course, and writes 48 tokens each. Stored are the texts of the first seed and two numbers of
each text, beside those of the sentences as a person ended them:

- the *surprise*, the mean of $-\\ln p$ under the model itself at temperature 1, of as many tokens as the person wrote;
- how many of its four-token sequences have stood in the text before.

Attacks: a second seed, temperatures and shares in between, and both halves of the sentences. Five minutes, one core.
"""

import torch
from torch.nn import functional

from experiments import _record
from experiments.multihead_pretrained import TESTED as SENTENCES
from ttutor.generation import greedy_search, sample
from ttutor.pretrained import Pretrained, load

N_WORDS, N_NEW, N_GRAM = 4, 48, 4
SETTINGS: dict[str, dict] = {
    "greedy": {},
    "temperature 0.3": {"temperature": 0.3},
    "temperature 0.7": {"temperature": 0.7},
    "temperature 1": {"temperature": 1.0},
    "temperature 1.5": {"temperature": 1.5},
    "nucleus, p = 0.9": {"top_p": 0.9},
}
BETWEEN: dict[str, dict] = {
    "temperature 0.85": {"temperature": 0.85},
    "nucleus, p = 0.8": {"top_p": 0.8},
}


def padded(rows: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows of token ids, padded on the left, and which of them are real."""
    width = max(map(len, rows))
    ids = torch.tensor([[0] * (width - len(row)) + row for row in rows])
    return ids, torch.tensor([[at >= width - len(row) for at in range(width)] for row in rows])


def continued(chat: Pretrained, prompts: list[list[int]], seed: int, setting: dict) -> list[list[int]]:
    """What is written after each prompt."""
    ids, is_real = padded(prompts)
    options = {"max_new_tokens": N_NEW, "is_real": is_real}
    if not setting:
        made = greedy_search(chat.model, ids, **options)
    else:
        made = sample(chat.model, ids, generator=torch.Generator().manual_seed(seed), **setting, **options)
    return [list(one.token_ids) for one in made]


def surprise(chat: Pretrained, prompt: list[int], written: list[int]) -> torch.Tensor:
    """$-\\ln p$ of each written token under the model as it is."""
    ids = torch.tensor([[*prompt, *written]])
    logits = chat.model(ids)[0, len(prompt) - 1 : -1]
    return functional.cross_entropy(logits, ids[0, len(prompt) :], reduction="none")


def repeated(written: list[int]) -> float:
    """The share of four-token sequences that have stood in the text before."""
    grams = [tuple(written[at : at + N_GRAM]) for at in range(len(written) - N_GRAM + 1)]
    return 1 - len(set(grams)) / len(grams)


def median(values: list[float]) -> float:
    return round(torch.tensor(values, dtype=torch.float64).quantile(0.5).item(), 3)


def measured(chat: Pretrained, prompts: list[list[int]], written: list[list[int]], lengths: list[int]) -> dict:
    """Medians over the texts, of all and of each half."""
    early = [
        surprise(chat, prompt, text[:length]).mean().item()
        for prompt, text, length in zip(prompts, written, lengths, strict=True)
    ]
    again, half = [repeated(text) for text in written], len(prompts) // 2
    return {
        "surprise": median(early),
        "surprise, halves": [median(early[:half]), median(early[half:])],
        "repeated": round(sum(again) / len(again), 3),
        "repeated, halves": [round(sum(part) / half, 3) for part in (again[:half], again[half:])],
        "texts that repeat": sum(share > 0 for share in again),
    }


@torch.inference_mode()
def main() -> None:
    torch.set_num_threads(1)
    started, chat = _record.start(), load("smollm2")
    encode = chat.tokenizer.encode
    prompts, ends = [], []
    for sentence in SENTENCES:
        beginning = " ".join(sentence.split()[:N_WORDS])
        prompts.append(encode(beginning).ids)
        ends.append(encode(sentence).ids[len(prompts[-1]) :])
    lengths = [len(end) for end in ends]
    of_people = [surprise(chat, prompt, end) for prompt, end in zip(prompts, ends, strict=True)]
    half = len(prompts) // 2
    means = [one.mean().item() for one in of_people]
    results: dict = {
        "beginnings": [" ".join(sentence.split()[:N_WORDS]) for sentence in SENTENCES],
        "n_new": N_NEW,
        "people": {"surprise": median(means), "surprise, halves": [median(means[:half]), median(means[half:])]},
        "settings": {},
        "texts": {},
        "attacks": [],
    }
    for name, setting in SETTINGS.items():
        written = continued(chat, prompts, 0, setting)
        results["settings"][name] = measured(chat, prompts, written, lengths)
        results["texts"][name] = [chat.tokenizer.decode(text) for text in written]
        print(name, results["settings"][name], results["texts"][name][0], flush=True)
    for seed, settings in ((1, SETTINGS), (0, BETWEEN)):
        for name, setting in settings.items():
            if setting:
                found = measured(chat, prompts, continued(chat, prompts, seed, setting), lengths)
                results["attacks"].append(f"{name}, seed {seed}: {found}")
                print(results["attacks"][-1], flush=True)
    _record.write("decoder_continues", results, seeds=[0, 1], started=started)


if __name__ == "__main__":
    main()
