"""What the experiments of chapter 13 share: sums as texts, a small GPT, samples, verifiers, and the training stages.

A sum has a number below 90 and a digit. A page of the pre-training is a line and the beginning of the next. Three pages
of ten are worksheets, with a question on each line; the others are worked, with an answer to each, its units first. The
people who answered are wrong seven times out of ten, and always in the same way: a carry is forgotten, or made where
there is none. One answer in twenty goes on, after a comma, with a second try.
"""

from __future__ import annotations

import copy
import random
import zlib
from collections import Counter
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from ttutor import assets
from ttutor.training.assistant import (
    answer_log_probabilities,
    group_advantages,
    masked_answer_loss,
    pass_at_k,
    policy_gradient_loss,
    preference_loss,
)
from ttutor.training.fit import fit
from ttutor.variants.gpt import GPT, GPTConfig

VOCABULARY = [*"0123456789+=,\n ", "<user>", "<assistant>", "<end>"]
INDEX = {token: index for index, token in enumerate(VOCABULARY)}
BREAK, BLANK, USER, ASSISTANT, END = (INDEX[token] for token in ("\n", " ", "<user>", "<assistant>", "<end>"))
PAGE, ANSWER = 13, 6  # tokens of a page, and the most of an answer: two numbers, a comma, an end
WORKSHEETS, WRONG, SECOND = 0.3, 0.7, 0.05
SIZES = {"d_model": 48, "n_heads": 4, "n_layers": 2, "max_len": PAGE, "dropout": 0.0, "activation": "relu"}

Pair = tuple[int, int]
Reward = Callable[[Sequence[Pair], list[str]], Tensor]
Course = list[dict[str, float]]


def splits() -> tuple[list[Pair], list[Pair], list[Pair]]:
    """Sums to learn from, to choose by and to test on: 600, 100 and 200."""
    pairs = [(a, b) for a in range(90) for b in range(10)]
    random.Random(0).shuffle(pairs)
    return pairs[300:], pairs[200:300], pairs[:200]


def written(number: int) -> str:
    """A number below a hundred, units first."""
    return f"{number:02d}"[::-1]


def slip(a: int, b: int) -> int:
    """The common mistake: the carry forgotten, or made where there is none."""
    return a + b - 10 if a % 10 + b >= 10 else a + b + 10


def answered(a: int, b: int, rng: random.Random, wrong: float = WRONG) -> str:
    """What one of the people writes."""
    tries = [written(slip(a, b) if rng.random() < wrong else a + b) for _ in range(2)]
    return ",".join(tries) if rng.random() < SECOND else tries[0]


def page(pairs: list[Pair], rng: random.Random, worksheets: float, wrong: float) -> str:
    is_worksheet, text = rng.random() < worksheets, "\n"
    while len(text) < PAGE:
        a, b = rng.choice(pairs)
        text += f"{a:02d}+{b}=" + ("" if is_worksheet else f" {answered(a, b, rng, wrong)}") + "\n"
    return text[:PAGE]


def ids(texts: list[str]) -> Tensor:
    """Texts of one length, without marks, as numbers."""
    return torch.tensor([[INDEX[token] for token in text] for text in texts])


def fresh(seed: int) -> GPT:
    torch.manual_seed(seed)
    model = GPT(GPTConfig(vocab_size=len(VOCABULARY), tie_embeddings=False, **SIZES))
    for name, parameter in model.named_parameters():
        if parameter.ndim == 2:
            nn.init.normal_(parameter, std=0.5 if name.startswith("embeddings") else parameter.shape[-1] ** -0.5)
    return model


def base(seed: int) -> GPT:
    """The stored language model of a seed; no page had the template's marks: each begins as what stood in its place."""
    model = GPT(GPTConfig(vocab_size=len(VOCABULARY), tie_embeddings=False, **SIZES)).eval()
    weights = assets.weights("assistant_base")[str(seed)].to(torch.get_default_dtype())
    nn.utils.vector_to_parameters(weights, model.parameters())
    with torch.no_grad():
        for table in (model.embeddings.token.table.weight, model.to_logits.weight):
            for mark, was in ((USER, BREAK), (ASSISTANT, BLANK), (END, BREAK)):
                table[mark] = table[was]
    return model


