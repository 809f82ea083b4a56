"""The command `unweave advise`: look at data, recommend methods, and say what cannot work."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from unweave.cli.progress import show_progress
from unweave.cli.terminal import parse_options, print_json, print_text
from unweave.utils.errors import InputError

USAGE = """usage: unweave advise DATA [options]

Look at data, recommend one to three methods with the command to run and its time, and say what cannot work.

  --labels COLUMN        column, or sub-folder, that is the class of each observation
  --nuisances A B ...    columns that a classifier should ignore
  --pairs                there are pairs that share some factors
  --augmentations        images may be moved, rotated and scaled without changing what matters
  --correlated           the factors may be correlated
  --no-timed             do not estimate times, which takes a few seconds per method
  --json                 print as JSON
  --data.*               settings of the data, as in `unweave fit`

DATA is the path of your own data, or a name of `unweave data list`."""


def recommend(args: list[str]) -> None:
    """Recommend methods for data: unweave advise my.csv --labels species."""
    if not args or args[0] in ("-h", "--help"):
        return print_text(USAGE)
    if args[0].startswith("-"):
        raise InputError(f"name the data first: unweave advise DATA {' '.join(args)}")
    name, *args = args
    from unweave.experiments.advice import advise

    options = parse_options(advise_options(name), prog=f"unweave advise {name}", args=args)
    known = {key: getattr(options, key) for key in ("nuisances", "pairs", "augmentations", "correlated", "timed")}
    with show_progress(quiet=options.json) as progress:
        progress.message(f"looking at {name}")
        advice = advise(with_labels(options.data, options.labels, options.nuisances), labels=options.labels, **known)
    return print_json(advice.as_dict()) if options.json else print_text(str(advice))


def advise_options(name: str) -> Any:
    """Return a dataclass of flags: what the user has, and the settings of the dataset."""
    from unweave import catalog

    class Options:
        labels: str | None = None
        """Column, or sub-folder, that is the class of each observation."""
        nuisances: tuple[str, ...] = ()
        """Columns that a classifier should ignore."""
        pairs: bool = False
        """There are pairs of observations that share some factors."""
        augmentations: bool = False
        """Images may be moved, rotated and scaled without changing what matters."""
        correlated: bool = False
        """The factors may be correlated."""
        timed: bool = True
        """Estimate the time of each method by a few real steps."""
        json: bool = False
        """Print as JSON."""

    dataset = catalog.dataset(name)
    Options.__annotations__ = {"data": type(dataset)} | Options.__annotations__
    Options.data = field(default=dataset)  # type: ignore[attr-defined]
    return dataclass(kw_only=True)(Options)


def with_labels(dataset: Any, label: str | None, nuisances: tuple[str, ...]) -> Any:
    """Return the dataset with label and nuisances among its factors, where columns of a file can be factors."""
    from unweave.data.own_data import OwnData
    from unweave.data.readers.tables import TABLE_FORMATS

    names = [name for name in (label, *nuisances) if name]
    if not isinstance(dataset, OwnData) or not names:
        return dataset
    has_columns = Path(dataset.path).suffix.lower() in (*TABLE_FORMATS, ".npz")
    is_chosen = dataset.table is not None and dataset.factors  # otherwise all columns of the table are factors
    if not has_columns and not is_chosen:
        return dataset
    return replace(dataset, factors=tuple(dict.fromkeys((*dataset.factors, *names))))
