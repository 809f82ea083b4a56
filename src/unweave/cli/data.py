"""The command `unweave data`: list, find, check, prepare and show datasets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from unweave.cli.progress import show_progress
from unweave.cli.terminal import STDERR, docstring_summary, parse_options, print_json, print_table, print_text
from unweave.utils.errors import InputError, unknown

if TYPE_CHECKING:
    from unweave.data.dataset import Dataset
    from unweave.data.downloads import PublishedFile

KILOBYTE, MEGABYTE = 1e3, 1e6

USAGE = """usage: unweave data [list | where | check | make | show] [NAME] [options]

  list          list all datasets, and whether they can be loaded on this machine
  where [NAME]  list the folders that are searched and the files that are expected
  check NAME    verify the files of a dataset
  make NAME     prepare a dataset; with --download, fetch its published files (never done without this flag)
  show NAME     write a sheet of images to NAME.png or --out FILE; NAME may be the path of your own images

check, make and show take the settings of the dataset as flags: unweave data show colored-mnist --data.form backgrounds.
All actions take --json."""


def data(args: list[str]) -> None:
    """List datasets, find and check their files, prepare and show them."""
    if {"-h", "--help"} & set(args) and len([arg for arg in args if not arg.startswith("-")]) < 2:
        return print_text(USAGE)
    words: list[str] = []
    while args and not args[0].startswith("-") and len(words) < 2:
        words.append(args.pop(0))
    action, name = [*words, "list"][0], "".join(words[1:])
    if action not in ACTIONS:
        raise unknown("action of `unweave data`", action, ACTIONS)
    if action in ("check", "make", "show") and not name:
        raise InputError(f"which data? unweave data {action} NAME (`unweave data list` shows the names)")
    options = parse_options(data_options(name, action), prog=f"unweave data {' '.join(words)}", args=args)
    options.name = name
    return ACTIONS[action](options)


def data_options(name: str, action: str) -> Any:
    """Return a dataclass of flags: those of the action and, if a dataset is named, its settings."""

    class Data:
        download: bool = False
        """With `make`: fetch the published files. Nothing is downloaded without this flag."""
        out: Path | None = None
        """With `show`: the image to write (default: NAME.png)."""
        json: bool = False
        """Print as JSON."""

    if name and action != "where":
        from unweave import catalog

        dataset = catalog.dataset(name)
        Data.__annotations__ = {"data": type(dataset)} | Data.__annotations__
        Data.data = field(default=dataset)  # type: ignore[attr-defined]
    return dataclass(kw_only=True)(Data)


def list_datasets(options: Any) -> None:
    """Print name, state and summary of every dataset."""
    from unweave import catalog

    rows = [
        {"name": name, "state": describe_state(cls()), "summary": docstring_summary(cls)}
        for name, cls in catalog.datasets().items()
    ]
    if options.json:
        return print_json(rows)
    print_table(["name", "state", "summary"], [list(row.values()) for row in rows], "datasets")
    return print_text("`unweave data where` lists the folders that are searched. For your own data, give their path.")


def describe_state(dataset: Dataset) -> str:
    """Return whether a dataset can be loaded: available, generated, not rendered yet, substitute or missing."""
    if dataset.is_available():
        return "available" if dataset.required_files() else "generated"
    if not dataset.required_files():
        return "not rendered yet"
    # A dataset that renders a substitute of its own says so in its title, in parentheses.
    return "substitute" if dataset.title().endswith(")") else "missing"


def locate_files(options: Any) -> None:
    """Print the folders that are searched, and size, path, page and license of every file."""
    from unweave import catalog
    from unweave.data.downloads import roots

    classes = [catalog.find(catalog.datasets, options.name)] if options.name else list(catalog.datasets().values())
    files: list[dict[str, Any]] = [
        {"file": file.file, "found": str(file.find() or ""), "bytes": file.size, "hash": file.hash}
        | {"page": cls.page, "license": cls.license}
        for cls in classes
        for file in cls.files
    ]
    if options.json:
        return print_json({"folders": [str(root) for root in roots()], "files": files})
    print_text("Folders that are searched (UNWEAVE_DATA adds folders, UNWEAVE_CACHE replaces the last one):")
    for root in roots():
        print_text(f"  {root}{'' if root.is_dir() else '   (does not exist yet)'}")
    unique = {row["file"]: row for row in reversed(files)}  # several datasets may share a file
    rows = [
        [name, format_size(row["bytes"]), row["found"] or "missing", f"{row['page']} ({row['license']})"]
        for name, row in reversed(unique.items())
    ]
    return print_table(["file", "size", "path", "official page (license)"], rows)


def format_size(size: int | None) -> str:
    """Return a number of bytes as kB or MB; an empty text if it is unknown."""
    if not size:
        return ""
    in_megabytes = size >= 0.1 * MEGABYTE
    return f"{size / MEGABYTE:,.1f} MB" if in_megabytes else f"{size / KILOBYTE:,.1f} kB"


def check_files(options: Any) -> None:
    """Verify size and checksum of every file of a dataset."""
    dataset = options.data
    files = dict.fromkeys((*dataset.required_files(), *dataset.files))
    if not files:
        return print_json([]) if options.json else print_text(_describe_without_files(dataset, options.name))
    rows = []
    with show_progress(quiet=options.json) as progress:
        for file in files:
            progress.message(f"checking {file.file}")
            path = file.path() if file.find() else ""
            rows.append({"file": file.file, "state": "verified" if path else "missing", "path": str(path)})
    if options.json:
        return print_json(rows)
    print_table(["file", "state", "path"], [list(row.values()) for row in rows])
    state = describe_state(dataset)
    if state == "missing":
        source = f"from {dataset.page} (license: {dataset.license})" if dataset.page else "(`unweave data where`)"
        raise InputError(f"{options.name} cannot be loaded; get its files {source}")
    return print_text(f"{dataset.title()} is used instead.") if state == "substitute" else None


def _describe_without_files(dataset: Dataset, name: str) -> str:
    from unweave.datasets.cached_images import CachedImages

    if not isinstance(dataset, CachedImages):
        return f"{name} needs no files: it is generated."
    if dataset.is_available():
        return f"{name} needs no published files. Its images are in the cache."
    return f"{name} needs no published files. Its images are not rendered yet: unweave data make {name}"


def prepare_dataset(options: Any) -> None:
    """Download the files of a dataset if requested, render what it needs, and load it."""
    dataset = options.data
    for file in dataset.required_files():
        if file.find() is None and options.download:
            _download(file, quiet=options.json)
    with show_progress(quiet=options.json) as progress:
        progress.message(f"loading {options.name}")
        dataset.make(progress.message)
        loaded = dataset.load()
    if options.json:
        return print_json({"title": dataset.title(), "shape": list(loaded.shape)})
    return print_text(f"{dataset.title()} is ready: observations of shape {' x '.join(map(str, loaded.shape))}.")


def _download(file: PublishedFile, *, quiet: bool) -> None:
    text = TextColumn("{task.description}", markup=False)
    columns = text, BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn()
    with Progress(*columns, console=STDERR, disable=quiet) as bar:
        task = bar.add_task(file.file, total=file.size)
        file.download(lambda done, total: bar.update(task, completed=done, total=total or file.size))


def show_dataset(options: Any) -> None:
    """Write a sheet of images: random ones, then one row per factor."""
    from torch import Generator

    from unweave.report.figures.sheet import draw_sheet
    from unweave.report.figures.style import save_figure

    dataset = options.data
    out = options.out or Path(f"{Path(options.name).stem}.png")
    with show_progress(quiet=options.json) as progress:
        progress.message(f"drawing {options.name}")
        figure = draw_sheet(dataset.load(), dataset.title(), Generator().manual_seed(0))
        save_figure(figure, out)
    if options.json:
        return print_json({"picture": str(out)})
    return print_text(f"Open {out} to see images of {dataset.title()}.")


ACTIONS: dict[str, Callable[[Any], None]] = {
    "list": list_datasets, "where": locate_files, "check": check_files, "make": prepare_dataset, "show": show_dataset,
}  # fmt: skip
