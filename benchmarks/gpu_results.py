"""Results of the queue: merged into stored tables, collected as one archive, and a folder with what a machine lacks."""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from unweave.papers.folders import RECORD_FILE
from unweave.papers.verdicts import merge_rows
from unweave.training import compile_cache
from unweave.utils.atomic import write_atomic
from unweave.utils.storage import read_json, write_json

KEYS = ("palette", "data", "name", "method", "part", "gamma", "seed")  # of rows in the papers' tables
ARCHIVE, STATUS, CACHE = "results.tar.gz", "status.txt", "cache.tar.gz"
DONE = "done.json"
MAX_CACHE_MB = 40.0  # a file of a third of it, once compressed
LOG_LINES = 5  # of every log, in the status
PACKAGES = ("tyro", "rich", "filelock", "cloudpickle")  # in Python alone, and missing on some machines with a GPU
DATA = ("mnist", "basis_3dshapes.npz")  # that tables of the queue read, below UNWEAVE_DATA


# Tables ---------------------------------------------------------------------------------------------------------------


def read_done(state: Path) -> list[str]:
    """Return the commands that were run to their end."""
    path = state / DONE
    return list(read_json(path)["commands"]) if path.is_file() else []


def list_results(folder: Path) -> list[Path]:
    """Return the relative paths of tables, records and figures, without those of runs."""
    below = (path.relative_to(folder) for path in sorted(folder.rglob("*.*")))
    return [p for p in below if p.suffix in (".csv", ".json", ".png") and len(p.parts) > 1 and "runs" not in p.parts]


def merge_folder(source: Path, target: Path) -> None:
    """Add tables to those in another folder, row by row; copy figures."""
    for name in list_results(source):
        path, own = source / name, target / name
        own.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".csv":
            merge_table(path, own)
        elif path.name == RECORD_FILE:
            before = read_json(own)["figures"] if own.is_file() else []
            write_json(own, {"figures": sorted({*before, *read_json(path)["figures"]})})
        else:
            shutil.copyfile(path, own)


def merge_table(source: Path, target: Path) -> None:
    """Add the rows of a table to another one; a table without seeds replaces it."""
    rows = pd.read_csv(source, keep_default_na=False, na_values=[""])
    if "seed" in rows:
        merge_rows(rows, target, [key for key in KEYS if key in rows])
    else:
        shutil.copyfile(source, target)


# Archives -------------------------------------------------------------------------------------------------------------


def collect(state: Path, out: Path) -> None:
    """Write results, logs and status to a folder of few files; each replaces the earlier one at once."""
    out.mkdir(parents=True, exist_ok=True)
    unfinished = out / f".{ARCHIVE}"
    with tarfile.open(unfinished, "w:gz") as archive:
        for name in [*list_results(state), *(p.relative_to(state) for p in state.glob("logs/*.log"))]:
            archive.add(state / name, name)
        if (state / DONE).is_file():
            archive.add(state / DONE, DONE)
    unfinished.replace(out / ARCHIVE)
    lines = [(state / STATUS).read_text()] if (state / STATUS).is_file() else ["The queue has not started.\n"]
    for path in sorted((state / "logs").glob("*.log")):
        lines.append(f"{path.stem}\n    " + "\n    ".join(last_lines(path)))
    write_atomic(out / STATUS, "\n".join(lines) + "\n")


def last_lines(path: Path) -> list[str]:
    """Return the last lines of a log; of a line that was overwritten, its last state."""
    lines = [line.rpartition("\r")[2] for line in path.read_text(errors="replace").split("\n")]
    return [line for line in lines if line.strip()][-LOG_LINES:]


def unpack(archive: Path, folder: Path) -> None:
    """Unpack an archive of results."""
    with tarfile.open(archive) as file:
        file.extractall(folder, filter="data")


def merge_archive(archive: Path, stored: Path) -> None:
    """Add the tables and figures of an archive to the stored ones."""
    with TemporaryDirectory() as folder:
        unpack(archive, Path(folder))
        merge_folder(Path(folder), stored)


def save_cache(path: Path) -> None:
    """Write the compile cache where it is small enough to be copied."""
    if 0 < compile_cache.describe_cache()["MB"] < MAX_CACHE_MB:
        compile_cache.pack_cache(path)


# A machine without package installs -----------------------------------------------------------------------------------


def pack_folder(folder: Path, data: Path) -> None:
    """Copy data, and packages that are written in Python alone, into a folder that goes along to another machine."""
    shutil.rmtree(folder, ignore_errors=True)
    for package in python_packages(PACKAGES):
        for file in package.files or ():
            path = Path(str(package.locate_file(file)))
            if ".." not in file.parts and path.suffix != ".pyc" and path.is_file():
                target = folder / "packages" / file
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target)
    (folder / "data").mkdir(parents=True)
    for name in DATA:
        if (data / name).is_dir():
            shutil.copytree(data / name, folder / "data" / name, copy_function=shutil.copyfile)
        else:
            shutil.copyfile(data / name, folder / "data" / name)


def python_packages(names: tuple[str, ...]) -> Iterator[Distribution]:
    """Yield installed packages without machine code, and all that they need."""
    waiting, seen = [*names], set[str]()
    while waiting:
        name = waiting.pop().replace("_", "-").lower()
        if name in seen:
            continue
        seen.add(name)
        try:
            package = distribution(name)
        except PackageNotFoundError:
            continue  # needed elsewhere, e.g. by another version of Python
        if "Root-Is-Purelib: true" in (package.read_text("WHEEL") or ""):
            yield package
            needed = (text for text in package.requires or () if "extra ==" not in text)
            waiting += ["".join(c if c.isalnum() or c in "-_." else " " for c in text).split()[0] for text in needed]
