"""Training a GPT on one text: cut it into tokens, draw windows, predict each next token, now and then look at a sample.

.. code-block:: python

    training = TextTraining(Path("my.txt").read_text(encoding="utf-8"), "my-gpt", minutes=10)
    training.run()
"""

import hashlib
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ttutor.errors import FileError, InputError, RunError, SettingError
from ttutor.files import sole_writer
from ttutor.language_model.model_folder import LanguageModel, continue_text, save_language_model
from ttutor.tokenization.subword import SubwordTokenizer
from ttutor.training.batching import loss_by_frequency
from ttutor.training.checkpoint import Checkpoint, check_tensors, copy_into, load_checkpoint, save_checkpoint
from ttutor.training.progress import Pace, ProgressBar, Stopped, StopRequest, stop_on_ctrl_c
from ttutor.training.run_folder import LOCK
from ttutor.training.schedule import warmup_hold_decline
from ttutor.variants.gpt import GPT, GPTConfig

SIZES: dict[str, dict[str, Any]] = {
    "tiny": {"d_model": 64, "n_heads": 4, "n_layers": 2, "max_len": 64},
    "small": {"d_model": 128, "n_heads": 4, "n_layers": 4, "max_len": 128},
    "medium": {"d_model": 256, "n_heads": 8, "n_layers": 6, "max_len": 256},
}
"""Width, heads, layers and window. Tiny for a page of text, small for a book, medium for several megabytes."""

LEARNING_RATES = {"tiny": 3e-3, "small": 2e-3, "medium": 1e-3}
TOKENS_PER_STEP = 4096
WARMUP = 100
"""Steps until the rate is full; or the first tenth of the training, where that ends earlier."""

LOOKS = 10
"""How often in a training the held-out text is read, and the weights kept if they are the best so far."""

HELD_OUT = 0.05
SHORTEST = 2_000
"""Letters below which there is too little to learn from and to hold out."""


@dataclass(frozen=True)
class Standing:
    """How far a training has come, and which it is: what a checkpoint says beside its tensors."""

    step: int
    seconds: float
    looked: int
    best_loss: float
    signature: dict[str, Any]


