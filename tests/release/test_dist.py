"""What is published as a package: all of it, and nothing beside it; and that it works where only it is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import ttutor
from ttutor.exercises import find
from ttutor.exercises.source import imports, solution_source

pytest.importorskip("build", reason="building the package needs the release extra")

ROOT = Path(__file__).resolve().parents[2]
NAME = f"ttutor-{ttutor.__version__}"
BESIDE = {"CHANGELOG.md", "CITATION.cff", "LICENSE", "LICENSE-book", "MANIFEST.in", "README.md"}
BESIDE |= {"constraints.txt", "pyproject.toml"}


def package_files() -> set[str]:
    """The names of the package's files as they are in a wheel."""
    files = (path for path in (ROOT / "ttutor").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(ROOT).as_posix() for path in files}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The source distribution and the wheel as `make dist` makes them, from a copy of what belongs in them."""
    source, target = (tmp_path_factory.mktemp(name) for name in ("source", "dist"))
    for name in package_files() | BESIDE:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, source / name)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(target), str(source)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    (sdist,), (wheel,) = target.glob("*.tar.gz"), target.glob("*.whl")
    return sdist, wheel


def names_in(archive: Path) -> set[str]:
    """The names of an archive's files."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as opened:
            return set(opened.namelist())
    with tarfile.open(archive) as opened:
        return {member.name.removeprefix(f"{NAME}/") for member in opened.getmembers() if member.isfile()}


def test_the_wheel_is_the_package_and_its_metadata(built: tuple[Path, Path]) -> None:
    held = names_in(built[1])
    about = {name for name in held if name.startswith(f"{NAME}.dist-info/")}
    assert held - about == package_files()
    licences = {f"{NAME}.dist-info/licenses/{name}" for name in ("LICENSE", "LICENSE-book")}
    parts = {
        f"{NAME}.dist-info/{name}" for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "top_level.txt")
    }
    assert about == licences | parts


def test_the_source_distribution_is_the_package_and_what_builds_it(built: tuple[Path, Path]) -> None:
    made = {name for name in names_in(built[0]) if name in ("PKG-INFO", "setup.cfg") or ".egg-info/" in name}
    assert names_in(built[0]) - made == package_files() | BESIDE


class Installed:
    """An environment in which one archive is installed, and what it needs is borrowed from this one."""

    def __init__(self, folder: Path, archive: Path) -> None:
        self.folder, self.scripts = folder, folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
        venv.create(folder / "venv", with_pip=False)
        places = self("import sysconfig; print(sysconfig.get_path('purelib'))").strip()
        # Lines of a .pth are added at the end, and the links to editable projects in them are not followed.
        (Path(places) / "borrowed.pth").write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")
        pip = [sys.executable, "-m", "pip", "--python", str(self.scripts / "python"), "install"]
        self.run([*pip, "--no-index", "--no-deps", "--no-build-isolation", "--ignore-installed", str(archive)])

    def run(self, command: list[str]) -> str:
        """Run a command in an empty folder of its own, and return what it printed; it has to succeed."""
        (self.folder / "work").mkdir(exist_ok=True)
        settings = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
        done = subprocess.run(
            command,
            cwd=self.folder / "work",
            env=settings | {"OMP_NUM_THREADS": "1", "PYTHONUTF8": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def __call__(self, code: str) -> str:
        return self.run([str(self.scripts / "python"), "-c", code])

    def ttutor(self, *arguments: str) -> str:
        return self.run([str(self.scripts / "ttutor"), *arguments])


@pytest.fixture(scope="module", params=["sdist", "wheel"])
def installed(built: tuple[Path, Path], request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    """Each of the two, installed without this checkout."""
    return Installed(tmp_path_factory.mktemp("installed"), built[("sdist", "wheel").index(request.param)])


@pytest.mark.soak
def test_the_installed_package_is_the_one_that_runs(installed: Installed) -> None:
    where = installed("import ttutor; print(ttutor.__file__)").strip()
    assert Path(where).is_relative_to(installed.folder)
    assert installed.ttutor("--version").strip() == f"ttutor {ttutor.__version__}"
    found = installed(
        "from ttutor.doctor import editable_checkout, extra_target as e; print(editable_checkout(), e('widgets'))"
    )
    assert found.strip() == "None ttutor[widgets]"


@pytest.mark.soak
def test_the_installed_doctor_finds_nothing_wrong(installed: Installed) -> None:
    assert "No problem found: the core works here." in installed.ttutor("doctor")


@pytest.mark.soak
@pytest.mark.timeout(3000)
def test_the_installed_command_trains_and_translates(installed: Installed) -> None:
    assert "836,608 parameters" in installed.ttutor("train", "--steps", "5", "--samples", "0")
    assert len(installed.ttutor("translate", "the dog sleeps").splitlines()) == 1  # whatever it says after five steps
    assert (installed.folder / "work" / "ttutor-runs" / "embedded").is_dir()


@pytest.mark.soak
def test_the_installed_command_checks_and_grades(installed: Installed) -> None:
    work = installed.folder / "work" / "my_work.py"
    work.parent.mkdir(exist_ok=True)
    softmax = find("attention.softmax")
    work.write_text("\n".join([*imports(softmax), solution_source(softmax, "my_softmax")]), encoding="utf-8")
    assert "1 right, 4 of 4 points" in installed.ttutor("check", str(work))
    assert "--assignment" in installed.ttutor("grade", "--help")
