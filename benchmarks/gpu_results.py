"""Results of the queue: merged into stored tables, collected as few files, and a folder with what a machine lacks."""

from __future__ import annotations

import os
import shutil
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from unweave.papers.folders import RECORD_FILE
from unweave.papers.verdicts import merge_rows
from unweave.training import compile_cache
from unweave.utils.atomic import atomic_file, write_atomic
from unweave.utils.errors import InputError
from unweave.utils.storage import read_json, write_json

KEYS = ("palette", "data", "name", "method", "part", "gamma", "seed")  # of rows in the papers' tables
ARCHIVE, STATUS, CACHE = "results.tar.gz", "status.txt", "cache.tar.gz"
DONE = "done.json"
MAX_FILE_MB = 15.0  # of a file of the results; a larger cache becomes several files
MAX_CACHE_FILES = 4  # with which all results are six files
LOG_LINES = 5  # of every log, in the status
MEASURED = "benchmarks"  # folder of measurements, which are stored in MEASUREMENTS
MEASUREMENTS = Path("benchmarks/results")
RESULT_SUFFIXES = (".csv", ".json", ".png")
NO_RESULTS = ("runs", "model", "stored", "logs", "mps-", ".")  # starts of names of folders
PACKAGES = ("tyro", "rich", "filelock", "cloudpickle")  # in Python alone, and missing on some machines with a GPU
PACKAGES_FILE = "packages.zip"  # from which Python imports: a fifth of the size of a folder
DATA = ("mnist", "basis_3dshapes.npz")  # that tables of the queue read, below UNWEAVE_DATA; flowers102 is 38 MB


# Tables ---------------------------------------------------------------------------------------------------------------


def read_done(state: Path) -> list[str]:
    """Return the commands that were run to their end."""
    path = state / DONE
    return list(read_json(path)["commands"]) if path.is_file() else []


def list_results(folder: Path) -> list[Path]:
    """Return the relative paths of tables, records and figures, without those of runs; others may write meanwhile."""
    names = []
    for path, below, files in os.walk(folder):  # unlike a glob, it passes over what is removed while it looks
        below[:] = [name for name in below if not name.startswith(NO_RESULTS)]
        relative = Path(path).relative_to(folder)
        names += [relative / name for name in files if name.endswith(RESULT_SUFFIXES) and not name.startswith(".")]
    return sorted(name for name in names if len(name.parts) > 1)


def merge_folder(source: Path, target: Path) -> list[str]:
    """Add tables to those in another folder, row by row; copy figures. Return what could not be added, and why."""
    failed = []
    for name in list_results(source):
        if name.parts[0] == MEASURED:
            continue
        path, own = source / name, target / name
        own.parent.mkdir(parents=True, exist_ok=True)
        try:
            if path.suffix == ".csv":
                merge_table(path, own)
            elif path.name == RECORD_FILE:
                before = read_json(own)["figures"] if own.is_file() else []
                write_json(own, {"figures": sorted({*before, *read_json(path)["figures"]})})
            else:
                shutil.copyfile(path, own)
        except (InputError, OSError, ValueError, KeyError) as error:  # one table must not stop a queue
            failed.append(f"{name}: {error}")
    return failed


def merge_measurements(source: Path, target: Path = MEASUREMENTS) -> None:
    """Copy tables of measurements, which began as copies of the stored ones."""
    for path in sorted((source / MEASURED).glob("*")):
        if path.suffix in (*RESULT_SUFFIXES, ".md"):
            shutil.copyfile(path, target / path.name)


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
    logs = sorted(p.relative_to(state) for pattern in ("logs/*.log", f"{MEASURED}/*.*") for p in state.glob(pattern))
    with tarfile.open(unfinished, "w:gz") as archive:
        for name in dict.fromkeys([*list_results(state), *logs, Path(DONE)]):
            with suppress(FileNotFoundError):  # another process has just replaced it
                archive.add(state / name, name)
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


def merge_archive(archive: Path, stored: Path, measurements: Path = MEASUREMENTS) -> list[str]:
    """Add the tables and figures of an archive to the stored ones; return what could not be added, and why."""
    with TemporaryDirectory() as folder:
        unpack(archive, Path(folder))
        merge_measurements(Path(folder), measurements)
        return merge_folder(Path(folder), stored)


def save_cache(path: Path) -> None:
    """Write the compile cache where it is small enough to be copied: one file, or parts that `load_cache` joins."""
    if not compile_cache.describe_cache()["files"]:
        return
    with TemporaryDirectory() as folder:
        whole = Path(folder) / path.name
        compile_cache.pack_cache(whole)
        content, size = whole.read_bytes(), max(1, int(MAX_FILE_MB * 1e6))
    parts = [content[i : i + size] for i in range(0, len(content), size)]
    for old in cache_parts(path):
        old.unlink()
    for i, part in enumerate(parts if len(parts) <= MAX_CACHE_FILES else ()):
        with atomic_file(path if i == 0 else path.with_name(f"{path.name}.{i}")) as file:
            file.write(part)


def cache_parts(path: Path) -> list[Path]:
    """Return the files of a cache that exist, in their order."""
    every = (path, *(path.with_name(f"{path.name}.{i}") for i in range(1, MAX_CACHE_FILES)))
    return [part for part in every if part.is_file()]


def load_cache(path: Path) -> int:
    """Add the files of `save_cache` to the compile cache; return their number."""
    with TemporaryDirectory() as folder:
        whole = Path(folder) / path.name
        whole.touch(mode=0o600)
        whole.write_bytes(b"".join(part.read_bytes() for part in cache_parts(path)))
        return compile_cache.unpack_cache(whole)


# A machine without package installs -----------------------------------------------------------------------------------


def pack_folder(folder: Path, data: Path, names: Iterable[str] = DATA) -> float:
    """Copy data, and packages in Python alone, into a folder that goes along to another machine; return its MB."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with zipfile.ZipFile(folder / PACKAGES_FILE, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in python_packages(PACKAGES):
            for file in package.files or ():
                path = Path(str(package.locate_file(file)))
                if ".." not in file.parts and path.suffix != ".pyc" and path.is_file():
                    archive.write(path, str(file))
    (folder / "data").mkdir()
    for name in names:
        if (data / name).is_dir():
            shutil.copytree(data / name, folder / "data" / name, copy_function=shutil.copyfile)
        elif (data / name).is_file():
            shutil.copyfile(data / name, folder / "data" / name)
        else:
            raise InputError(f"{data / name} is missing: set UNWEAVE_DATA to the folder that has {', '.join(names)}")
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


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
