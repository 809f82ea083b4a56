"""Builds wheel and sdist, installs the wheel into a fresh environment, and uses it there as a user would.

    python .ci/check_wheel.py                   # keeps wheel and sdist in dist/
    python .ci/check_wheel.py --tag v0.1.0      # fails unless this is the tag of the version

Runs in an environment with the extra `dev`. The wheel gets an environment of its own in a temporary folder, with the
versions of constraints.txt. Ends with exit code 1 and a message at the first thing that differs.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from email.message import Message
from email.parser import BytesParser
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
MAX_WHEEL_BYTES, MAX_SDIST_BYTES = 5_000_000, 10_000_000
N_ROWS, MIN_MCC = 400, 0.95
MAX_LINES = 8  # of a difference
NEEDED = (  # in the wheel, below the package
    "py.typed", "report/template.html.jinja", "datasets/assets/shapes3d_basis.npz", "papers/gin/README.md",
    "papers/gin/results/artificial/scores.csv", "papers/hlle_ica/results/figures.json",
)  # fmt: skip
LEFT_OUT = (".png",)  # figures of the papers


class PackageError(Exception):
    """Wheel or sdist differ from what a user needs."""


@contextmanager
def step(title: str) -> Iterator[None]:
    """Print the title of a step and, when it is done, its duration."""
    start = time.perf_counter()
    print(f"{title} ...", end=" ", flush=True)
    yield
    print(f"{time.perf_counter() - start:.1f} s", flush=True)


def clean_environment() -> dict[str, str]:
    """Return the variables of this process without those that lead to this repository or its environment."""
    hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    return {k: v for k, v in os.environ.items() if k not in hidden and not k.startswith("UNWEAVE_")}


def call(command: Sequence[str | Path], cwd: Path) -> str:
    """Run a command in a folder and return what it printed; raise an error with its output if it fails."""
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=clean_environment(), capture_output=True, text=True, check=False
    )
    if done.returncode:
        text = " ".join(map(str, command))
        raise PackageError(f"{text}\nended with exit code {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def describe_difference(name: str, left: set[str], right: set[str]) -> str:
    """Return the entries that only one of two sets has, or an empty string."""
    missing, extra = sorted(left - right), sorted(right - left)
    parts = [f"{label}: {', '.join(entries)}" for label, entries in (("missing", missing), ("extra", extra)) if entries]
    return f"{name}: {'; '.join(parts)}" if parts else ""


def require_same(name: str, left: set[str], right: set[str]) -> None:
    """Raise an error that lists what is missing and what is extra."""
    if text := describe_difference(name, left, right):
        raise PackageError(text)


def build(dist: Path, temporary: Path) -> tuple[Path, Path]:
    """Build the sdist, the wheel from the sdist, and a second wheel from the repository, which must be the same."""
    for old in (*dist.glob("unweave-*.whl"), *dist.glob("unweave-*.tar.gz")):
        old.unlink()
    call([sys.executable, "-m", "build", "--outdir", dist, ROOT], temporary)
    call([sys.executable, "-m", "build", "--wheel", "--outdir", temporary / "tree", ROOT], temporary)
    (wheel,), (sdist,) = dist.glob("unweave-*.whl"), dist.glob("unweave-*.tar.gz")
    left, right = read_wheel(next((temporary / "tree").glob("*.whl"))), read_wheel(wheel)
    require_same("wheel from the sdist, compared with the wheel from the repository", set(left), set(right))
    changed = [name for name in left if left[name] != right[name]]
    if changed:
        raise PackageError(f"the wheel from the sdist has other contents than the wheel from the repository: {changed}")
    return wheel, sdist


def read_wheel(path: Path) -> dict[str, bytes]:
    """Return the contents of a wheel by file name."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def read_metadata(wheel: Path) -> Message:
    """Return the metadata of a wheel."""
    (content,) = (value for name, value in read_wheel(wheel).items() if name.endswith(".dist-info/METADATA"))
    return BytesParser().parsebytes(content)


