"""JoeyNMT as a peer: its own trainer on its own batches, and its model and loss on batches of like lengths.

Nothing is changed inside it. Its trainer runs in a thread of its own and is let go one update at a time.
"""

import logging
import queue
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from benchmarks._training_peers import CLIP, DROPOUT, LEARNING_RATE, SIZES, SMOOTHING, WARMUP, Step, TutorialLoop, cycle
from ttutor.tokenization import PAD_ID, UNK_ID
from ttutor.training.batching import Batch, TokenPair

SPECIALS = ("<unk>", "<pad>", "<s>", "</s>")  # their order is JoeyNMT's: its padding is 1 and its unknown token 0


def configuration(folder: Path, tokens_per_batch: int) -> dict:
    """What a user would write into its configuration file."""
    side = {
        "type": "transformer",
        "num_layers": SIZES["n_layers"],
        "num_heads": SIZES["n_heads"],
        "embeddings": {"embedding_dim": SIZES["d_model"], "scale": True, "dropout": DROPOUT},
        "hidden_size": SIZES["d_model"],
        "ff_size": SIZES["d_ff"],
        "dropout": DROPOUT,
        "layer_norm": "pre",
    }
    text = {"level": "word", "voc_file": str(folder / "vocabulary.txt"), "max_length": 128}
    return {
        "name": "peer",
        "model_dir": str(folder),
        "use_cuda": False,
        "random_seed": 0,
        "data": {
            "train": str(folder / "train"),
            "dev": str(folder / "train"),
            "dataset_type": "plain",
            "src": text | {"lang": "in"},
            "trg": text | {"lang": "out"},
        },
        "testing": {},
        "training": {
            "optimizer": "adamw",
            "adam_betas": [0.9, 0.98],
            "learning_rate": LEARNING_RATE,
            "learning_rate_warmup": WARMUP,
            "scheduling": "warmupinversesquareroot",
            "label_smoothing": SMOOTHING,
            "normalization": "tokens",
            "clip_grad_norm": CLIP,
            "batch_size": tokens_per_batch,
            "batch_type": "token",
            "epochs": 1000,
            "logging_freq": 10**6,
            "validation_freq": 10**6,
        },
        "model": {
            "initializer": "xavier_uniform",
            "embed_initializer": "xavier_uniform",
            "tied_embeddings": True,
            "tied_softmax": True,
            "encoder": side,
            "decoder": dict(side),
        },
    }


def write_text(folder: Path, pairs: Sequence[TokenPair], vocab_size: int) -> None:
    """The corpus as files of words; each word is the number of one of our tokens."""
    for ending, side in (("in", 0), ("out", 1)):
        lines = (" ".join(f"w{number}" for number in pair[side]) for pair in pairs)
        (folder / f"train.{ending}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    words = [*SPECIALS, *(f"w{number}" for number in range(len(SPECIALS), vocab_size))]
    (folder / "vocabulary.txt").write_text("\n".join(words) + "\n", encoding="utf-8")


def prepared(pairs: Sequence[TokenPair], vocab_size: int, tokens_per_batch: int, folder: Path) -> tuple:
    """Its parsed arguments, its model with its loss, and its data set."""
    from joeynmt.config import parse_global_args
    from joeynmt.prediction import prepare

    logging.disable(logging.INFO)
    write_text(folder, pairs, vocab_size)
    arguments = parse_global_args(configuration(folder, tokens_per_batch), rank=0, mode="train")
    model, data, validation, _ = prepare(arguments, rank=0, mode="train")
    return arguments, model, data, validation


class Turnstile:
    """Lets one batch through at a time: the trainer waits here until its next update is asked for."""

    def __init__(self, loader: DataLoader):
        self.loader, self.batch_sampler = loader, loader.batch_sampler
        self.permits: queue.Queue = queue.Queue()
        self.learned: queue.Queue = queue.Queue()

    def __iter__(self) -> Iterator:
        for batch in self.loader:
            if self.permits.get() == "stop":
                raise KeyboardInterrupt  # how a user would end it
            yield batch
            self.learned.put(batch.ntokens)


def joey_trainer(pairs: Sequence[TokenPair], vocab_size: int, tokens_per_batch: int) -> Step:
    """Its whole training command, from its `TrainManager` down; its batches are not sorted by length."""
    from joeynmt.training import TrainManager

    folder = tempfile.TemporaryDirectory()
    arguments, model, data, validation = prepared(pairs, vocab_size, tokens_per_batch, Path(folder.name))
    manager = TrainManager(
        rank=0,
        model=model,
        model_dir=Path(folder.name),
        device=arguments.device,
        autocast=arguments.autocast,
        seed=0,
        train_args=arguments.train,
        dev_args=arguments.test,
    )
    ready: queue.Queue = queue.Queue()
    make_iter = data.make_iter

    def make_turnstile(**options: object) -> Turnstile:
        ready.put(Turnstile(make_iter(**options)))
        return ready.queue[0]

    data.make_iter = make_turnstile
    losses: list[float] = []
    train_step = manager._train_step

    def remember(batch: object) -> tuple[float, int]:
        loss, correct = train_step(batch)
        losses.append(loss)
        return loss, correct

    manager._train_step = remember
    n_threads = torch.get_num_threads()

    def run() -> None:
        torch.set_num_threads(n_threads)
        manager.train_and_validate(data, validation)

    threading.Thread(target=run, daemon=True).start()
    turnstile = ready.get()

    def step() -> tuple[int, float]:
        turnstile.permits.put("go")
        n_tokens = turnstile.learned.get()
        return n_tokens, losses[-1]

    step.folder = folder  # stays as long as the peer
    return step


def joey_model(pairs: Sequence[TokenPair], vocab_size: int, tokens_per_batch: int) -> Step:
    """Its model and its loss in a plain loop, on batches of like lengths."""
    from joeynmt.batch import Batch as JoeyBatch

    with tempfile.TemporaryDirectory() as folder:
        _, model, _, _ = prepared(pairs, vocab_size, tokens_per_batch, Path(folder))
    model.train()

    def loss(batch: Batch) -> Tensor:
        whole = torch.cat([batch.target_in, batch.target_out[:, -1:]], dim=1)
        whole[:, 1:] = batch.target_out
        theirs = JoeyBatch(
            src=in_their_numbers(batch.source),
            src_length=(batch.source != PAD_ID).sum(dim=1),
            src_prompt_mask=None,
            trg=in_their_numbers(whole),
            trg_prompt_mask=None,
            indices=torch.arange(len(whole)),
            device=torch.device("cpu"),
            pad_index=SPECIALS.index("<pad>"),
            eos_index=SPECIALS.index("</s>"),
        )
        total = model(return_type="loss", **vars(theirs))[0]
        return theirs.normalize(total, normalization="tokens")

    return TutorialLoop(model.parameters(), loss, cycle(pairs, tokens_per_batch))


def in_their_numbers(token_ids: Tensor) -> Tensor:
    """Padding and unknown token change places; all other numbers are the same."""
    theirs = torch.arange(max(int(token_ids.max()), UNK_ID) + 1)
    theirs[[PAD_ID, UNK_ID]] = torch.tensor([SPECIALS.index("<pad>"), SPECIALS.index("<unk>")])
    return theirs[token_ids]
