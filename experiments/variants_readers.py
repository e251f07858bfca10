"""Chapter 9's two readers, three seeds of each: a small GPT and a small BERT.

Language and sizes are those of `variants_objectives.py`, less the words of its stories. GPT has 400 steps of 32
sentences, BERT has 700, since it is asked about fewer words in each; BERT's sentences stand behind ``[CLS]``. The rate
of 3e-3 was not tuned for either. The weights are stored in float32, each model's in one piece, in the order of its
parameters. Two minutes on one core.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from experiments import _record
from experiments import variants_objectives as language
from ttutor.training.fit import fit
from ttutor.variants.bert import BERT, BERTConfig, BERTForMaskedLM
from ttutor.variants.gpt import GPT, GPTConfig
from ttutor.variants.objectives import mask_tokens

SEEDS = [0, 1, 2]
VOCAB_SIZE = language.VOCAB_SIZE - len(language.ORDER_OF_STORY)  # the chapter tells no stories
SIZES = language.SIZES | {"vocab_size": VOCAB_SIZE}
STEPS = {"gpt": 400, "bert": 700}


def batches(steps: int, generator: torch.Generator) -> list[Tensor]:
    n_train = len(language.TRAIN)
    return [language.TRAIN[torch.randint(n_train, (language.BATCH,), generator=generator)] for _ in range(steps)]


def behind_class_token(sentences: Tensor) -> Tensor:
    return functional.pad(sentences, (1, 0), value=language.CLS)


def gpt(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    model = GPT(GPTConfig(**SIZES, max_len=language.N_TOKENS, dropout=0.0))

    def loss(model: nn.Module, batch: Tensor) -> Tensor:
        return language.token_loss(model(functional.pad(batch[:, :-1], (1, 0), value=language.CLS)), batch)

    generator = torch.Generator().manual_seed(seed)
    fit(model, batches(STEPS["gpt"], generator), loss, steps=STEPS["gpt"], learning_rate=language.RATE)
    return model


def bert(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    model = BERTForMaskedLM(BERT(BERTConfig(**SIZES, max_len=language.N_TOKENS + 1, dropout=0.0), pooler=False))
    generator = torch.Generator().manual_seed(seed)

    def loss(model: nn.Module, batch: Tensor) -> Tensor:
        inputs, labels = mask_tokens(
            behind_class_token(batch),
            mask_id=language.MASK,
            vocab_size=VOCAB_SIZE,
            special_ids=language.SPECIAL,
            generator=generator,
        )
        return language.token_loss(model(inputs), labels)

    fit(model, batches(STEPS["bert"], generator), loss, steps=STEPS["bert"], learning_rate=language.RATE)
    return model


def flat(model: nn.Module) -> Tensor:
    return nn.utils.parameters_to_vector(model.parameters()).detach().float()


def main() -> None:
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    started = _record.start()
    weights = {f"{make.__name__}.{seed}": flat(make(seed)) for make in (gpt, bert) for seed in SEEDS}
    _record.write("variants_readers", {"steps": STEPS}, seeds=SEEDS, started=started, weights=weights)


if __name__ == "__main__":
    main()
