"""The training loop: forward, loss, backward, add up, clip, step, average; now and then validate and save.

.. code-block:: python

    trainer = Trainer(embedded_corpus(), TrainingRecipe.preset("embedded"), RunFolder("my-run"))
    trainer.run()
"""

import math
import operator
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ttutor.corpora.corpus import Corpus
from ttutor.errors import SYMPTOMS_PAGE, RunError, SettingError
from ttutor.tokenization.subword import SMALLEST_VOCABULARY, SubwordTokenizer
from ttutor.training.averaging import AveragedWeights
from ttutor.training.batching import Batch, BucketedBatches, loss_by_frequency
from ttutor.training.checkpoint import signature
from ttutor.training.dropout import with_fast_dropout
from ttutor.training.loss import batch_loss
from ttutor.training.memory import check_memory
from ttutor.training.optimizer import Optimizers
from ttutor.training.parallel_batches import ParallelBatches
from ttutor.training.precision import products_in, resolve_precision, training_device
from ttutor.training.preparation import model_config, token_pairs, train_tokenizer
from ttutor.training.processes import Processes
from ttutor.training.progress import Pace, ProgressBar, SaidIfSlow, Stopped, StopRequest, stop_on_ctrl_c
from ttutor.training.recipe import TrainingRecipe
from ttutor.training.records import add_record
from ttutor.training.run_folder import RunFacts, RunFolder
from ttutor.training.schedule import SCHEDULES
from ttutor.training.state import TrainingState
from ttutor.transformer import Transformer

LONGEST_WARMUP = 1000
"""Steps of a warm-up that no recipe names, in a long training; a short one has a tenth of its steps."""

LONG = 5
"""Validations without a better one after which a training is long past its best."""

HARDLY = 0.9
"""The share of the loss by frequency alone above which a training counts as not having learned to translate."""