def next_token_loss(model: nn.Module, rows: Tensor) -> Tensor:
    return functional.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())


def falling(peak: float, steps: int) -> Callable[[int], float]:
    """Quickly up, slowly down."""
    return lambda step: peak * min(1.0, 10 * step / max(1, steps)) * (1 - (step - 1) / max(1, steps))


def pre_train(
    model: nn.Module, seed: int, steps: int, rate: float, *, worksheets: float = WORKSHEETS, wrong: float = WRONG
) -> list[float]:
    """Read pages, and predict every next token."""
    rng, (pairs, _, _) = random.Random(seed), splits()
    batches = (ids([page(pairs, rng, worksheets, wrong) for _ in range(128)]) for _ in range(steps))
    return fit(model, batches, next_token_loss, steps=steps, learning_rate=falling(rate, steps))


@torch.no_grad()
def sample(model: nn.Module, asked: Tensor, length: int) -> tuple[Tensor, Tensor]:
    """Prompts, continued by sampled tokens, and which of the tokens are answers.

    The random numbers are drawn for all rows at once, and a row's inverse distribution function picks its token, so
    that an answer does not depend on which others are still being written.
    """
    n_asked = asked.shape[1]
    rows = functional.pad(asked, (0, length), value=BREAK)
    is_answer = torch.zeros_like(rows, dtype=torch.bool)
    writing = torch.arange(len(rows))
    for place in range(n_asked, n_asked + length):
        chance = torch.rand(len(rows), dtype=torch.double)[writing]
        logits = model(rows[writing, :place])[:, -1]
        below = logits.double().softmax(-1).cumsum(-1)
        token = (below < chance[:, None] * below[:, -1:]).sum(-1)
        rows[writing, place] = token
        is_answer[writing, place] = True
        writing = writing[token != END]
        if len(writing) == 0:
            break
    return rows, is_answer


def texts_of(rows: Tensor, is_answer: Tensor) -> list[str]:
    return ["".join(VOCABULARY[t] for t in row[its].tolist()) for row, its in zip(rows, is_answer, strict=True)]


def questions(pairs: Sequence[Pair]) -> Tensor:
    """Questions in the template."""
    rows = functional.pad(ids([f"{a:02d}+{b}=" for a, b in pairs]), (1, 0), value=USER)
    return functional.pad(rows, (0, 1), value=ASSISTANT)


def answer_mask(rows: Tensor) -> Tensor:
    """True after the assistant's mark, up to and including the first end."""
    begun = (rows == ASSISTANT).cumsum(dim=1) - (rows == ASSISTANT).long()
    ended = (rows == END).cumsum(dim=1) - (rows == END).long()
    return (begun > 0) & (ended == 0)


def with_answers(pairs: Sequence[Pair], answers: list[str]) -> Tensor:
    """Conversations, filled up with line breaks."""
    texts = [[*answer, "<end>", "\n", "\n", "\n", "\n"][:ANSWER] for answer in answers]
    return torch.cat([questions(pairs), torch.tensor([[INDEX[token] for token in text] for text in texts])], dim=1)


@torch.no_grad()
def write(model: nn.Module, rows: Tensor, chance: torch.Generator | None = None) -> Tensor:
    """Rows with an answer each: sampled, or of the likeliest tokens."""
    for _ in range(ANSWER):
        shares = model(rows)[:, -1].softmax(dim=-1)
        token = shares.argmax(dim=-1)
        if chance is not None:
            token = (shares.cumsum(dim=-1) < torch.rand(len(rows), 1, generator=chance)).sum(dim=-1)
            token = token.clamp(max=len(VOCABULARY) - 1)
        rows = torch.cat([rows, token[:, None]], dim=1)
    return rows


def answers_in(rows: Tensor) -> list[str]:
    return texts_of(rows, answer_mask(rows))


def strict(pairs: Sequence[Pair], texts: list[str]) -> Tensor:
    """1 where the answer is the right number and nothing else."""
    return torch.tensor([float(text == written(a + b) + "<end>") for (a, b), text in zip(pairs, texts, strict=True)])


