"""The training loop: forward, loss, backward, clip, step, average; now and then validate and save.

trainer = Trainer(embedded_corpus(), TrainingRecipe.preset("embedded"), RunFolder("my-run"))
trainer.run()
"""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import nn

from ttutor.masks import padding_mask
from ttutor.transformer import Transformer
from ttutor.translation.averaging import AveragedWeights
from ttutor.translation.batching import Batch, BucketedBatches
from ttutor.translation.corpus import Corpus
from ttutor.translation.errors import CheckpointError, TrainingError
from ttutor.translation.loss import projected_cross_entropy
from ttutor.translation.precision import products_in, resolve_precision
from ttutor.translation.preparation import model_config, token_pairs, train_tokenizer
from ttutor.translation.progress import ProgressBar, Stopped, StopRequest, stop_on_ctrl_c
from ttutor.translation.recipe import TrainingRecipe
from ttutor.translation.run_folder import RunFacts, RunFolder
from ttutor.translation.schedule import warmup_then_decline
from ttutor.translation.tokenizer import PAD_ID, SubwordTokenizer
from ttutor.translation.training_state import restore_training, save_training


@dataclass
class Position:
    """How far a training has come."""

    step: int = 0
    epoch: int = 0
    batch: int = 0
    seconds: float = 0.0
    target_tokens: int = 0


