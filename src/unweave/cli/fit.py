"""The command `unweave fit`: train a method on data and write a run folder."""

from __future__ import annotations

import math
import os
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from unweave.cli.compare import print_left_out
from unweave.cli.progress import show_progress
from unweave.cli.terminal import docstring_summary, parse_options, print_runs, print_text
from unweave.utils.errors import InputError, describe_renaming, kebab

if TYPE_CHECKING:
    import numpy as np

    from unweave.data.core import FactorData
    from unweave.data.dataset import Dataset
    from unweave.experiments.run import FinishedRun, Run
    from unweave.methods.base import Method

CODE_FORMATS = (".csv", ".parquet", ".npy")
MIN_TIMED_ELEMENTS = 1e8  # numbers that go through the network in a run; fewer take minutes at most


def fit(args: list[str]) -> None:
    """Learn factors: unweave fit METHOD DATA, e.g. unweave fit hessian-ica photos/ --latent-dim 3."""
    names: list[str] = []
    while args and not args[0].startswith("-") and len(names) < 2:
        names.append(args.pop(0))
    if len(names) < 2 and (not args or {"-h", "--help"} & set(args)):
        return _print_help(names)
    if len(names) < 2:
        raise InputError(f"name the method and the data first: unweave fit METHOD DATA {' '.join(args)}")
    from unweave import catalog
    from unweave.data.own_data import OwnData

    method, data = catalog.find(catalog.methods, names[0]), catalog.find_dataset(names[1])
    _refuse_former_flags(method, args)
    default_data = data(path=Path(names[1])) if data is OwnData else data()
    options_class = fit_options(method, data)
    options = parse_options(
        options_class,
        prog=f"unweave fit {' '.join(names)}",
        description=f"METHOD {names[0]}: {docstring_summary(method)}\n\nDATA {names[1]}: {docstring_summary(data)}",
        args=args,
        default=options_class(method=method(), data=default_data),
    )
    return _fit(options)


def _refuse_former_flags(method: Any, args: list[str]) -> None:
    """Raise InputError with the current name for a flag of the method that was renamed."""
    from unweave.methods.persistence import renamed_settings

    for former, current in renamed_settings(method).items():
        flag, new = f"--{kebab(former)}", current and f"--{kebab(current)}"
        if any(arg.partition("=")[0] in (flag, flag.replace("--", "--no-")) for arg in args):
            raise InputError(describe_renaming(flag, new))


def fit_options(method: type, data: type) -> Any:
    """Return a dataclass of flags: the method's fields, the dataset's with the prefix --data., and those of fit."""
    from unweave.experiments.evaluation import DEFAULT_METRICS

    class Fit:
        out: Path | None = None
        """Folder of the run (default: runs/METHOD-DATA-KEY). A finished run is not repeated."""
        codes: Path | None = None
        """Also write the codes to this .csv, .parquet or .npy file."""
        metrics: tuple[str, ...] = DEFAULT_METRICS
        """Metrics to compute. Most need data with known factors."""
        test: float = 0.0
        """Share of the rows of your own data that is held out and scored, e.g. 0.2."""
        test_where: str = ""
        """Condition for the rows of your own data that are held out and scored, e.g. "azimuth > 50"."""
        json: bool = False
        """Print the result as JSON."""

    # Assigned, not written above: annotations as text are looked up among global names, and these are local.
    Fit.__annotations__ = {"method": Annotated[method, tyro.conf.arg(name="")], "data": data} | Fit.__annotations__
    return dataclass(kw_only=True)(Fit)


def _fit(options: Any) -> None:
    from unweave import catalog
    from unweave.experiments.run import Run
    from unweave.experiments.runner import execute_run

    run = Run(_hold_out(options), options.method)
    metrics = catalog.run_metrics(options.metrics)
    if options.codes is not None:
        check_writable(options.codes)
    with show_progress(quiet=options.json) as progress:
        progress.message("computing the run key")
        title = re.sub(r"[^\w.-]+", "-", Path(run.data.title()).stem).strip("-")
        folder = options.out or Path("runs") / f"{run.method.name}-{title}-{run.key}"
        before = partial(_warn_of_long_run, type(run.data))
        done = execute_run(run, folder, metrics, progress.message, progress.training, before)
        if options.codes is not None:
            write_codes(options.codes, *_codes_of_all_rows(run, done), done.row_key)
    if options.json:
        return print_runs([done], as_json=True)
    for note in done.env["data"].get("notes", ()):
        print_text(note)
    print_runs([done], run.title())
    for finding in done.diagnosis:
        print_text(f"- {finding}")
    print_left_out(done.factors, {name: metric for name, metric in metrics.items() if name in done.scores})
    if not done.factors:
        print_text("The data have no known factors, so only metrics that need none were computed.")
    return print_text(f"The run is in {folder}. To see it: unweave report {folder}")