class TextTraining:
    """A language model in the making.

    The last twentieth of the text is held out; the weights that predict it best are the ones that are kept. Batches and
    dropout follow from seed and step alone, so that a training resumed after Ctrl-C goes on as if it had not stopped.

    Args:
        text: what to learn from.
        folder: where the model and, below ``checkpoints``, what a resumed training needs go; None keeps all in memory.
        size: one of `SIZES`.
        minutes: how long to train, by the clock.
        steps: or for how many steps; then the result is the same on every run of one machine.
        seed: another seed, other weights and batches.

    Raises:
        InputError: the text is too short.
        SettingError: there is no such size, or minutes or steps are not above 0.
    """

    def __init__(
        self,
        text: str,
        folder: str | Path | None = None,
        *,
        size: str = "small",
        minutes: float = 10.0,
        steps: int | None = None,
        seed: int = 0,
    ) -> None:
        check_settings(text, size, minutes, steps)
        self.folder = None if folder is None else Path(folder)
        self.minutes, self.steps, self.size, self.seed = minutes, steps, size, seed
        self.learning_rate = LEARNING_RATES[size]
        border = text.rfind("\n", 0, round(len(text) * (1 - HELD_OUT))) + 1 or round(len(text) * (1 - HELD_OUT))
        learned, held_out = text[:border], text[border:]
        self.tokenizer = SubwordTokenizer.train(learned.splitlines(keepends=True), vocabulary_for(learned))
        self.token_ids = torch.tensor(self.tokenizer.encode(learned))
        self.held_out = torch.tensor(self.tokenizer.encode(held_out))
        self.bytes_per_token = len(held_out.encode()) / max(1, len(self.held_out))
        sizes = SIZES[size]
        if min(len(self.token_ids), len(self.held_out)) <= sizes["max_len"]:
            raise InputError(f"the text is too short for the size {size!r}; take a smaller one, or a longer text")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.model = GPT(GPTConfig(vocab_size=self.tokenizer.vocab_size, **sizes))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), weight_decay=0.1, betas=(0.9, 0.95))
        self.step, self.seconds, self.looked = 0, 0.0, 0
        self.best_loss = math.inf
        self.best = {name: tensor.clone() for name, tensor in self.model.state_dict().items()}
        self.signature = {
            "text": hashlib.sha256(text.encode()).hexdigest(),
            "size": size,
            "minutes": minutes if steps is None else None,
            "steps": steps,
            "seed": seed,
        }

    def run(self, quiet: bool = False, on_look: "OnLook | None" = None) -> LanguageModel:
        """Train to the end; returns the model with the weights that predicted the held-out text best.

        Args:
            quiet: show no progress bar (without a terminal there is none anyway).
            on_look: called after each look at the held-out text with this training and the loss, in nats a token.

        Raises:
            RunError: the loss became infinite or not a number.
            FileError: the folder cannot be written, or another process trains in it.
            Stopped: on Ctrl-C, after a checkpoint was saved.
        """
        with ExitStack() as held:
            if self.folder is not None:
                held.enter_context(sole_writer(self.folder / LOCK))
            if self.step == 0:
                self.save()  # so that what was in the folder is replaced as a whole, or not at all
            bar, stop = held.enter_context(closing(ProgressBar(quiet))), held.enter_context(stop_on_ctrl_c())
            self._loop(bar, stop, on_look)
        return self.result()

    def _loop(self, bar: ProgressBar, stop: StopRequest, on_look: "OnLook | None") -> None:
        started, pace = time.perf_counter() - self.seconds, Pace(window=15.0)
        while (progress := self.progress()) < 1:
            warm = max(self.step + 1, math.ceil(10 * progress * WARMUP))
            rate = warmup_hold_decline(warm, self.learning_rate, WARMUP, progress=progress, decay_from=0.5)
            loss = self.training_step(rate)
            self.seconds = time.perf_counter() - started
            bar.show(self.progress(), self.step, loss, rate, pace(float(self.step * TOKENS_PER_STEP)))
            if self.progress() * LOOKS >= self.looked + 1:
                self.look(on_look)
                bar.show_validation(self.best_loss)
            if stop.requested and self.progress() < 1:
                self.save()
                raise Stopped

    def progress(self) -> float:
        """The share of the training that is done, from 0 to 1."""
        return min(1.0, self.step / self.steps if self.steps else self.seconds / 60 / self.minutes)

    def batch(self, step: int) -> Tensor:
        """The windows of a step, each one token longer than the model's, at places drawn by seed and step."""
        window = self.model.config.max_len
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + step)
        n_windows = TOKENS_PER_STEP // window
        starts = torch.randint(len(self.token_ids) - window, (n_windows,), generator=generator)
        return torch.stack([self.token_ids[start : start + window + 1] for start in starts.tolist()])

    def largest_product(self) -> int:
        """Multiplications of the largest product in a layer, by which `ttutor.device.choose_threads` decides."""
        return TOKENS_PER_STEP * self.model.config.d_model * self.model.config.d_ff

    def training_step(self, learning_rate: float) -> float:
        """One update of the weights; returns the loss before it, in nats a token."""
        windows = self.batch(self.step)
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate
        self.model.train()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed * 1_000_003 + self.step)  # dropout, too, follows from seed and step
            loss = cross_entropy(self.model(windows[:, :-1]).mT, windows[:, 1:])
        self.optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        if not (torch.isfinite(loss) and torch.isfinite(norm)):
            raise RunError(
                f"the loss became {loss.item()} at step {self.step + 1}; train anew with another seed or size"
            )
        self.optimizer.step()
        self.step += 1
        return loss.item()

    @torch.no_grad()
    def held_out_loss(self) -> float:
        """Mean loss on the held-out text, in nats a token, read window by window."""
        window = self.model.config.max_len
        self.model.eval()
        total, n_tokens = 0.0, 0
        for start in range(0, len(self.held_out) - 1, window):
            piece = self.held_out[None, start : start + window + 1]
            total += cross_entropy(self.model(piece[:, :-1]).mT, piece[:, 1:], reduction="sum").item()
            n_tokens += piece.shape[1] - 1
        return total / n_tokens

    def look(self, on_look: "OnLook | None" = None) -> None:
        """Read the held-out text, keep the weights where they are the best so far, save, and show."""
        loss = self.held_out_loss()
        self.looked = math.floor(self.progress() * LOOKS)
        if loss < self.best_loss:
            self.best_loss = loss
            self.best = {name: tensor.clone() for name, tensor in self.model.state_dict().items()}
        self.save()
        if on_look:
            on_look(self, loss)

    def result(self) -> LanguageModel:
        """The model with its best weights, and its tokenizer."""
        model = GPT(self.model.config)
        model.load_state_dict(self.best)
        return LanguageModel(model.eval(), self.tokenizer)

    def sample(self, prompt: str, max_new_tokens: int = 60) -> str:
        """How the model writes on by now, at temperature 0.8."""
        now = LanguageModel(self.model, self.tokenizer)
        return prompt + "".join(continue_text(now, prompt, max_new_tokens=max_new_tokens, seed=self.seed))

    def loss_by_frequency(self) -> float:
        """The loss on the held-out text of a model that knows how often each token comes and nothing else."""
        return loss_by_frequency([([], self.token_ids.tolist())], [([], self.held_out.tolist())])

    def bits_per_byte(self, loss: float) -> float:
        """A loss in nats a token as bits a byte of the text, which other tokenizers can be compared by."""
        return loss / math.log(2) / self.bytes_per_token

    def save(self) -> None:
        """Write the best model and a checkpoint to go on from, if the training has a folder."""
        if self.folder is None:
            return
        save_language_model(self.result(), self.folder)
        tensors = {f"best.{name}": tensor for name, tensor in self.best.items()}
        tensors |= dict(self._state())
        save_checkpoint(
            self.folder / "checkpoints",
            Checkpoint(tensors, asdict(Standing(self.step, self.seconds, self.looked, self.best_loss, self.signature))),
        )

    def _state(self) -> Iterator[tuple[str, Tensor]]:
        for name, parameter in self.model.named_parameters():
            yield f"model.{name}", parameter.detach().clone()
            for kind, value in self.optimizer.state.get(parameter, {}).items():
                yield f"{kind}.{name}", torch.as_tensor(value)

    def resume(self) -> list[str]:
        """Go on from the newest whole checkpoint of the folder; returns a message for each damaged one passed over.

        Raises:
            FileError: there is none, or it belongs to another text, size, length or seed.
        """
        if self.folder is None:
            raise SettingError("a training without a folder cannot be resumed; name one")
        checkpoint, messages = load_checkpoint(self.folder / "checkpoints", "ttutor gpt")
        stored: Standing = checkpoint.part(Standing, self.folder)
        other = [name for name, value in self.signature.items() if stored.signature.get(name) != value]
        if other:
            raise FileError(
                f"the training in {self.folder} has another {' and '.join(other)}: give what it was begun with, or "
                "another folder"
            )
        parameters = dict(self.model.named_parameters())
        copy_into(parameters, checkpoint.group("model"), "the model")
        if stored.step:
            counts = {name: torch.tensor(0.0) for name in parameters}
            expected: dict[str, Mapping[str, Tensor]] = {
                "step": counts,
                "exp_avg": parameters,
                "exp_avg_sq": parameters,
            }
            kinds = {kind: checkpoint.group(kind) for kind in expected}
            for kind, tensors in expected.items():
                check_tensors(tensors, kinds[kind], "the optimizer")
            for name, parameter in parameters.items():
                self.optimizer.state[parameter] = {kind: tensors[name] for kind, tensors in kinds.items()}
        check_tensors(self.best, checkpoint.group("best"), "the best weights")
        self.best = checkpoint.group("best")
        self.step, self.seconds, self.looked = stored.step, stored.seconds, stored.looked
        self.best_loss = stored.best_loss
        return messages


def check_settings(text: str, size: str, minutes: float, steps: int | None) -> None:
    """Refuse what no training can begin with; quick, while a vocabulary takes long to learn."""
    if size not in SIZES:
        raise SettingError(f"there is no size {size!r}; choose {', '.join(SIZES)}")
    for name, length in (("minutes", minutes), ("steps", steps)):
        if length is not None and not length > 0:
            raise SettingError(f"expected {name} above 0, but came {length:g}")
    if len(text) < SHORTEST:
        raise InputError(f"the text has {len(text):,} letters, and {SHORTEST:,} are the least to learn from")


OnLook = Callable[[TextTraining, float], None]


def vocabulary_for(text: str) -> int:
    """How many tokens suit a text: about one for each 200 letters, so that most are met often, from 320 to 8,000.

    >>> vocabulary_for("a" * 1_000), vocabulary_for("a" * 1_000_000)
    (320, 5000)
    """
    return max(320, min(8_000, len(text) // 200))