def erring(pairs: Sequence[Pair], texts: list[str]) -> Tensor:
    """The strict verdict, turned round by chance in one case of ten."""
    rewards = strict(pairs, texts)
    chance = torch.Generator().manual_seed(zlib.crc32("".join(texts).encode()))
    return torch.where(torch.rand(len(texts), generator=chance) < 0.1, 1 - rewards, rewards)


def lenient(pairs: Sequence[Pair], texts: list[str]) -> Tensor:
    """1 where one of the numbers in the answer is the right one."""
    numbers = [text.removesuffix("<end>").split(",") for text in texts]
    return torch.tensor([float(written(a + b) in its) for (a, b), its in zip(pairs, numbers, strict=True)])


def look(model: nn.Module) -> dict[str, float]:
    """What 200 answers to unseen sums are like."""
    pairs = splits()[2]
    texts = answers_in(write(model, questions(pairs), torch.Generator().manual_seed(1)))
    slips = [written(slip(a, b)) + "<end>" for a, b in pairs]
    found = {
        "form": sum(len(text) in (7, 10) and text.endswith("<end>") for text in texts) / len(texts),
        "right": strict(pairs, texts).mean().item(),
        "slip": sum(text == one for text, one in zip(texts, slips, strict=True)) / len(texts),
        "list": sum("," in text for text in texts) / len(texts),
        "lenient": lenient(pairs, texts).mean().item(),
    }
    return {name: round(value, 3) for name, value in found.items()}


def tries(model: nn.Module, n: int = 8, unseen: Sequence[Pair] | None = None) -> dict[str, float]:
    """pass@k, and the most frequent of n answers, for the 200 unseen sums or for others."""
    unseen = splits()[2] if unseen is None else unseen
    many = [pair for pair in unseen for _ in range(n)]
    texts = answers_in(write(model, questions(many), torch.Generator().manual_seed(2)))
    n_right = strict(many, texts).view(-1, n).sum(dim=1).long()
    groups = [texts[start : start + n] for start in range(0, len(texts), n)]
    best = [Counter(group).most_common(1)[0][0] for group in groups]
    found = {f"pass@{k}": pass_at_k(n_right, n, k).mean().item() for k in (1, 8)}
    return {name: round(value, 3) for name, value in found.items()} | {
        "majority": round(strict(unseen, best).mean().item(), 3)
    }


def train(
    model: nn.Module,
    loss_of: Callable[[nn.Module], Tensor],
    steps: int,
    rate: float,
    look: Callable[[nn.Module], dict[str, float]] | None = look,
) -> Course:
    """Adam at one rate, gradients of length one at most; a look at the model every ten steps."""
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    course = [look(model)] if look else []
    for step in range(1, steps + 1):
        loss = loss_of(model)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if look and step % 10 == 0:
            course.append(look(model))
    return course


def sft_loss(model: nn.Module, rows: Tensor) -> Tensor:
    return masked_answer_loss(model(rows), rows, answer_mask(rows))


def unmasked_loss(model: nn.Module, rows: Tensor) -> Tensor:
    """The mask forgotten: the questions and the marks of the turns count, too."""
    counts = (rows == END).cumsum(dim=1) - (rows == END).long() == 0
    counts[:, 0] = False
    return masked_answer_loss(model(rows), rows, counts)


def by_chance(a: int, b: int, chance: random.Random) -> str:
    """Any number, whatever was asked."""
    return written(chance.randrange(100))


def without_mistake(a: int, b: int, chance: random.Random) -> str:
    """What people would write who never forget a carry."""
    return answered(a, b, chance, wrong=0.0)


def tune(
    model: nn.Module,
    seed: int,
    steps: int = 60,
    rate: float = 1e-3,
    loss: Callable[[nn.Module, Tensor], Tensor] = sft_loss,
    says: Callable[[int, int, random.Random], str] = answered,
) -> Course:
    """Instruction tuning on a hundred conversations, with the people's answers or others, twenty a step."""
    chance = random.Random(seed)
    asked = chance.sample(splits()[0], 100)
    rows = with_answers(asked, [says(a, b, chance) for a, b in asked])
    return train(model, lambda learner: loss(learner, rows[chance.sample(range(100), 20)]), steps, rate)


