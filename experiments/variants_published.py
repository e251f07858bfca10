"""The gap and the labels of chapter 9 before a published decoder, which never read its language.

SmolLM2-135M-Instruct (`ttutor fetch smollm2`) fills the animal's gap in 64 test sentences, with the first letter large:
by what stands before the gap, by scoring all eight whole sentences, and by what follows each animal alone, without the
animal's own probability. Then it judges the 336 test sentences without any label: a sentence is right if, of the eight
verbs, its own is the most probable after the animal; or, calibrated, if it is the most probable beside its mean over
the eight animals, since some verbs are likely after any animal. Last it is asked
in words: sixteen short labelled examples ("the old dog purred: wrong"), three draws of them, and 48 sentences to judge,
by which of *right* and *wrong* is more probable behind the colon. A leaning to one of the two words would spoil that;
so the area under the curve stands beside it: how often a wrong sentence leans more to *wrong* than a right one does.
"""

import torch
from torch import Tensor, nn

from experiments import _record
from experiments import variants_objectives as language
from experiments.variants_labels import judged
from ttutor.pretrained import Pretrained, load

SEEDS, N_GAPS, N_SHOTS, N_ASKED = [0, 1, 2], 64, 16, 48
ANIMALS, VERBS = list(language.CALLS), list(language.CALLS.values())
WORDS = {index: word for word, index in language.INDEX.items()}
ANIMAL, VERB = 2, 3
train, test = language.TRAIN[:900], language.TEST


def texts(sentences: Tensor) -> list[str]:
    return [" ".join(WORDS[index] for index in row if index >= 8).capitalize() for row in sentences.tolist()]


def log_chances(chat: Pretrained, beginning: str, endings: list[str]) -> Tensor:
    """How probable each ending is behind the beginning: a sum over its tokens."""
    start, rows = chat.ids(beginning).shape[1], [chat.ids(beginning + ending)[0] for ending in endings]
    ids = nn.utils.rnn.pad_sequence(rows, batch_first=True)  # filler behind a text changes nothing before it
    log = chat.model(ids)[:, :-1].log_softmax(dim=-1).gather(2, ids[:, 1:, None])[..., 0]
    return torch.stack([line[start - 1 : len(row) - 1].sum() for line, row in zip(log, rows, strict=True)])


def gaps(chat: Pretrained) -> dict[str, int]:
    """How often the right animal is the most probable of eight: by the left, by whole sentences, by what follows it."""
    first = {"left": 0, "whole": 0, "what follows": 0}
    for sentence in texts(test[:N_GAPS]):
        words = sentence.split()
        beginning, rest = " ".join(words[:ANIMAL]), " ".join(words[ANIMAL + 1 :])
        left = log_chances(chat, beginning, [f" {name}" for name in ANIMALS])
        whole = log_chances(chat, beginning, [f" {name} {rest}." for name in ANIMALS])
        for how, scores in (("left", left), ("whole", whole), ("what follows", whole - left)):
            first[how] += int(scores.argmax()) == ANIMALS.index(words[ANIMAL])
    return first


def by_verb(chat: Pretrained, on: tuple[Tensor, Tensor]) -> dict:
    """Share right without a label: is the verb the most probable, as it is or beside its mean over the animals?"""
    right = {"plain": 0, "calibrated": 0}
    says = {"plain": {}, "calibrated": {}}
    for adjective in language.ADJECTIVES:
        names = [f"The {adjective} {animal}" for animal in ANIMALS]
        table = torch.stack([log_chances(chat, name, [f" {verb}" for verb in VERBS]) for name in names])
        for how, scores in (("plain", table), ("calibrated", table - table.mean(dim=0))):
            best = [VERBS[number] for number in scores.argmax(dim=1).tolist()]
            says[how] |= dict(zip(names, best, strict=True))
    for sentence, label in zip(texts(on[0]), on[1].tolist(), strict=True):
        words = sentence.split()
        for how, said in says.items():
            right[how] += (said[" ".join(words[: ANIMAL + 1])] != words[VERB]) == bool(label)
    n = len(on[1])
    known = {
        how: sum(language.CALLS[name.split()[-1]] == verb for name, verb in said.items()) for how, said in says.items()
    }
    return {"right": {how: round(count / n, 3) for how, count in right.items()}, "known of 48": known, "says": says}


def asked(chat: Pretrained, seed: int, on: tuple[Tensor, Tensor]) -> dict:
    """Share right when asked in words, behind sixteen labelled examples."""

    def short(sentence: str) -> str:
        return " ".join(sentence.split()[: VERB + 1]).lower()

    order = torch.randperm(len(train), generator=torch.Generator().manual_seed(seed))[:N_SHOTS]
    examples, labels = judged(train[order], seed)
    mixed = torch.randperm(N_SHOTS, generator=torch.Generator().manual_seed(seed)).tolist()
    said, shots = ["right", "wrong"], texts(examples)
    prompt = "".join(f"{short(shots[n])}: {said[labels[n]]}\n" for n in mixed)
    answers = torch.tensor([chat.ids(f"a: {word}")[0, -1] for word in said])
    leans = []
    for sentence in texts(on[0]):
        logits = chat.model(chat.ids(f"{prompt}{short(sentence)}:"))[0, -1]
        leans.append((logits[answers[1]] - logits[answers[0]]).item())
    lean, is_wrong = torch.tensor(leans), on[1].bool()
    above = (lean[is_wrong][:, None] > lean[~is_wrong]).double().mean().item()
    return {"right": round(((lean > 0) == is_wrong).double().mean().item(), 3), "area": round(above, 3)}


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    with torch.inference_mode():
        chat = load("smollm2")
        decoder = {"gaps": gaps(chat)}
        print(decoder, flush=True)
        decoder["by verb"] = by_verb(chat, judged(test, 1))
        print(decoder["by verb"], flush=True)
        some = judged(test[:N_ASKED], 1)
        decoder["asked"] = [asked(chat, seed, some) for seed in SEEDS]
        print(decoder["asked"], flush=True)
    settings = {"gaps": N_GAPS, "shots": N_SHOTS, "asked": N_ASKED}
    _record.write("variants_published", {"settings": settings, **decoder}, seeds=SEEDS, started=started)


if __name__ == "__main__":
    main()