def _warn_of_long_run(dataset: type[Dataset], method: Method, data: FactorData) -> None:
    """Warn before a training of more than ten minutes; small ones are not timed."""
    steps, batch_size = getattr(method, "steps", 0), getattr(method, "batch_size", 0)
    if steps * batch_size * math.prod(data.shape) > MIN_TIMED_ELEMENTS:
        from unweave.experiments.timing import describe_long_run

        text = describe_long_run(method, data, dataset)
        if text:
            warnings.warn(text, stacklevel=2)


def _hold_out(options: Any) -> Any:
    """Return the dataset with the test set that --test or --test-where chooses."""
    from unweave.data.own_data import OwnData

    chosen = {name: getattr(options, name) for name in ("test", "test_where") if getattr(options, name)}
    if chosen and not isinstance(options.data, OwnData):
        raise InputError("--test and --test-where split your own data; datasets have their own test sets (--data.part)")
    return replace(options.data, **chosen) if chosen else options.data


def _codes_of_all_rows(run: Run, done: FinishedRun) -> tuple[np.ndarray, tuple[str, ...] | None]:
    """Return the codes of every row, (n, d), and their names: a run on data read on demand may hold a sample."""
    if done.env["data"].get("rows", len(done.codes)) == len(done.codes):
        return done.codes, done.row_names
    data = run.data.evaluation_data(run.data.load())
    return type(run.method).load(done.folder).transform(data), data.row_names


def _print_help(names: list[str]) -> None:
    """Print the help of `unweave fit`, or of one method."""
    from unweave import catalog
    from unweave.data.readers.files import SUPPORTED_FORMATS

    if names:
        method = catalog.find(catalog.methods, names[0])
        print_text(f"`unweave fit {names[0]} DATA --help` also shows --out, --codes, --metrics, --json and --data.*\n")
        parse_options(method, prog=f"unweave fit {names[0]} DATA", args=["--help"])
    print_text("usage: unweave fit METHOD DATA [options]\n\nLearn factors and write the result to a run folder.\n")
    print_text("METHOD is one of these, or your own class as mine.py:MyMethod:")
    for name, method in catalog.methods().items():
        print_text(f"  {name:22}{docstring_summary(method)}")
    print_text(f"\nDATA is one of these, or the path of your own data ({SUPPORTED_FORMATS}), or mine.py:MyData:")
    for name, dataset in catalog.datasets().items():
        print_text(f"  {name:22}{docstring_summary(dataset)}")
    print_text("\n`unweave fit METHOD DATA --help` lists the options of both.")


def check_writable(path: Path) -> None:
    """Raise InputError if codes cannot be written to the path, before training and not after it."""
    if path.suffix.lower() not in CODE_FORMATS:
        raise InputError(f"{path}: codes are written as {', '.join(CODE_FORMATS)}")
    path.parent.mkdir(parents=True, exist_ok=True)
    if (path.exists() and not path.is_file()) or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InputError(f"cannot write {path}; choose another path")


def write_codes(path: Path, codes: np.ndarray, names: Sequence[str] | None = None, key: str = "file") -> None:
    """Write codes (n, d) as .csv, .parquet or .npy. Tables name each row in the column `key`, if it has a name."""
    import numpy as np
    import pandas as pd

    from unweave.utils.atomic import atomic_file
    from unweave.utils.tables import write_table

    if path.suffix.lower() == ".npy":
        with atomic_file(path) as file:
            np.save(file, codes)
        return
    table = pd.DataFrame(codes, columns=[f"code{i + 1}" for i in range(codes.shape[1])])
    if names is not None:
        table.insert(0, key, list(names))
    write_table(table, path)
