"""Three questions that chapter 9's short runs leave open, three seeds each.

*Twice the steps at 15 %.* The BERT of `variants_mask_rate` at 15 % with 1,400 steps for 700: as many questions as the
run with 30 % was asked.

*Five times the steps with rotary positions.* The baseline and the rotary model of `variants_parts` with 1,500 steps
for 300, each at the rate that was chosen there for 300 steps (3e-3 for both, not chosen again).

*Labels at masks alone.* The BERT of 15 % and 700 steps, and the same one asked about masks only, so that the random and
the kept tenths of the selected tokens do not count: the share of words that each names right on whole test sentences,
no mask in them; and on sentences with one word replaced by a random one, the share of such words that are corrected.
"""

import torch

from experiments import _record
from experiments import variants_mask_rate as mask_rate
from experiments import variants_objectives as language
from experiments import variants_parts as parts
from ttutor.corpora.corpus import embedded_corpus
from ttutor.variants.objectives import IGNORE_ID, mask_tokens

SEEDS = [0, 1, 2]


def masks_only(token_ids, **settings):
    inputs, labels = mask_tokens(token_ids, **settings)
    return inputs, torch.where(inputs == language.MASK, labels, IGNORE_ID)


@torch.no_grad()
def on_visible_words(model) -> dict[str, float]:
    """Share of visible words named right, and share of words replaced by random ones that are set right."""
    generator = torch.Generator().manual_seed(11)
    named = (model(language.TEST).argmax(dim=-1) == language.TEST).double().mean().item()
    mended = []
    for place in range(language.N_TOKENS):
        inputs = language.TEST.clone()
        inputs[:, place] = torch.randint(8, language.VOCAB_SIZE, (len(inputs),), generator=generator)
        wrong = inputs[:, place] != language.TEST[:, place]
        right = model(inputs)[:, place].argmax(dim=-1) == language.TEST[:, place]
        mended.append(right[wrong].double().mean().item())
    return {"named": round(named, 3), "mended": round(sum(mended) / len(mended), 3)}


def visible_words() -> list[dict]:
    rows = []
    for name, rule in {"all selected count": mask_tokens, "masks alone count": masks_only}.items():
        mask_rate.mask_tokens = rule
        models = [mask_rate.train(0.15, seed) for seed in SEEDS]
        above = [mask_rate.above_the_floor(model) for model in models]
        rows.append({"labels": name, "above": above, "visible": [on_visible_words(model) for model in models]})
        print(rows[-1], flush=True)
    mask_rate.mask_tokens = mask_tokens
    return rows


def twice_the_steps() -> dict:
    mask_rate.STEPS = 1400
    models = [mask_rate.train(0.15, seed) for seed in SEEDS]
    row = {"masked": 0.15, "steps": mask_rate.STEPS}
    row |= {"above": [mask_rate.above_the_floor(model) for model in models]}
    row |= {"coherent": [mask_rate.coherent(model) for model in models]}
    print(row, flush=True)
    return row


def five_times_the_steps() -> list[dict]:
    parts.STEPS = 1500
    corpus = embedded_corpus(sizes={"train": 10_000, "validation": 1000, "test": 2000})
    splits = {"train": corpus.train, "validation": corpus.validation, "test": corpus.test}
    texts = {name: "\n".join(english for english, _ in pairs) for name, pairs in splits.items()}
    characters = sorted(set("".join(texts.values())))
    index_of = {character: index for index, character in enumerate(characters)}
    text = torch.tensor([index_of[character] for character in texts["train"]])
    test = parts.pieces_of(texts["test"], index_of, 256)
    rows = []
    for name in ("baseline", "rotary"):
        d_ff = parts.d_ff_of_equal_size(len(characters), parts.PARTS[name])
        models = [parts.train(parts.PARTS[name], d_ff, 3e-3, seed, text, len(characters)) for seed in SEEDS]
        rows.append({"part": name, "steps": parts.STEPS, "rate": 3e-3})
        rows[-1] |= {"test": [parts.loss_on(model, test) for model in models]}
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    results = {"visible": visible_words(), "mask_rate": twice_the_steps(), "parts": five_times_the_steps()}
    _record.write("variants_longer", results, seeds=SEEDS, started=started, embedded_corpus=True)


if __name__ == "__main__":
    main()