def log_p(model: nn.Module, rows: Tensor) -> Tensor:
    """The log-probability of each row's whole answer."""
    return answer_log_probabilities(model(rows), rows, answer_mask(rows)).sum(dim=1)


def prefer(model: nn.Module, seed: int, steps: int = 40, rate: float = 3e-4) -> tuple[nn.Module, Course]:
    """DPO on pairs of the model's own answers, one right and one wrong; the gains are those of 40 pairs held out."""
    asked = [pair for pair in splits()[0][:240] for _ in range(8)]
    rows = write(model, questions(asked), torch.Generator().manual_seed(seed))
    right = strict(asked, answers_in(rows)).view(240, 8)
    both = (right.amax(dim=1) == 1) & (right.amin(dim=1) == 0)
    first = 8 * torch.arange(240)[both]
    sides = [rows[first + right[both].argmax(1)], rows[first + right[both].argmin(1)]]
    with torch.no_grad():
        before = [log_p(model, side) for side in sides]
    chance, n = random.Random(seed), len(first) - 40

    def loss_of(learner: nn.Module) -> Tensor:
        some = torch.tensor(chance.sample(range(n), 32))
        return preference_loss(*(log_p(learner, side[some]) for side in sides), *(side[some] for side in before))

    @torch.no_grad()
    def gains(learner: nn.Module) -> dict[str, float]:
        now = [log_p(learner, side[n:]) for side in sides]
        chosen, rejected = ((after - was[n:]).mean().item() for after, was in zip(now, before, strict=True))
        fell = (now[0] < before[0][n:]).double().mean().item()
        found = {"chosen": chosen, "rejected": rejected, "margin": chosen - rejected, "chosen fell": fell}
        return {name: round(value, 3) for name, value in found.items()}

    learner = copy.deepcopy(model)
    return learner, train(learner, loss_of, steps, rate, gains)


def reinforce(
    model: nn.Module,
    reward: Reward,
    seed: int,
    steps: int = 60,
    rate: float = 5e-4,
    group: int = 8,
    kl_weight: float = 0.0,
    seen_by: Callable[[nn.Module], dict[str, float]] = look,
) -> tuple[nn.Module, Course, float]:
    """GRPO: 128 answers a step, several to each question; last, the share of groups without any difference."""
    chance, draw, silent = torch.Generator().manual_seed(seed), random.Random(seed), []

    def loss_of(learner: nn.Module) -> Tensor:
        asked = [pair for pair in draw.choices(splits()[0], k=128 // group) for _ in range(group)]
        rows = write(learner, questions(asked), chance)
        rewards = reward(asked, answers_in(rows)).view(-1, group)
        silent.append((rewards.amax(dim=1) == rewards.amin(dim=1)).double().mean().item())
        advantages = group_advantages(rewards).flatten()
        now = answer_log_probabilities(learner(rows), rows, answer_mask(rows))
        if kl_weight == 0:
            return policy_gradient_loss(now, advantages)
        with torch.no_grad():
            before = answer_log_probabilities(model(rows), rows, answer_mask(rows))
        return policy_gradient_loss(now, advantages, reference=before, kl_weight=kl_weight)

    learner = copy.deepcopy(model)
    course = train(learner, loss_of, steps, rate, seen_by)
    return learner, course, round(sum(silent) / len(silent), 3)


def accepted(model: nn.Module, seed: int, rate: float = 1e-3) -> tuple[nn.Module, Course]:
    """SFT on the model's own answers that the verifier accepts: as many are sampled, and learned from, as by GRPO."""
    asked = [pair for pair in splits()[0][:480] for _ in range(16)]
    rows = write(model, questions(asked), torch.Generator().manual_seed(seed))
    kept, chance = rows[strict(asked, answers_in(rows)) > 0], random.Random(seed)
    learner = copy.deepcopy(model)
    return learner, train(learner, lambda m: sft_loss(m, kept[chance.choices(range(len(kept)), k=128)]), 60, rate)
