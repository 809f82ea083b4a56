"""The command `unweave`: demo | fit | draw | score | explain | select | study | paper | report | list | data."""

from __future__ import annotations

import os
import re
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

import tyro

from unweave import __version__
from unweave.cli.data import data
from unweave.cli.draw import draw
from unweave.cli.paper import paper
from unweave.cli.score import explain, runs_of, score, select
from unweave.cli.study import study
from unweave.cli.terminal import (
    exit_for_error,
    exit_with_message,
    first_line,
    parse_options,
    print_json,
    print_table,
    print_text,
    print_warning,
    progress,
)
from unweave.utils.errors import InputError, unknown

TRAINING = (["fit"], ["study"], ["paper"])  # commands that keep checkpoints

# torch and scikit-learn take seconds to import, so each command imports what it needs when it runs.


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run a command; exit with 0, with 2 for what the user can mend, with 1 for what we must."""
    args = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in args
    args = [a for a in args if a != "--debug"]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that half-written folders are cleared away
    warnings.showwarning = print_warning
    try:
        dispatch(args)
    except BrokenPipeError:  # the reader, `head` say, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except KeyboardInterrupt:
        again = "; run it again: training goes on from its last checkpoint, if it came to one"
        exit_with_message(f"stopped; nothing half-written is left behind{again * (args[:1] in TRAINING)}", 130)
    except (ValueError, OSError, MemoryError) as error:
        if debug:
            traceback.print_exc()
        exit_for_error(error)
    except Exception as error:
        if debug:
            traceback.print_exc()
        exit_with_message(f"a fault of unweave, not yours: {type(error).__name__}: {error} (--debug shows where)", 1)
    sys.exit(0)


def dispatch(args: list[str]) -> None:
    """Find the command and hand over the rest."""
    commands: dict[str, Callable[[list[str]], None]] = {
        "demo": demo, "fit": fit, "draw": draw, "score": score, "explain": explain, "select": select,
        "study": study, "paper": paper, "report": report, "list": list_, "data": data,
    }  # fmt: skip
    if not args or args[0] in ("-h", "--help", "help"):
        print_text("Unweave takes data apart into independent, interpretable factors, and says how well it did.\n")
        print_text("usage: unweave COMMAND ...\n")
        for name, command in commands.items():
            print_text(f"  {name:8}{first_line(command)}")
        print_text("\nStart with `unweave demo`, then try `unweave fit hessian-ica my.csv` on your own data.")
        print_text("`unweave COMMAND --help` explains a command; --debug shows the traceback of an error.")
    elif args[0] in ("-V", "--version", "version"):
        print_text(f"unweave {__version__}")
    elif args[0] not in commands:
        raise unknown("command", args[0], commands)
    else:
        commands[args[0]](args[1:])


# demo -----------------------------------------------------------------------------------------------------------


@dataclass(kw_only=True)
class Demo:
    """Recover the position of a moving square from its images alone, with PCA, ICA and HLLE+ICA; write a page."""

    out: Path = Path("report.html")
    """the page to write"""
    runs: Path = Path("runs/demo")
    """where runs are kept; finished ones are not repeated"""
    points: int = 3_000
    """number of images"""
    seed: int = 0
    """of the images and of the methods"""
    json: bool = False
    """print the table as JSON"""


def demo(args: list[str]) -> None:
    """recover factors from images that the package makes itself; write report.html"""
    options = parse_options(Demo, prog="unweave demo", args=args)
    from unweave import catalog
    from unweave.datasets.squares import SquaresXY
    from unweave.experiments.evaluation import DEFAULT_METRICS
    from unweave.experiments.run import Run
    from unweave.experiments.runner import execute_run
    from unweave.methods.linear import PCA, LinearICA
    from unweave.methods.spectral.hessian import HessianICA
    from unweave.report.page import write_report

    data = SquaresXY(points=options.points, seed=options.seed)
    methods = (PCA, LinearICA, HessianICA)
    runs = [Run(data, method(latent_dim=2, seed=options.seed)) for method in methods]
    folders = [options.runs / run.key for run in runs]
    with progress(quiet=options.json) as notify:
        scorers = catalog.find_metrics(DEFAULT_METRICS)
        for run, folder in zip(runs, folders, strict=True):
            execute_run(run, folder, scorers, notify)
        notify(f"writing {options.out}")
        page = write_report(folders, options.out)
    if options.json:
        return show(folders, "", as_json=True)
    show(folders, f"{options.points:,} images of a moving square, no labels used")
    print_text("mcc: 1 means that each code is one true factor. local-isometry: 1 means that near distances are kept.")
    return print_text(f"Open {page} in a browser.")


# fit ------------------------------------------------------------------------------------------------------------


def fit(args: list[str]) -> None:
    """learn factors: unweave fit METHOD DATA, e.g. unweave fit hessian-ica photos/ --latent-dim 3"""
    names: list[str] = []
    while args and not args[0].startswith("-") and len(names) < 2:
        names.append(args.pop(0))
    if len(names) < 2 and (not args or {"-h", "--help"} & set(args)):
        return _explain_fit(names)
    if len(names) < 2:
        raise InputError(f"name the method and the data first: unweave fit METHOD DATA {' '.join(args)}")
    from unweave import catalog
    from unweave.data.readers.tables import OwnData

    method, data = catalog.find(catalog.methods, names[0]), catalog.find_dataset(names[1])
    given = data(path=Path(names[1])) if data is OwnData else data()
    options = parse_options(
        fit_options(method, data),
        prog=f"unweave fit {' '.join(names)}",
        description=f"METHOD {names[0]}: {first_line(method)}\n\nDATA {names[1]}: {first_line(data)}",
        args=args,
        default=fit_options(method, data)(method=method(), data=given),
    )
    return _fit(options)


def fit_options(method: type, data: type) -> Any:
    """The method's fields as flags, the dataset's as --data. flags, and a few of our own."""
    from unweave.experiments.evaluation import DEFAULT_METRICS

    class Fit:
        out: Path | None = None
        """folder of the run (default: runs/METHOD-DATA-KEY); a finished run is not repeated"""
        codes: Path | None = None
        """also write the codes to this .csv, .parquet or .npy"""
        metrics: tuple[str, ...] = DEFAULT_METRICS
        """scores to compute, as far as the data have known factors"""
        json: bool = False
        """print the result as JSON"""

    # Assigned and not written above: names in this module's annotations are looked up only where they are global.
    Fit.__annotations__ = {"method": Annotated[method, tyro.conf.arg(name="")], "data": data} | Fit.__annotations__
    return dataclass(kw_only=True)(Fit)


def _fit(options: Any) -> None:
    from unweave import catalog
    from unweave.data.readers.tables import OwnData
    from unweave.experiments.run import Run
    from unweave.experiments.runner import execute_run

    run = Run(options.data, options.method)
    scorers = catalog.run_metrics(options.metrics)
    if options.codes is not None:
        check_target(options.codes)
    with progress(quiet=options.json) as notify:
        notify("reading the recipe")
        title = re.sub(r"[^\w.-]+", "-", Path(run.data.title()).stem).strip("-")
        name = f"{run.method.name}-{title}-{run.key}"
        folder = options.out or Path("runs") / name
        done = execute_run(run, folder, scorers, notify)
        if options.codes is not None:
            names = run.data.row_names() if isinstance(run.data, OwnData) else None
            write_codes(options.codes, done.codes, names)
    if options.json:
        return show([folder], "", as_json=True)
    show([folder], run.title())
    for said in done.diagnosis:
        print_text(f"- {said}")
    if not done.factors:
        print_text("No factors are known for these data, so only scores that need none were computed.")
    return print_text(f"The run is in {folder}; look at it with: unweave report {folder}")


def _explain_fit(names: list[str]) -> None:
    """`unweave fit --help`, and `unweave fit METHOD --help`."""
    from unweave import catalog
    from unweave.data.readers.tables import ALL

    if names:
        method = catalog.find(catalog.methods, names[0])
        print_text(f"`unweave fit {names[0]} DATA --help` also shows --out, --codes, --metrics, --json and --data.*\n")
        parse_options(method, prog=f"unweave fit {names[0]} DATA", args=["--help"])
    print_text("usage: unweave fit METHOD DATA [options]\n\nLearn factors, and keep the result as a run folder.\n")
    print_text("METHOD is one of these, or your own as mine.py:MyMethod:")
    for name, method in catalog.methods().items():
        print_text(f"  {name:22}{first_line(method)}")
    print_text(f"\nDATA is one of these, or the path of your own data ({ALL}), or mine.py:MyData:")
    for name, dataset in catalog.datasets().items():
        print_text(f"  {name:22}{first_line(dataset)}")
    print_text("\n`unweave fit METHOD DATA --help` lists the options of both.")


def check_target(path: Path) -> None:
    """Find out before the learning, not after it, that codes cannot be written."""
    if path.suffix.lower() not in WRITERS:
        raise InputError(f"{path}: codes are written as {', '.join(WRITERS)}")
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InputError(f"cannot write {path}; choose another place")


def write_codes(path: Path, codes: Any, names: list[str] | None = None) -> None:
    """Codes as a file of the user's choice; tables of images name the file of each row."""
    import pandas as pd

    from unweave.data.readers.tables import FILE

    table = pd.DataFrame(codes, columns=[f"code{i + 1}" for i in range(codes.shape[1])])
    if names is not None and path.suffix.lower() != ".npy":
        table.insert(0, FILE, names)
    WRITERS[path.suffix.lower()](table, path)


