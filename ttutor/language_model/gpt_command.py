"""`ttutor gpt`: train a GPT on a text of your own, then let it write."""

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from ttutor.console import plain_errors, say

if TYPE_CHECKING:
    from ttutor.language_model.text_training import TextTraining


def gpt(
    text: Annotated[Path | None, typer.Argument(help="A text in UTF-8 to train on (.gz too).")] = None,
    prompt: Annotated[str | None, typer.Option(help="Write on from this, with the model in the folder.")] = None,
    folder: Annotated[Path, typer.Option("--out", help="Folder of the model.")] = Path("my-gpt"),
    size: Annotated[str, typer.Option(help="tiny, small or medium: for a page, a book, several megabytes.")] = "small",
    minutes: Annotated[float, typer.Option(help="Train for this long, by the clock.")] = 10.0,
    steps: Annotated[int | None, typer.Option(help="Or for this many steps.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the training in the folder.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Throw away a model that is in the folder.")] = False,
    length: Annotated[int, typer.Option(help="Write this many tokens.")] = 200,
    temperature: Annotated[float, typer.Option(help="The larger, the bolder; 0: always the best token.")] = 0.8,
    top_p: Annotated[float, typer.Option(help="Draw from the best tokens that together have this probability.")] = 0.95,
    seed: Annotated[int, typer.Option(help="The same seed trains and draws the same.")] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
) -> None:
    """Train a small GPT on your own text, then let it write.

    Its tokenizer is learned from the text, too. Let it write by: ttutor gpt --prompt "Once".
    """
    with plain_errors():
        from ttutor.errors import SettingError

        if (text is None) == (prompt is None):
            raise SettingError('give a text to train on, as in `ttutor gpt my.txt`, or `ttutor gpt --prompt "Once"`')
        if prompt is not None:
            _write(folder, prompt, length, temperature, top_p, seed)
        elif text is not None:
            _train(text, folder, size, minutes, steps, seed, resume=resume, overwrite=overwrite, quiet=quiet)


def _write(folder: Path, prompt: str, length: int, temperature: float, top_p: float, seed: int) -> None:
    import torch

    from ttutor.device import choose_threads
    from ttutor.language_model.model_folder import continue_text, load_language_model

    torch.set_num_threads(choose_threads())  # one token at a time
    pieces = continue_text(
        load_language_model(folder), prompt, max_new_tokens=length, temperature=temperature, top_p=top_p, seed=seed
    )
    print(prompt, end="", flush=True)
    for piece in pieces:
        print(piece, end="", flush=True)
    print()


def _train(
    text: Path,
    folder: Path,
    size: str,
    minutes: float,
    steps: int | None,
    seed: int,
    *,
    resume: bool,
    overwrite: bool,
    quiet: bool,
) -> None:
    import torch

    from ttutor.corpora.text_files import open_text, read_groups
    from ttutor.device import choose_threads
    from ttutor.errors import FileError
    from ttutor.files import sole_writer
    from ttutor.language_model.model_folder import WEIGHTS
    from ttutor.language_model.text_training import TextTraining, check_settings
    from ttutor.training.checkpoint import checkpoint_paths
    from ttutor.training.progress import Stopped
    from ttutor.training.run_folder import LOCK

    with open_text(text) as stream:
        read = "".join(f"{line}\n" for group in read_groups(stream, str(text)) for line in group)
    check_settings(read, size, minutes, steps)
    again = _command(text, folder, size, minutes, steps, seed)
    if folder.exists() and not folder.is_dir():
        raise FileError(f"{folder} is a file; choose a folder by --out")
    if ((folder / WEIGHTS).exists() or (folder / "checkpoints").exists()) and not (resume or overwrite):
        raise FileError(f"{folder} holds a model already: name another folder by --out, or give --overwrite")
    if resume and not checkpoint_paths(folder / "checkpoints"):
        raise FileError(f"there is no training in {folder} to go on with; begin one: {again}")
    if folder.exists():
        with sole_writer(folder / LOCK):  # refused at once, not after a vocabulary has been learned
            pass
    training = TextTraining(read, folder, size=size, minutes=minutes, steps=steps, seed=seed)
    torch.set_num_threads(choose_threads(training.largest_product()))
    if resume:
        for message in training.resume():
            say(f"Warning: {message}; the checkpoint before it is used.", error=True)
    if not quiet:
        say(
            f"{len(read):,} letters, {len(training.token_ids):,} tokens of {training.tokenizer.vocab_size:,} to train "
            f"on; {sum(one.numel() for one in training.model.parameters()):,} parameters"
        )
    try:
        training.run(quiet=quiet, on_look=None if quiet else _show)
    except Stopped:
        say(f"\nStopped and saved after step {training.step:,}. Go on with: {again} --resume", error=True)
        raise typer.Exit(130) from None
    _end(training, folder, quiet)


def _command(text: Path, folder: Path, size: str, minutes: float, steps: int | None, seed: int) -> str:
    """The command of a training, with all that decides its result: only the same goes on with it."""
    length = f"--minutes {str(minutes).removesuffix('.0')}" if steps is None else f"--steps {steps}"
    chosen = f"--size {size} {length}" + (f" --seed {seed}" if seed else "")
    return f"ttutor gpt {quote(str(text))} --out {quote(str(folder))} {chosen}"


def _show(training: "TextTraining", loss: float) -> None:
    """A line for each look, and below every other one what the model writes by now."""
    from ttutor.training.progress import say_above

    line = (
        f"step {training.step:,}, {training.seconds / 60:.1f} min: held-out loss {loss:.2f} nats a token, "
        f"{training.bits_per_byte(loss):.2f} bits a byte"
    )
    if loss > training.best_loss:
        line += f" (best {training.best_loss:.2f}: those weights are kept)"
    beginning = training.tokenizer.decode(training.held_out[:8].tolist())
    say_above(line + (f"\n  {training.sample(beginning)!r}" if training.looked % 2 == 0 else ""))


def _end(training: "TextTraining", folder: Path, quiet: bool) -> None:
    from ttutor.training.trainer import HARDLY

    known = training.loss_by_frequency()
    if training.best_loss > HARDLY * known:
        say(
            f"Warning: it has hardly learned yet: the held-out loss is {training.best_loss:.2f}, and {known:.2f} comes "
            "from knowing how often each token occurs. Train longer, or a smaller size",
            error=True,
        )
    if not quiet:
        say(f'The model is in {folder}. Let it write: ttutor gpt --out {quote(str(folder))} --prompt "..."')