class Trainer:
    """A training under way.

    Args:
        corpus: the text.
        recipe: the settings.
        folder: where checkpoints and metrics go; None keeps everything in memory.
        tokenizer: trained on the corpus if not given.
        precision: "fp32" or "bf16"; decided by the recipe if not given.

    Raises:
        CorpusError: no pair of the corpus is short enough for the recipe.
    """

    def __init__(
        self,
        corpus: Corpus,
        recipe: TrainingRecipe,
        folder: RunFolder | None = None,
        *,
        tokenizer: SubwordTokenizer | None = None,
        precision: str | None = None,
    ):
        self.corpus, self.recipe, self.folder = corpus, recipe, folder
        self.precision = precision or resolve_precision(recipe.precision)
        self.tokenizer = tokenizer or train_tokenizer(corpus, recipe)
        training, self.n_left_out = token_pairs(corpus.train, self.tokenizer, recipe.max_tokens)
        validation, self.n_validation_left_out = token_pairs(
            corpus.validation, self.tokenizer, recipe.max_tokens, "validation"
        )
        self.batches = BucketedBatches(training, recipe.tokens_per_batch, recipe.seed)
        self.validation = BucketedBatches(validation, recipe.tokens_per_batch)

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(recipe.seed)
            self.model = Transformer(model_config(recipe, self.tokenizer.vocab_size))
            self.rng_state = torch.get_rng_state()
        self.average = AveragedWeights(self.model, recipe.averaging)
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), betas=(0.9, 0.98), eps=1e-9, weight_decay=recipe.weight_decay, fused=True
        )
        self.position = Position()
        self.learning_rate = 0.0
        self.metrics: list[dict] = []
        self._is_resumed = False

    def resume(self) -> list[str]:
        """Go back to the newest whole checkpoint of the folder; returns a message for each damaged one passed over."""
        messages = restore_training(self)
        self._is_resumed = True
        self.folder.cut_metrics(self.position.step)
        self.metrics = list(self.folder.read_metrics())
        return messages

    def run(self, quiet: bool = True, on_validation: "OnValidation | None" = None) -> list[dict]:
        """Train to the end of the recipe; returns the metrics, one record for each validation.

        Args:
            quiet: show no progress bar (without a terminal there is none anyway).
            on_validation: called with this trainer after each validation, to look at the model as it learns.

        Raises:
            CheckpointError: the folder cannot be written, or holds a run that this trainer did not resume.
            TrainingError: the loss became infinite or not a number.
            Stopped: on Ctrl-C, after a checkpoint was saved; a second Ctrl-C interrupts at once.
        """
        if self.folder and not self._is_resumed and self.position.step == 0:
            self._open_folder(self.folder)
        bar = ProgressBar(quiet)
        try:
            with stop_on_ctrl_c() as stop, torch.random.fork_rng(devices=[]):
                torch.set_rng_state(self.rng_state)
                self._loop(stop, bar, on_validation)
        finally:
            bar.close()
        return self.metrics

    def _open_folder(self, folder: RunFolder) -> None:
        """Write what stands in the folder before the first step, unless it stands there already."""
        if not folder.exists:
            folder.create(self.recipe, self.tokenizer, RunFacts.of(self.corpus, self.precision, {}))
        elif folder.has_checkpoint:
            raise CheckpointError(
                f"{folder.path} holds a training run already; go on with it by resume(), or choose another folder"
            )

    def _loop(self, stop: StopRequest, bar: ProgressBar, on_validation: "OnValidation | None") -> None:
        recipe, position = self.recipe, self.position
        started, losses = time.perf_counter() - position.seconds, []
        if position.step == 0:
            self.save()
        for batch in self._batches():
            if self.progress() >= 1:
                break
            losses.append(self.training_step(batch))
            position.seconds = time.perf_counter() - started
            done = self.progress() >= 1
            speed = position.target_tokens / position.seconds
            bar.show(self.progress(), position.step, losses[-1], self.learning_rate, speed)
            if done or position.step % recipe.validate_every == 0:
                self._record(sum(losses) / len(losses), bar)
                losses = []
                if on_validation:
                    on_validation(self)
            if done or stop.requested or position.step % recipe.checkpoint_every == 0:
                self.save()
            if stop.requested and not done:
                raise Stopped

    def _batches(self) -> Iterator[Batch]:
        """Batches from where the training stands, epoch after epoch, moving its position along."""
        while True:
            yield from self.batches.epoch(self.position.epoch, self.position.batch)
            self.position.epoch += 1
            self.position.batch = 0

    def progress(self) -> float:
        """The share of the training that is done, from 0 to 1, by steps, epochs or minutes as the recipe counts."""
        recipe, position = self.recipe, self.position
        if recipe.minutes is not None:
            return min(1.0, position.seconds / 60 / recipe.minutes)
        total = recipe.steps or math.ceil(recipe.epochs * self.batches.per_epoch())
        return min(1.0, position.step / total)

    def training_step(self, batch: Batch) -> float:
        """One update of the weights; returns the loss before it, in nats per real target token.

        Raises:
            TrainingError: loss or gradient is infinite or not a number; the weights stay as they were.
        """
        step = self.position.step + 1
        self.learning_rate = warmup_then_decline(
            step,
            self.recipe.learning_rate,
            self.recipe.warmup,
            progress=self.progress(),
            decay_from=self.recipe.decay_from,
        )
        self.model.train()
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(batch, self.recipe.label_smoothing)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.recipe.clip_norm, foreach=True)
        if not math.isfinite(loss.item()) or not math.isfinite(norm.item()):
            raise TrainingError(self._diverged(step, loss.item(), norm.item()))
        self.optimizer.param_groups[0]["lr"] = self.learning_rate
        self.optimizer.step()
        self.average.update(self.model, step)
        self.position.step = step
        self.position.batch += 1
        self.position.target_tokens += batch.n_target_tokens
        return loss.item()

    def loss(self, batch: Batch, smoothing: float) -> torch.Tensor:
        """Mean loss per real target token; only real positions are projected to the vocabulary."""
        with products_in(self.precision):
            memory = self.model.encode(batch.source)
            hidden = self.model.decode(batch.target_in, memory, padding_mask(batch.source, PAD_ID))
            real = batch.target_out != PAD_ID
            weight = self.model.to_logits.weight
            return projected_cross_entropy(hidden[real], weight, batch.target_out[real], smoothing=smoothing)

    @torch.no_grad()
    def validation_loss(self) -> float:
        """Cross-entropy per target token of the validation pairs, without smoothing, under the averaged weights."""
        self.model.eval()
        total, count = 0.0, 0
        with self.average.applied_to(self.model):
            for batch in self.validation.epoch(0):
                total += self.loss(batch, smoothing=0.0).item() * batch.n_target_tokens
                count += batch.n_target_tokens
        return total / count

    def _record(self, training_loss: float, bar: ProgressBar) -> None:
        position = self.position
        record = {
            "step": position.step,
            "epoch": round(position.epoch + position.batch / self.batches.per_epoch(position.epoch), 3),
            "seconds": round(position.seconds, 1),
            "target_tokens": position.target_tokens,
            "learning_rate": self.learning_rate,
            "training_loss": training_loss,
            "validation_loss": self.validation_loss(),
        }
        self.metrics.append(record)
        if self.folder:
            self.folder.add_metrics(record)
        bar.show_validation(record["validation_loss"])

    def save(self) -> None:
        """Write a checkpoint, if the training has a folder."""
        if self.folder:
            self.rng_state = torch.get_rng_state()
            save_training(self)

    def _diverged(self, step: int, loss: float, norm: float) -> str:
        kept = f"; the last checkpoint in {self.folder.checkpoints} is intact" if self.folder else ""
        return (
            f"the loss became {loss} and the gradient's norm {norm} at step {step} (learning rate "
            f"{self.learning_rate:.2e}){kept}. Train anew with a smaller learning_rate or a longer warmup"
        )


OnValidation = Callable[[Trainer], None]