def _save_npy(table: Any, path: Path) -> None:
    import numpy as np

    np.save(path, table.to_numpy())


WRITERS: dict[str, Callable[[Any, Path], None]] = {
    ".csv": lambda table, path: table.to_csv(path, index=False),
    ".parquet": lambda table, path: table.to_parquet(path),
    ".npy": _save_npy,
}


# report and list ------------------------------------------------------------------------------------------------


@dataclass(kw_only=True)
class Report:
    """Write one self-contained HTML page about runs: summary, table, figures, provenance."""

    runs: tyro.conf.Positional[tuple[Path, ...]]
    """run folders, folders that hold runs, or study files"""
    out: Path = Path("report.html")
    """the page to write"""
    json: bool = False
    """print the table as JSON"""


def report(args: list[str]) -> None:
    """write one HTML page about runs: unweave report runs/"""
    options = parse_options(Report, prog="unweave report", args=args)
    if not options.runs:
        raise InputError("name run folders, or a folder that holds runs: unweave report runs/")
    from unweave.experiments.run import find_runs
    from unweave.report.page import write_report

    with progress(quiet=options.json) as notify:
        notify("reading runs")
        runs = [runs_of(path) for path in options.runs]
        page = write_report(runs, options.out, notify)
    if options.json:
        return show(find_runs(runs), "", as_json=True)
    return print_text(f"Open {page} in a browser.")