def repository_files(folder: str) -> set[str]:
    """Return the files of the repository below a folder, committed or new, without those that git ignores."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", folder]
    return {name for name in call(command, ROOT).splitlines() if (ROOT / name).is_file()}


def check_wheel(path: Path) -> None:
    """Check size, license and files: the wheel has every file of the package except the figures of the papers."""
    size, names = path.stat().st_size, set(read_wheel(path))
    if size > MAX_WHEEL_BYTES:
        raise PackageError(f"{path.name} has {size:,} bytes, more than {MAX_WHEEL_BYTES:,}")
    package = {name for name in names if name.startswith("unweave/")}
    sources = {name.removeprefix("src/") for name in repository_files("src/unweave")}
    require_same(path.name, {name for name in sources if not name.endswith(LEFT_OUT)}, package)
    absent = [name for name in NEEDED if f"unweave/{name}" not in package]
    absent += [] if any(name.endswith(".dist-info/licenses/LICENSE") for name in names) else ["LICENSE"]
    if absent:
        raise PackageError(f"{path.name} lacks {', '.join(absent)}")


def check_sdist(path: Path) -> None:
    """Check size and files: the sdist has every source of package, tests, examples and pages."""
    size = path.stat().st_size
    if size > MAX_SDIST_BYTES:
        raise PackageError(f"{path.name} has {size:,} bytes, more than {MAX_SDIST_BYTES:,}")
    with tarfile.open(path) as archive:
        names = {str(PurePosixPath(*PurePosixPath(name).parts[1:])) for name in archive.getnames()}
    sources = {name for folder in ("src", "tests", "examples", "docs") for name in repository_files(folder)}
    text = (".py", ".md", ".rst", ".toml", ".jinja", ".css", ".csv")
    if absent := sorted(name for name in sources if name.endswith(text) and name not in names):
        raise PackageError(f"{path.name} lacks {', '.join(absent)}")


def check_tag(metadata: Message, tag: str) -> None:
    """Check that a release has the tag of its version."""
    if tag and tag != f"v{metadata['Version']}":
        raise PackageError(
            f"the tag is {tag}, but the version is {metadata['Version']}: expected v{metadata['Version']}"
        )


def install(wheel: Path, folder: Path) -> Path:
    """Install the wheel into a new environment, and return the folder of its programs."""
    call([sys.executable, "-m", "venv", folder], folder.parent)
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    options = ["--quiet", "--disable-pip-version-check", "--no-compile"]  # compiled when imported, which is faster here
    call([programs / "python", "-m", "pip", "install", *options, "-c", ROOT / "constraints.txt", wheel], folder.parent)
    return programs


def check_origin(programs: Path, version: str, home: Path) -> None:
    """Check that the new environment imports the installed package, and that both name the version of the wheel."""
    code = "import unweave; print(unweave.__file__); print(unweave.__version__)"
    origin, own_version = call([programs / "python", "-c", code], home).split("\n")[:2]
    if not Path(origin).resolve().is_relative_to(programs.parent.resolve()):
        raise PackageError(f"the new environment imports {origin}, not the installed wheel")
    printed = call([programs / "unweave", "--version"], home).strip()
    require_same("versions", {f"unweave {version}"}, {printed, f"unweave {own_version}"})


def compare_rows(repository: list[dict[str, str]], wheel: list[dict[str, str]]) -> str:
    """Return the first rows in which two tables differ, by name and column, or an empty string."""
    left, right = ({row["name"]: row for row in rows} for rows in (repository, wheel))
    lines = [
        f"{name}, {column}: {row.get(column)!r} in the repository, {right.get(name, {}).get(column)!r} in the wheel"
        for name, row in left.items()
        for column in row
        if row.get(column) != right.get(name, {}).get(column)
    ]
    lines += [f"{name}: only in the wheel" for name in right if name not in left]
    more = [f"... and {len(lines) - MAX_LINES} more"] if len(lines) > MAX_LINES else []
    return "\n".join([*lines[:MAX_LINES], *more])


def check_papers(programs: Path, home: Path) -> None:
    """Check that the status of every table and figure of the papers is that of the repository."""
    command = ["paper", "list", "--json"]
    here = json.loads(call([sys.executable, "-m", "unweave", *command], ROOT))
    there = json.loads(call([programs / "unweave", *command], home))
    if text := compare_rows(here, there):
        raise PackageError(f"`unweave paper list` differs:\n{text}")


def check_help_and_demo(programs: Path, home: Path) -> None:
    """Run `unweave --help` and `unweave demo`, which writes a report."""
    text = call([programs / "unweave", "--help"], home)
    if absent := [name for name in ("demo", "fit", "score", "paper") if f"\n  {name} " not in text]:
        raise PackageError(f"unweave --help does not list {', '.join(absent)}:\n{text}")
    rows = json.loads(call([programs / "unweave", "demo", "--json"], home))
    best = max(row["mcc"] for row in rows)
    if best < MIN_MCC:
        raise PackageError(f"the best mcc of unweave demo is {best}, below {MIN_MCC}")
    if "</html>" not in (home / "report.html").read_text(encoding="utf-8"):
        raise PackageError("unweave demo wrote a report.html that is not complete")


def write_table(home: Path) -> None:
    """Write two independent factors, and a table with four mixtures of them."""
    generator = random.Random(0)
    factors = [(generator.random(), generator.random()) for _ in range(N_ROWS)]
    mixed = [(x + y / 2, x / 3 - y, 2 * x + y, x - y) for x, y in factors]
    for name, header, rows in (("factors.csv", "xy", factors), ("table.csv", "abcd", mixed)):
        with (home / name).open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([header, *rows])


def check_own_table(programs: Path, home: Path) -> None:
    """Fit a method to a user's CSV, and score its codes against a second one."""
    write_table(home)
    fit = ["fit", "linear-ica", "table.csv", "--latent-dim", "2", "--codes", "codes.csv"]
    call([programs / "unweave", *fit], home)
    with (home / "codes.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    if len(rows) != N_ROWS or len(rows[0]) != 2:
        raise PackageError(f"codes.csv has {len(rows)} rows and {len(rows[0])} columns, expected {N_ROWS} and 2")
    score = ["score", "codes.csv", "--factors", "factors.csv", "--metrics", "mcc", "--json"]
    mcc = json.loads(call([programs / "unweave", *score], home))["mcc"]
    if mcc < MIN_MCC:
        raise PackageError(f"the mcc of linear-ica on a linear mixture is {mcc}, below {MIN_MCC}")


def check_package(dist: Path, temporary: Path, tag: str) -> None:
    """Build, inspect, install and use the package."""
    with step("build sdist and wheel, compare with a wheel from the repository"):
        wheel, sdist = build(dist, temporary)
    for path in (wheel, sdist):
        print(f"  {path.name}: {path.stat().st_size / 1e6:.2f} MB")
    with step("files, sizes and version"):
        check_wheel(wheel)
        check_sdist(sdist)
        metadata = read_metadata(wheel)
        check_tag(metadata, tag)
    home = temporary / "home"
    home.mkdir()
    with step("install the wheel into a new environment"):
        programs = install(wheel, temporary / "environment")
        check_origin(programs, metadata["Version"], home)
    with step("unweave --help, unweave demo"):
        check_help_and_demo(programs, home)
    with step("unweave paper list, as in the repository"):
        check_papers(programs, home)
    with step("unweave fit and unweave score on a CSV"):
        check_own_table(programs, home)


def main() -> int:
    """Parse options, run every step, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="folder for wheel and sdist (default: dist)")
    parser.add_argument("--tag", default="", help="tag of the release, e.g. v0.1.0")
    options = parser.parse_args()
    options.dist.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix="unweave-package-"))
    try:
        check_package(options.dist.resolve(), temporary, options.tag)
    except PackageError as error:
        print(f"\nThe package is not ready: {error}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    print("The package installs and works outside of the repository.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
