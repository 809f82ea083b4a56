"""The command `unweave data`: list | where | check | make | show."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import tyro
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from .errors import InputError
from .terminal import ERR, parsed, progress, say, say_json, say_table, summary

if TYPE_CHECKING:
    from .dataset import Dataset
    from .originals import Original

VERBS = ("list", "where", "check", "make", "show")


@dataclass(kw_only=True)
class Data:
    """What data there are, where they are looked for, whether they are whole, and how to get what is missing.

    list: every dataset, and whether it can be loaded here. where: the folders that are searched, and the files wanted.
    check NAME: are the files whole? make NAME: make or (with --download) fetch what it needs. show NAME: a sheet of
    its images.
    """

    verb: tyro.conf.Positional[Literal["list", "where", "check", "make", "show"]] = "list"
    """what to do"""
    name: tyro.conf.Positional[str] = ""
    """which dataset; for `show`, also a path of your own"""
    download: bool = False
    """with `make`: fetch the original files; nothing is ever downloaded without this"""
    out: Path | None = None
    """with `show`: the picture to write (default: NAME.png)"""
    json: bool = False
    """print as JSON"""


def data(args: list[str]) -> None:
    """what data there are, where they are looked for, how to get what is missing"""
    options = parsed(Data, prog="unweave data", args=args)
    if options.verb in ("check", "make", "show") and not options.name:
        raise InputError(f"which data? unweave data {options.verb} NAME (`unweave data list` names them)")
    {"list": _list, "where": _where, "check": _check, "make": _make, "show": _show}[options.verb](options)


def _list(options: Data) -> None:
    from . import catalog

    rows = [{"name": n, "state": _state(cls()), "summary": summary(cls)} for n, cls in catalog.datasets().items()]
    if options.json:
        return say_json(rows)
    say_table(["name", "here", "what it is"], [list(row.values()) for row in rows], "datasets")
    return say("`unweave data where` says where files are looked for; your own data need no name, give their path.")


def _state(dataset: Dataset) -> str:
    if dataset.complete():
        return "found" if dataset.files else "made on the fly"
    if not dataset.files:
        return "to be made"
    # A dataset with a rendering of its own says in its title that it is not the original.
    return "re-made" if dataset.title().endswith(")") else "missing"


def _where(options: Data) -> None:
    from . import catalog
    from .originals import roots

    chosen = [catalog.find(catalog.datasets, options.name)] if options.name else list(catalog.datasets().values())
    files = [
        {"file": f.file, "found": str(f.find() or ""), "hash": f.hash, "page": cls.page, "licence": cls.licence}
        for cls in chosen
        for f in cls.files
    ]
    if options.json:
        return say_json({"folders": [str(root) for root in roots()], "files": files})
    say("Data are looked for in (set UNWEAVE_DATA to add folders, UNWEAVE_CACHE to move the last):")
    for root in roots():
        say(f"  {root}{'' if root.is_dir() else '   (not there yet)'}")
    rows = [[f["file"], f["found"] or "missing", f"{f['page']} ({f['licence']})"] for f in files]
    return say_table(["file", "found", "official page (licence)"], rows)


def _check(options: Data) -> None:
    from . import catalog

    cls = catalog.find(catalog.datasets, options.name)
    if not cls.files:
        return say_json([]) if options.json else say(f"{options.name} needs no files: it is made on the fly.")
    found = []
    with progress(quiet=options.json) as notify:
        for original in cls.files:
            path = original.find()
            notify(f"checking {original.file}")
            if path is not None:
                original.check(path)
            found.append({"file": original.file, "state": "whole" if path else "missing", "path": str(path or "")})
    if options.json:
        return say_json(found)
    say_table(["file", "state", "path"], [list(row.values()) for row in found])
    if all(row["state"] == "missing" for row in found):
        raise InputError(f"no file of {options.name} is here; {_how(cls)}")
    return None


def _how(cls: type[Dataset]) -> str:
    return f"get them from {cls.page} (licence: {cls.licence})"


def _make(options: Data) -> None:
    from . import catalog

    cls = catalog.find(catalog.datasets, options.name)
    missing = [original for original in cls().needed() if original.find() is None]
    if missing and options.download:
        for original in cls.files:
            if original.find() is None:
                _download(original, quiet=options.json)
        missing = []
    with progress(quiet=options.json) as notify:
        notify(f"loading {options.name}")
        dataset = cls()
        dataset.make(notify)
        loaded = dataset.load()
    text = f"{dataset.title()} is ready: observations of shape {' x '.join(map(str, loaded.shape))}"
    return say_json({"title": dataset.title(), "shape": list(loaded.shape)}) if options.json else say(text + ".")


def _download(original: Original, *, quiet: bool) -> None:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=ERR, disable=quiet) as bar:
        task = bar.add_task(original.file, total=original.size)
        original.download(lambda done, total: bar.update(task, completed=done, total=total or original.size))


def _show(options: Data) -> None:
    from torch import Generator

    from . import catalog
    from .figures.sheet import sheet
    from .files import OwnData

    cls: Any = catalog.find_data(options.name)
    dataset = cls(path=Path(options.name)) if cls is OwnData else cls()
    out = options.out or Path(f"{Path(options.name).stem}.png")
    with progress(quiet=options.json) as notify:
        notify(f"drawing {options.name}")
        figure = sheet(dataset.load(), dataset.title(), Generator().manual_seed(0))
        out.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(out, dpi=150)
    return say_json({"picture": str(out)}) if options.json else say(f"Open {out}: images of {dataset.title()}.")