class Trainer:
    """A training under way.

    Args:
        corpus: the text.
        recipe: the settings.
        folder: where checkpoints and metrics go, as a `RunFolder` or a path; None keeps everything in memory.
        tokenizer: trained on the corpus if not given.
        precision: "fp32" or "bf16"; decided by the recipe and the device if not given.
        device: where to compute; weights, averages and optimizers live there.
        processes: those that train together, of which this is one; all of them make a trainer of the same arguments.

    Raises:
        InputError: no pair of the corpus is short enough for the recipe.
        SettingError: there are more processes than batches in a step.
    """

    def __init__(
        self,
        corpus: Corpus,
        recipe: TrainingRecipe,
        folder: RunFolder | str | Path | None = None,
        *,
        tokenizer: SubwordTokenizer | None = None,
        precision: str | None = None,
        device: torch.device | str = "cpu",
        processes: Processes | None = None,
    ):
        if not isinstance(corpus, Corpus):
            raise TypeError(
                f"corpus must be a Corpus, but came as {type(corpus).__name__}; file_corpus(source, target) of "
                "ttutor.corpora.corpus reads one from files"
            )
        self.corpus, self.recipe = corpus, recipe
        self.folder: Any = (
            RunFolder(folder) if isinstance(folder, str | Path) else folder
        )  # a RunFolder, or None; those who use it know that there is one
        self.device = training_device(device) if isinstance(device, str) else device
        self.processes = processes or Processes()
        self.writes = folder is not None and self.processes.is_first
        self.precision = precision or resolve_precision(recipe.precision, self.device)
        check_memory(model_config(recipe, SMALLEST_VOCABULARY), recipe, self.device)
        self.tokenizer = tokenizer or train_tokenizer(corpus, recipe)
        self.style = corpus.style()
        training, self.n_left_out = token_pairs(corpus.train, self.tokenizer, recipe.max_tokens, style=self.style)
        validation, self.n_validation_left_out = token_pairs(
            corpus.validation, self.tokenizer, recipe.max_tokens, "validation", self.style
        )
        self.batches = BucketedBatches(training, recipe.tokens_per_batch, recipe.seed)
        self.validation = BucketedBatches(validation, recipe.tokens_per_batch)
        self._make_model()
        self.learning_rate = 0.0
        self.metrics: list[dict] = []
        self._is_resumed = False

    def _make_model(self) -> None:
        """Draw the weights, and all that changes with them step by step."""
        recipe = self.recipe
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(recipe.seed)
            self.model = Transformer(model_config(recipe, self.tokenizer.vocab_size))
        with_fast_dropout(self.model).to(self.device)
        here = self.processes.shard(range(recipe.batches_per_step))
        if not here:
            raise SettingError(
                f"{self.processes.count} processes share {recipe.batches_per_step} batches of a step, and some would "
                "have none: start fewer processes, or give each step more batches (--batches-per-step), which makes "
                "another training"
            )
        self.lanes = ParallelBatches(recipe.batches_per_step, recipe.seed, here=here, device=self.device)
        self.average = AveragedWeights(self.model, recipe.averaging)
        self.optimizers = Optimizers(self.model, recipe.optimizer, recipe.weight_decay, self.lanes)
        self.state = TrainingState(self.model, self.average, self.optimizers, self.lanes)
        self.position, self.best = self.state.position, self.state.best

    def resume(self) -> list[str]:
        """Go back to the newest whole checkpoint of the folder; returns a message for each damaged one passed over."""
        messages = self.state.restore(self.folder.checkpoints, self.processes, self._signature())
        self._is_resumed = True
        if self.writes:
            with self.folder.writing():
                self.folder.cut_metrics(self.position.step)
        self.metrics = [record for record in self.folder.read_metrics() if record["step"] <= self.position.step]
        return messages

    def run(self, quiet: bool = True, on_validation: "OnValidation | None" = None) -> list[dict]:
        """Train to the end of the recipe; returns the metrics, one record for each validation.

        Args:
            quiet: show no progress bar (without a terminal there is none anyway).
            on_validation: called with this trainer after each validation, to look at the model as it learns; of several
                processes, in each.

        Raises:
            FileError: the folder cannot be written, or holds a run that this trainer did not resume.
            RunError: the loss became infinite or not a number; or processes differ that must be equal.
            ProcessLost: another process has ended.
            Stopped: on Ctrl-C, after a checkpoint was saved; a second Ctrl-C interrupts at once.
        """
        self._check_processes()
        with ExitStack() as held:
            self.processes.run_on_first(lambda: self._begin(held))
            silent = quiet or not self.processes.is_first
            bar = held.enter_context(closing(ProgressBar(silent)))
            first = held.enter_context(closing(SaidIfSlow(self._first_step(), silent)))
            stop = held.enter_context(stop_on_ctrl_c(several=self.processes.count > 1))
            self._loop(stop, bar, first, on_validation)
        return self.metrics

    def _begin(self, held: ExitStack) -> None:
        if not self.writes:
            return
        held.enter_context(self.folder.writing())
        if not self._is_resumed and self.position.step == 0:
            self.folder.begin(self.recipe, self.tokenizer, self.facts())

    def facts(self, files: Mapping[str, str | None] | None = None) -> RunFacts:
        """What the run's folder must remember of this training; `files` are those that its text was read from."""
        return RunFacts(
            corpus=self.corpus.name,
            fingerprint=self.corpus.fingerprint(),
            files=dict(files or {}),
            style=self.style,
            precision=self.precision,
            threads=torch.get_num_threads(),
            processes=self.processes.count,
            device=self.device.type,
        )

    def _check_processes(self) -> None:
        """Make sure, before the first step, that all processes are about to do the same."""
        facts: dict[str, str | int] = {
            "the text": self.corpus.fingerprint(),
            "the recipe": self.recipe.to_toml(),
            "the vocabulary": self.tokenizer.to_json(),
            "the step where they begin": self.position.step,
            "the precision": self.precision,
            "the device": self.device.type,
            "the number of threads": torch.get_num_threads(),
            "the version of PyTorch": torch.__version__,
        }
        self.processes.check_equal(facts, "give all machines the same files, versions and command")
        self.processes.use(self.device)

    def _first_step(self) -> str:
        n_batches, n_tokens = self.recipe.batches_per_step, self.recipe.tokens_per_batch
        batches = f"{n_batches:,} {'batch' if n_batches == 1 else 'batches'} of up to {n_tokens:,} tokens"
        return f"The first step is under way: {batches}. Ctrl-C stops after it, a second one at once."

    def _loop(
        self, stop: StopRequest, bar: ProgressBar, first: SaidIfSlow, on_validation: "OnValidation | None"
    ) -> None:
        recipe, position = self.recipe, self.position
        started, pace = time.perf_counter() - position.seconds, Pace(window=15.0)
        pace(float(position.target_tokens))
        if position.step == 0:
            self.save()
        while self.progress() < 1 and not self.is_overfitting():
            loss = self.training_step(self.next_batches())
            first.close()
            position.loss_sum, position.loss_steps = position.loss_sum + loss, position.loss_steps + 1
            position.seconds, stops = self.processes.agree(time.perf_counter() - started, stop.requested)
            ends = self.progress() >= 1
            speed = pace(float(position.target_tokens))
            bar.show(self.progress(), position.step, loss, self.learning_rate, speed)
            if ends or position.step % recipe.validate_every == 0:
                self._record(position.loss_sum / position.loss_steps, bar)
                position.loss_sum, position.loss_steps = 0.0, 0
                if on_validation:
                    on_validation(self)
                ends = ends or self.is_overfitting()
            if ends or stops or position.step % recipe.checkpoint_every == 0:
                self.save()
            if stops and not ends:
                raise Stopped

    def next_batches(self) -> list[Batch]:
        """The batches of the next step, on into the next epoch where one ends; moves the position along."""
        position = self.position
        taken: list[Batch] = []
        while len(taken) < self.recipe.batches_per_step:
            if position.batch == self.batches.per_epoch(position.epoch):
                position.epoch, position.batch = position.epoch + 1, 0
            taken.append(self.batches.batch(position.epoch, position.batch))
            position.batch += 1
        return taken

    def is_overfitting(self) -> bool:
        """Whether the recipe's `patience` has run out: that many validations without a better one."""
        return 0 < self.recipe.patience <= self._validations_since_the_best()

    def is_past_its_best(self) -> bool:
        """Whether the last validations, `LONG` of them, were all worse than the best before."""
        return self._validations_since_the_best() >= LONG

    def hardly_learned(self) -> str:
        """What to say of a training whose best validation is hardly better than guessing by frequency, else nothing."""
        loss = math.inf if self.position.best_loss is None else self.position.best_loss
        known = loss_by_frequency(self.batches.pairs, self.validation.pairs)
        if loss <= HARDLY * known:
            return ""
        return (
            f"this translator has hardly learned yet: its best validation loss is {loss:.2f} after "
            f"{self.position.step:,} steps, and {known:.2f} comes from knowing how often each token occurs. Train "
            "longer (more steps or minutes), and on one thread where other programs run; expect empty or senseless "
            "translations until then"
        )

    def _validations_since_the_best(self) -> int:
        return (self.position.step - self.position.best_step) // self.recipe.validate_every if self.best else 0

    def progress(self) -> float:
        """The share of the training that is done, from 0 to 1, by steps, epochs or minutes as the recipe counts."""
        recipe, position = self.recipe, self.position
        if recipe.minutes is not None:
            return min(1.0, position.seconds / 60 / recipe.minutes)
        epochs = recipe.epochs or 0.0  # exactly one of the three is given
        total = recipe.steps or math.ceil(epochs * self.batches.per_epoch() / recipe.batches_per_step)
        return min(1.0, position.step / total)

    def warmup(self) -> int:
        """Steps until the learning rate's peak: the recipe's, or a tenth of what the training comes to at its pace."""
        done = self.progress()
        tenth = round(0.1 * self.position.step / done) if done else LONGEST_WARMUP
        return self.recipe.warmup or max(1, min(tenth, LONGEST_WARMUP))

    def training_step(self, batches: list[Batch]) -> float:
        """One update of the weights; returns the loss before it, in nats per real target token of all batches.

        Raises:
            RunError: loss or gradient is infinite or not a number; the weights stay as they were.
        """
        step = self.position.step + 1
        self.learning_rate = SCHEDULES[self.recipe.schedule](
            step,
            self.recipe.learning_rate,
            self.warmup(),
            progress=self.progress(),
            decay_from=self.recipe.decay_from,
        )
        self.model.train()
        loss = self.backward(batches)
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.recipe.clip_norm, foreach=True)
        if not math.isfinite(loss) or not math.isfinite(norm.item()):
            raise RunError(self._diverged(step, loss, norm.item()))
        self.optimizers.step(self.learning_rate)
        self.average.update(self.model, step)
        self.position.step = step
        self.position.target_tokens += sum(batch.n_target_tokens for batch in batches)
        return loss

    def backward(self, batches: list[Batch]) -> float:
        """Put the gradient of the mean loss over all real target tokens into the parameters; returns that loss.

        Each process computes its own of the batches; loss and gradient are those of all.
        """
        parameters = list(self.model.parameters())
        n_tokens = sum(batch.n_target_tokens for batch in batches)

        def share(batch: Batch) -> tuple[float, tuple[Tensor, ...]]:
            loss = self.loss(batch, self.recipe.label_smoothing) * (batch.n_target_tokens / n_tokens)
            return loss.item(), torch.autograd.grad(loss, parameters)

        losses, gradients = zip(*self.lanes.map(share, self.processes.shard(batches)), strict=True)
        loss = sum(self.processes.merged(losses, len(batches)))
        total, *others = gradients
        for more in others:
            torch._foreach_add_(total, more)
        self.processes.add_up(total)
        for parameter, gradient in zip(parameters, total, strict=True):
            parameter.grad = gradient
        return loss

    def loss(self, batch: Batch, smoothing: float) -> torch.Tensor:
        """Mean loss per real target token of a batch, its products in the precision of this training."""
        with products_in(self.precision, self.device):
            return batch_loss(self.model, batch.to(self.device), smoothing)

    def validation_loss(self) -> float:
        """Cross-entropy per target token of the validation pairs, without smoothing, under the averaged weights."""
        batches = list(self.validation.epoch(0))
        counts = [batch.n_target_tokens for batch in batches]

        @torch.no_grad()  # holds for one thread
        def without_gradient(batch: Batch) -> float:
            return self.loss(batch, smoothing=0.0).item()

        self.model.eval()
        with self.average.applied_to(self.model):
            mine = self.lanes.map(without_gradient, self.processes.shard(batches))
        losses = self.processes.merged(mine, len(batches))
        return sum(map(operator.mul, losses, counts)) / sum(counts)

    def _record(self, training_loss: float, bar: ProgressBar) -> None:
        position, validation_loss = self.position, self.validation_loss()
        if position.best_loss is None or validation_loss < position.best_loss:
            position.best_loss, position.best_step = validation_loss, position.step
            self.best.update((name, tensor.clone()) for name, tensor in self.average.tensors.items())
        record = {
            "step": position.step,
            "epoch": round(position.epoch + position.batch / self.batches.per_epoch(position.epoch), 3),
            "seconds": round(position.seconds, 1),
            "target_tokens": position.target_tokens,
            "learning_rate": self.learning_rate,
            "training_loss": training_loss,
            "validation_loss": validation_loss,
        }
        self.metrics.append(record)
        if self.writes:
            add_record(self.folder.metrics, record)
        bar.show_validation(validation_loss)

    def save(self) -> None:
        """Write a checkpoint, if the training has a folder."""
        if self.folder:
            self.processes.run_on_first(self._save)

    def _save(self) -> None:
        self.state.save(
            self.folder.checkpoints,
            self.processes,
            self.recipe.batches_per_step,
            self._signature(),
            progress=self.progress(),
            uses_best=self.uses_best(),
        )

    def _signature(self) -> dict[str, Any]:
        return signature(self.corpus.fingerprint(), self.recipe, self.tokenizer, self.style, self.precision)

    def result(self) -> dict[str, Tensor]:
        """The weights to translate with: the averaged ones, as they stand or as they were at their best."""
        return self.best if self.uses_best() else self.average.tensors

    def uses_best(self) -> bool:
        """Whether the best weights translate: those of the best validation, with patience or long after it."""
        return bool(self.best) and (self.recipe.patience > 0 or self.is_past_its_best())

    def _diverged(self, step: int, loss: float, norm: float) -> str:
        kept = f"; the last checkpoint in {self.folder.checkpoints} is intact" if self.folder else ""
        return (
            f"the loss became {loss} and the gradient's norm {norm} at step {step} (learning rate "
            f"{self.learning_rate:.2e}){kept}. Train anew with a smaller learning_rate or a longer warmup; "
            f"{SYMPTOMS_PAGE}"
        )


OnValidation = Callable[[Trainer], None]
