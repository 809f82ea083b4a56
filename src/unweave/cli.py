"""The command `unweave`: demo | fit | score | report | list."""

from __future__ import annotations

import json
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

import tyro
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table as Sheet

from . import __version__
from .errors import InputError, kebab, unknown

if TYPE_CHECKING:
    import pandas as pd

# torch and scikit-learn take seconds to import, so the commands import what they need when they run.

OUT, ERR = Console(), Console(stderr=True)


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run a command; exit with 0, with 2 for what the user can mend, with 1 for what we must."""
    args = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in args
    args = [a for a in args if a != "--debug"]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that half-written folders are cleared away
    warnings.showwarning = _show_warning
    try:
        dispatch(args)
    except KeyboardInterrupt:
        _stop("stopped; what was not finished has left nothing behind", 130)
    except (ValueError, OSError, MemoryError) as error:
        if debug:
            raise
        text = "not enough memory; use fewer or smaller observations" if isinstance(error, MemoryError) else str(error)
        _stop(text or type(error).__name__, 2)
    except Exception as error:
        if debug:
            raise
        _stop(f"a fault of unweave, not yours: {type(error).__name__}: {error} (--debug shows where)", 1)
    sys.exit(0)


def dispatch(args: list[str]) -> None:
    """Find the command and hand over the rest."""
    commands: dict[str, Callable[[list[str]], None]] = {
        "demo": demo, "fit": fit, "score": score, "report": report, "list": list_,
    }  # fmt: skip
    if not args or args[0] in ("-h", "--help", "help"):
        OUT.print(_overview(commands), highlight=False)
    elif args[0] in ("-V", "--version", "version"):
        OUT.print(f"unweave {__version__}", highlight=False)
    elif args[0] not in commands:
        raise unknown("command", args[0], commands)
    else:
        commands[args[0]](args[1:])


def _overview(commands: dict[str, Callable[[list[str]], None]]) -> str:
    lines = [f"  {name:8}{(function.__doc__ or '').splitlines()[0]}" for name, function in commands.items()]
    return "\n".join(
        [
            "Unweave takes data apart into independent, interpretable factors, and says how well it did.",
            "",
            "usage: unweave COMMAND ...",
            "",
            *lines,
            "",
            "Start with `unweave demo`, then `unweave fit hessian-ica my.csv` on your own data.",
            "`unweave COMMAND --help` explains a command; --debug shows the traceback of an error.",
        ]
    ).replace("[", r"\[")


# Commands -------------------------------------------------------------------------------------------------------


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
    """of the images and the methods"""
    json: bool = False
    """print the table as JSON"""


def demo(args: list[str]) -> None:
    """recover factors from images the package makes itself, print a table, write report.html"""
    options = tyro.cli(Demo, prog="unweave demo", args=args)
    from .datasets.squares import SquaresXY
    from .methods.hessian import HessianICA
    from .methods.linear import PCA, LinearICA
    from .report import write_report
    from .study import Run, execute

    data = SquaresXY(points=options.points, seed=options.seed)
    runs = [Run(data, method(latent_dim=2, seed=options.seed)) for method in (PCA, LinearICA, HessianICA)]
    with progress(quiet=options.json) as notify:
        table = execute(runs, options.runs, notify=notify)
        notify(f"writing {options.out}")
        page = write_report([options.runs / run.key for run in runs], options.out)
    if options.json:
        return _print_json(table.to_dict("records"))
    show(table, f"{options.points:,} images of a square, moved in x and y; no labels were used")
    OUT.print("mcc: 1 means that each code is one true factor. local-isometry: 1 means that near distances are kept.")
    OUT.print(f"Open [bold]{page}[/bold] in a browser.")
    return None


def fit(args: list[str]) -> None:
    """learn factors: unweave fit METHOD DATA, e.g. unweave fit hessian-ica photos/ --latent-dim 3"""
    names = []
    while args and not args[0].startswith("-") and len(names) < 2:
        names.append(args.pop(0))
    if len(names) < 2 and (not args or {"-h", "--help"} & set(args)):
        return _explain_fit(names)
    if len(names) < 2:
        raise InputError(f"name the method and the data first: unweave fit METHOD DATA {' '.join(args)}")
    from . import catalog
    from .files import OwnData

    method, data = catalog.find(catalog.methods, names[0]), catalog.find_data(names[1])
    options = tyro.cli(
        _fit_options(method, data, data(path=Path(names[1])) if data is OwnData else data()),
        prog=f"unweave fit {' '.join(names)}",
        description=f"METHOD {names[0]}: {_summary(method)}\nDATA {names[1]}: {_summary(data)}",
        args=args,
    )
    return _fit(options)


def _fit_options(method: type, data: type, default: Any) -> type:
    """The method's fields as flags, the dataset's as --data. flags, and a few of our own."""

    @dataclass(kw_only=True)
    class Fit:
        method_: Annotated[method, tyro.conf.arg(name="")]  # type: ignore[valid-type]
        data: data = field(default=default)  # type: ignore[valid-type]
        out: Path | None = None
        """folder of the run (default: runs/METHOD-DATA-KEY)"""
        codes: Path | None = None
        """also write the codes to this .csv, .parquet or .npy"""
        metrics: tuple[str, ...] = ("mcc", "local-isometry")
        """scores to compute, as far as the data have known factors"""
        json: bool = False
        """print the result as JSON"""

    Fit.__annotations__ |= {"method_": Annotated[method, tyro.conf.arg(name="")], "data": data}
    return Fit


def _fit(options: Any) -> None:
    from . import catalog
    from .study import Run, perform, rows

    run = Run(options.data, options.method_)
    scorers = {name: catalog.find(catalog.metrics, name) for name in options.metrics}
    if options.codes is not None and options.codes.suffix.lower() not in WRITERS:
        raise InputError(f"{options.codes}: codes are written as {', '.join(WRITERS)}")
    with progress(quiet=options.json) as notify:
        notify("reading the recipe")
        name = f"{kebab(type(run.method).__name__)}-{Path(run.data.title()).stem}-{run.key}"
        folder = options.out or Path("runs") / name
        done = perform(run, folder, scorers, notify)
        if options.codes is not None:
            _write_codes(options.codes, done.codes)
    table = rows([folder])
    if options.json:
        return _print_json({"run": str(folder), **table.to_dict("records")[0]})
    show(table, run.title())
    if not done.factors:
        OUT.print("No factors are known for these data, so only label-free scores were computed.")
    OUT.print(f"Run in [bold]{folder}[/bold]; see it with: unweave report {folder}", highlight=False)
    return None


def _explain_fit(names: list[str]) -> None:
    """`unweave fit --help`, and `unweave fit METHOD --help`."""
    from . import catalog
    from .files import ALL

    if names:
        method = catalog.find(catalog.methods, names[0])
        tyro.cli(method, prog=f"unweave fit {names[0]} DATA", description=f"{method.__doc__}", args=["--help"])
    OUT.print("usage: unweave fit METHOD DATA \\[options]\n\nLearn factors and keep the result as a run folder.\n")
    OUT.print("METHOD is one of these, or your own as mine.py:MyMethod")
    for name, thing in catalog.methods().items():
        OUT.print(f"  {name:18}{_summary(thing)}", highlight=False)
    OUT.print(f"\nDATA is one of these, or the path of your own data ({ALL}), or mine.py:MyData")
    for name, thing in catalog.datasets().items():
        OUT.print(f"  {name:18}{_summary(thing)}", highlight=False)
    OUT.print("\n`unweave fit METHOD DATA --help` lists the options of both.", highlight=False)


@dataclass(kw_only=True)
class Score:
    """Score codes against known factors: those of a run, or arrays from any other tool."""

    codes: tyro.conf.Positional[Path]
    """a run folder, or a file of codes, one row per sample (.npy .npz .csv .parquet)"""
    factors: Path | None = None
    """file with the true factors, one row per sample, in the same order"""
    inputs: Path | None = None
    """file or image folder with the observations, for scores that need no labels (local-isometry)"""
    metrics: tuple[str, ...] = ()
    """scores to compute (default: all that the given files allow)"""
    json: bool = False
    """print the scores as JSON"""


def score(args: list[str]) -> None:
    """score a run, or codes from any tool: unweave score codes.npy --factors factors.csv"""
    options = tyro.cli(Score, prog="unweave score", args=args)
    from . import catalog
    from .study import read_run

    scorers = {name: catalog.find(catalog.metrics, name) for name in options.metrics or catalog.metrics()}
    if (options.codes / "run.json").is_file():
        run = read_run(options.codes)
        scores = {k: v for k, v in run.scores.items() if k.split(".")[0] in scorers}
        if options.factors is not None:
            scores = score_files(run.codes, options, scorers)
        absent = [m for m in options.metrics if not any(k.split(".")[0] == m for k in scores)]
        if absent:
            raise InputError(f"{options.codes} has no {', '.join(absent)}: run its `unweave fit` again with --metrics")
    else:
        if options.codes.is_dir():
            raise InputError(f"{options.codes} is not a run folder (it has no run.json)")
        with progress(quiet=options.json) as notify:
            notify(f"scoring {options.codes}")
            scores = score_files(_matrix(options.codes), options, scorers)
    if options.json:
        return _print_json(scores)
    sheet = Sheet("score", "value", "best", "what it says", title=f"{options.codes}")
    for name, value in scores.items():
        found = scorers.get(name.split(".")[0])
        sheet.add_row(name, f"{value:.4f}", f"{found.facts.best:g}" if found else "", _summary(found))
    OUT.print(sheet)
    return None


def score_files(codes: Any, options: Score, scorers: dict[str, Any]) -> dict[str, float]:
    """Every score that the files at hand allow."""
    from .data import as_data
    from .files import read
    from .study import flatten

    if options.factors is None and options.inputs is None:
        raise InputError("nothing to compare the codes with: give --factors FILE, or --inputs FILE for local-isometry")
    truth = None
    if options.factors is not None:
        x, extra = read(options.factors, factors=_text_columns(options.factors))
        import pandas as pd

        truth = as_data(codes, pd.concat([pd.DataFrame(x), extra], axis=1) if len(extra.columns) else pd.DataFrame(x))
    inputs = None if options.inputs is None else read(options.inputs)[0]
    scores: dict[str, float] = {}
    for name, scorer in scorers.items():
        needed = inputs if scorer.facts.truth == "inputs" else truth
        if needed is None:
            if options.metrics:
                raise InputError(f"{name} needs --{scorer.facts.truth} FILE")
            continue
        if scorer.facts.truth == "factors":
            fit = [j for j, f in enumerate(truth.factors) if f.kind in scorer.facts.kinds]  # type: ignore[union-attr]
            needed = truth.c[:, fit] if fit else None  # type: ignore[union-attr]
        if needed is not None:
            scores |= flatten(name, scorer(needed, codes))
    return scores


def _text_columns(path: Path) -> tuple[str, ...]:
    """Columns of a table of factors that hold classes by name."""
    from .files import TABLES, read_table

    if path.suffix.lower() not in TABLES or not path.exists():
        return ()
    table = read_table(path)
    return tuple(str(name) for name in table.columns if table[name].dtype.kind not in "fiu")


def _matrix(path: Path) -> Any:
    from .files import read

    codes, _ = read(path)
    return codes.to_numpy(float) if hasattr(codes, "to_numpy") else codes


@dataclass(kw_only=True)
class Report:
    """Write one self-contained HTML page about runs: summary, table, figures, provenance."""

    runs: tyro.conf.Positional[tuple[Path, ...]]
    """run folders, or folders that hold runs"""
    out: Path = Path("report.html")
    """the page to write"""
    json: bool = False
    """print the table as JSON"""


def report(args: list[str]) -> None:
    """write one HTML page about runs: unweave report runs/"""
    options = tyro.cli(Report, prog="unweave report", args=args)
    if not options.runs:
        raise InputError("name run folders, or a folder that holds runs: unweave report runs/")
    from .report import write_report
    from .study import find_runs, rows

    with progress(quiet=options.json) as notify:
        notify("drawing")
        page = write_report(options.runs, options.out)
    if options.json:
        return _print_json({"page": str(page), "runs": rows(find_runs(options.runs)).to_dict("records")})
    OUT.print(f"Open [bold]{page}[/bold] in a browser.")
    return None


@dataclass(kw_only=True)
class List:
    """Show what there is: methods, datasets and metrics, with their papers."""

    kind: tyro.conf.Positional[Literal["all", "methods", "datasets", "metrics"]] = "all"
    """which of them"""
    json: bool = False
    """print as JSON"""


def list_(args: list[str]) -> None:
    """show the methods, datasets and metrics there are"""
    options = tyro.cli(List, prog="unweave list", args=args)
    from . import catalog

    kinds: dict[str, Callable[[], dict[str, Any]]] = {
        "methods": catalog.methods, "datasets": catalog.datasets, "metrics": catalog.metrics,
    }  # fmt: skip
    listing = {
        kind: [
            {"name": n, "summary": _summary(t), "paper": t.facts.paper if kind == "metrics" else t.paper}
            for n, t in find().items()
        ]
        for kind, find in kinds.items()
        if options.kind in ("all", kind)
    }
    if options.json:
        return _print_json(listing)
    for kind, things in listing.items():
        sheet = Sheet("name", "what it is", "paper", title=kind, title_justify="left")
        for thing in things:
            sheet.add_row(*thing.values())
        OUT.print(sheet)
    return None


# Helpers --------------------------------------------------------------------------------------------------------

WRITERS: dict[str, Callable[[Any, Path], None]] = {
    ".csv": lambda table, path: table.to_csv(path, index=False),
    ".parquet": lambda table, path: table.to_parquet(path),
    ".npy": lambda table, path: _save_npy(table, path),
}


def _save_npy(table: Any, path: Path) -> None:
    import numpy as np

    np.save(path, table.to_numpy())


def _write_codes(path: Path, codes: Any) -> None:
    import pandas as pd

    table = pd.DataFrame(codes, columns=[f"code{i + 1}" for i in range(codes.shape[1])])
    path.parent.mkdir(parents=True, exist_ok=True)
    WRITERS[path.suffix.lower()](table, path)


def show(table: pd.DataFrame, title: str) -> None:
    """Runs as a table: what they are, and what they scored."""
    scores = [c for c in table.columns[table.columns.get_loc("seed") + 1 :] if c not in ("samples",)]
    wanted = ["method", *[c for c in table.columns if c in ("mcc", "local-isometry") or ("." in c)], "seconds"]
    columns = list(dict.fromkeys(c for c in wanted if c in table.columns)) if scores else wanted
    sheet = Sheet(*columns, title=title)
    for column in sheet.columns[1:]:
        column.justify = "right"
    for _, row in table[columns].iterrows():
        sheet.add_row(*(v if isinstance(v, str) else f"{v:.1f}" if c == "seconds" else f"{v:.4f}" for c, v in row.items()))
    OUT.print(sheet)


@contextmanager
def progress(*, quiet: bool) -> Iterator[Callable[[str], None]]:
    """A line that says what is being done and for how long, on stderr; plain lines where that is not a terminal."""
    if quiet or not ERR.is_terminal:
        yield (lambda text: None) if quiet else (lambda text: ERR.print(text, highlight=False, markup=False))
        return
    with Progress(
        SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn(), console=ERR, transient=True
    ) as bar:
        task = bar.add_task("starting", total=None)
        yield lambda text: bar.update(task, description=text)


def _summary(thing: Any) -> str:
    """The first line of a docstring."""
    return ((thing.__doc__ or "").strip().split("\n")[0]).strip()


def _print_json(value: Any) -> None:
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False, default=str) + "\n")


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    ERR.print(f"unweave: warning: {' '.join(str(message).split())}", highlight=False, markup=False, soft_wrap=True)


def _stop(text: str, code: int) -> NoReturn:
    ERR.print(f"unweave: {' '.join(text.split())}", highlight=False, markup=False, soft_wrap=True)
    sys.exit(code)