@dataclass(kw_only=True)
class List:
    """Show what there is: methods, datasets and metrics, with their papers."""

    kind: tyro.conf.Positional[Literal["all", "methods", "datasets", "metrics"]] = "all"
    """which of them"""
    json: bool = False
    """print as JSON"""


def list_(args: list[str]) -> None:
    """show the methods, datasets and metrics there are"""
    options = parse_options(List, prog="unweave list", args=args)
    from unweave import catalog

    methods = [
        {"name": n, "needs": m.needs, "summary": first_line(m), "paper": m.paper} for n, m in catalog.methods().items()
    ]
    datasets = [{"name": n, "summary": first_line(d), "paper": d.paper} for n, d in catalog.datasets().items()]
    metrics = [
        {
            "name": n,
            "variants": " ".join(filter(None, m.facts.variants)),
            "summary": first_line(m),
            "paper": m.facts.paper,
        }
        for n, m in catalog.metrics().items()
    ]
    listing = {"methods": methods, "datasets": datasets, "metrics": metrics}
    if options.kind != "all":
        listing = {options.kind: listing[options.kind]}
    if options.json:
        return print_json(listing)
    for kind, things in listing.items():
        print_table(list(things[0]), [list(thing.values()) for thing in things], kind)
    return print_text("Your own data need no name: give their path. Your own classes: mine.py:MyMethod.")


def show(folders: Sequence[Path], title: str, *, as_json: bool = False) -> None:
    """Runs as a table: what they are, what they scored, how long they took."""
    from unweave.experiments.run import read_run, records

    if as_json:
        return print_json([{"run": str(folder)} | row for folder, row in zip(folders, records(folders), strict=True)])
    runs = [read_run(folder) for folder in folders]
    columns = list(dict.fromkeys(column for run in runs for column in run.scores))
    rows = [
        [run.recipe["method"]["name"]]
        + [f"{run.scores[c]:.4f}" if c in run.scores else "" for c in columns]
        + [f"{run.env['seconds']:.1f}"]
        for run in runs
    ]
    return print_table(["method", *columns, "seconds"], rows, title, numbers=True)
