"""The command `unweave data`: list | where | check | make | show."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from unweave.cli.terminal import STDERR, first_line, parse_options, print_json, print_table, print_text, progress
from unweave.utils.errors import InputError, unknown

if TYPE_CHECKING:
    from unweave.data.dataset import Dataset
    from unweave.data.downloads import PublishedFile


HELP = """usage: unweave data [list | where | check | make | show] [NAME] [options]

  list          every dataset, and whether it can be loaded here
  where [NAME]  the folders that are searched, and the files that are expected
  check NAME    are its files whole?
  make NAME     make what it needs; with --download, fetch its original files (nothing is ever downloaded without it)
  show NAME     a sheet of its images, as NAME.png or --out FILE; also for the path of your own images

check, make and show take the settings of the dataset as flags: unweave data show colored-mnist --data.form backgrounds.
All take --json."""


def data(args: list[str]) -> None:
    """what data there are, where they are looked for, how to get what is missing"""
    if {"-h", "--help"} & set(args) and len([a for a in args if not a.startswith("-")]) < 2:
        return print_text(HELP)
    words: list[str] = []
    while args and not args[0].startswith("-") and len(words) < 2:
        words.append(args.pop(0))
    verb, name = [*words, "list"][0], "".join(words[1:])
    verbs = {"list": _list, "where": _where, "check": _check, "make": _make, "show": _show}
    if verb not in verbs:
        raise unknown("verb of `unweave data`", verb, verbs)
    if verb in ("check", "make", "show") and not name:
        raise InputError(f"which data? unweave data {verb} NAME (`unweave data list` names them)")
    options = parse_options(_options(name, verb), prog=f"unweave data {' '.join(words)}", args=args)
    options.name = name
    return verbs[verb](options)


def _options(name: str, verb: str) -> Any:
    """The flags of a verb; with a dataset, its settings too."""

    class Data:
        download: bool = False
        """with `make`: fetch the original files; nothing is ever downloaded without this"""
        out: Path | None = None
        """with `show`: the picture to write (default: NAME.png)"""
        json: bool = False
        """print as JSON"""

    if name and verb != "where":
        from unweave import catalog

        given = catalog.dataset(name)
        Data.__annotations__ = {"data": type(given)} | Data.__annotations__
        Data.data = field(default=given)  # type: ignore[attr-defined]
    return dataclass(kw_only=True)(Data)


def _list(options: Any) -> None:
    from unweave import catalog

    rows = [{"name": n, "state": _state(cls()), "summary": first_line(cls)} for n, cls in catalog.datasets().items()]
    if options.json:
        return print_json(rows)
    print_table(["name", "here", "what it is"], [list(row.values()) for row in rows], "datasets")
    return print_text(
        "`unweave data where` says where files are looked for; your own data need no name, give their path."
    )


def _state(dataset: Dataset) -> str:
    if dataset.is_available():
        return "found" if dataset.files else "made on the fly"
    if not dataset.files:
        return "to be made"
    # A dataset with a rendering of its own says in its title that it is not the original.
    return "re-made" if dataset.title().endswith(")") else "missing"


def _where(options: Any) -> None:
    from unweave import catalog
    from unweave.data.downloads import roots

    chosen = [catalog.find(catalog.datasets, options.name)] if options.name else list(catalog.datasets().values())
    files: list[dict[str, Any]] = [
        {
            "file": f.file,
            "found": str(f.find() or ""),
            "bytes": f.size,
            "hash": f.hash,
            "page": cls.page,
            "license": cls.license,
        }
        for cls in chosen
        for f in cls.files
    ]
    if options.json:
        return print_json({"folders": [str(root) for root in roots()], "files": files})
    print_text("Data are looked for in (set UNWEAVE_DATA to add folders, UNWEAVE_CACHE to move the last):")
    for root in roots():
        print_text(f"  {root}{'' if root.is_dir() else '   (not there yet)'}")
    once = {f["file"]: f for f in reversed(files)}  # which several datasets may share
    rows = [
        [name, _size(f["bytes"]), f["found"] or "missing", f"{f['page']} ({f['license']})"]
        for name, f in reversed(once.items())
    ]
    return print_table(["file", "size", "found", "official page (license)"], rows)


def _size(count: int | None) -> str:
    """A number of bytes, of which not all are known."""
    if not count:
        return ""
    return f"{count / 1e6:,.1f} MB" if count >= 1e5 else f"{count / 1e3:,.1f} kB"


def _check(options: Any) -> None:
    dataset = options.data
    expected = dict.fromkeys((*dataset.required_files(), *dataset.files))
    if not expected:
        state = "are made and kept" if dataset.is_available() else "are not made yet: unweave data make " + options.name
        text = f"{options.name} needs no files of others; its images {state}." if _kept(dataset) else ""
        return (
            print_json([])
            if options.json
            else print_text(text or f"{options.name} needs no files: it is made on the fly.")
        )
    found = []
    with progress(quiet=options.json) as notify:
        for original in expected:
            notify(f"checking {original.file}")
            path = original.path() if original.find() else ""
            found.append({"file": original.file, "state": "whole" if path else "missing", "path": str(path)})
    if options.json:
        return print_json(found)
    print_table(["file", "state", "path"], [list(row.values()) for row in found])
    if not dataset.is_available() and _state(dataset) == "missing":
        raise InputError(
            f"{options.name} cannot be loaded; get its files from {dataset.page} (license: {dataset.license})"
        )
    return None


def _kept(dataset: Dataset) -> bool:
    from unweave.datasets._kept import KeptImages

    return isinstance(dataset, KeptImages)


def _make(options: Any) -> None:
    dataset = options.data
    for original in dataset.required_files():
        if original.find() is None and options.download:
            _download(original, quiet=options.json)
    with progress(quiet=options.json) as notify:
        notify(f"loading {options.name}")
        dataset.make(notify)
        loaded = dataset.load()
    if options.json:
        return print_json({"title": dataset.title(), "shape": list(loaded.shape)})
    return print_text(f"{dataset.title()} is ready: observations of shape {' x '.join(map(str, loaded.shape))}.")


def _download(original: PublishedFile, *, quiet: bool) -> None:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=STDERR, disable=quiet) as bar:
        task = bar.add_task(original.file, total=original.size)
        original.download(lambda done, total: bar.update(task, completed=done, total=total or original.size))


def _show(options: Any) -> None:
    from torch import Generator

    from unweave.report.figures.sheet import draw_sheet
    from unweave.report.figures.style import save_figure

    dataset = options.data
    out = options.out or Path(f"{Path(options.name).stem}.png")
    with progress(quiet=options.json) as notify:
        notify(f"drawing {options.name}")
        figure = draw_sheet(dataset.load(), dataset.title(), Generator().manual_seed(0))
        save_figure(figure, out)
    return (
        print_json({"picture": str(out)}) if options.json else print_text(f"Open {out}: images of {dataset.title()}.")
    )
