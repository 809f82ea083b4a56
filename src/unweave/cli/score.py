"""The commands `unweave score`, `unweave explain` and `unweave select`."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import tyro

from unweave.cli.terminal import STDOUT, first_line, parse_options, print_json, print_table, print_text, progress
from unweave.utils.errors import InputError

if TYPE_CHECKING:
    from unweave.metrics.contract import Metric

Notify = Callable[[str], None]

ROOMY = 110  # columns of a terminal in which numbers and their explanations have room side by side


@dataclass(kw_only=True)
class Score:
    """Score codes against known factors: those of a run, or arrays from any other tool."""

    codes: tyro.conf.Positional[Path]
    """a run folder, or a file of codes, one row per sample (.npy .npz .csv .parquet)"""
    factors: Path | None = None
    """file with the true factors, one row per sample, in the same order"""
    inputs: Path | None = None
    """file or image folder with the observations, for scores that need no factors (local-isometry)"""
    metrics: tuple[str, ...] = ()
    """scores to compute, e.g. mig 'dci[gbt]' (default: all that the given files allow, each in its usual variant)"""
    all: bool = False
    """all of them in all variants, whatever --metrics says; only the slow variants must be named"""
    chance: bool = False
    """also what the same codes score when shuffled against the factors"""
    bootstrap: int = 0
    """also a 95 % interval, from so many resamples of the rows (20 is a start; slow for dci)"""
    json: bool = False
    """print the scores as JSON"""


def score(args: list[str]) -> None:
    """score a run, or codes from any tool: unweave score codes.npy --factors factors.csv"""
    options = parse_options(Score, prog="unweave score", args=args)
    from unweave import catalog

    if options.bootstrap < 0:
        raise InputError(f"--bootstrap {options.bootstrap}: expected a number of resamples, 20 say")
    names = catalog.metrics() if options.all or not options.metrics else options.metrics
    scorers = catalog.find_metrics(names, every=options.all)
    with progress(quiet=options.json) as notify:
        notify(f"scoring {options.codes}")
        found = _of_run(options, scorers, notify) if _is_run(options.codes) else _of_files(options, scorers, notify)
    if options.json:
        more = options.chance or options.bootstrap
        plain = {n: {k: v if math.isfinite(v) else None for k, v in row.items()} for n, row in found.items()}
        return print_json(plain if more else {name: row["value"] for name, row in plain.items()})
    return _say_scores(found, scorers, str(options.codes))


def _is_run(path: Path) -> bool:
    is_run = (path / "run.json").is_file()
    if path.is_dir() and not is_run:
        raise InputError(f"{path} is not a run folder (it has no run.json)")
    return is_run


def _say_scores(found: dict[str, dict[str, float]], scorers: dict[str, Metric], title: str) -> None:
    extra = [column for column in ("chance", "low", "high") if any(column in row for row in found.values())]
    rows, said = [], ""
    for name, row in found.items():
        scorer = scorers.get(name.partition(".")[0])
        best = row.get("best", math.nan)
        numbers = [f"{row['value']:.4f}", f"{best:g}" if math.isfinite(best) else ""]
        text = first_line(scorer)
        rows.append(
            [name, *numbers, *(f"{row[c]:.4f}" if c in row else "" for c in extra), "" if text == said else text]
        )
        said = text
    columns = ["score", "value", "best", *extra, "what it says"]
    most = len(columns) if not extra or STDOUT.width >= ROOMY else -1  # a column of single letters says nothing
    print_table(columns[:most], [row[:most] for row in rows], title)


def _of_run(options: Score, scorers: dict[str, Metric], notify: Notify) -> dict[str, dict[str, float]]:
    """The scores that a run has kept, and those that follow from its codes and what it knows of the factors."""
    import torch

    from unweave.catalog import load
    from unweave.experiments.run import read_run
    from unweave.metrics.evaluate import MetricInputs

    run = read_run(options.codes)
    if options.factors is not None or options.inputs is not None:
        return score_codes(run.codes, _truths(options, run.codes), options, scorers, notify)
    kept: dict[str, dict[str, float]] = {}
    if not (options.chance or options.bootstrap):
        best = {name: scorer.facts.best for name, scorer in scorers.items()}
        known = {k: v for k, v in run.scores.items() if k.partition(".")[0] in scorers}
        kept = {k: {"value": v, "best": best[k.partition(".")[0]]} for k, v in known.items()}
        if not options.all and not options.metrics:
            return kept
    done = {k.partition(".")[0] for k in kept}
    rest = {name: scorer for name, scorer in scorers.items() if name not in done}
    model = None
    if any(s.facts.truth == "decoder" for s in rest.values()):
        with contextlib.suppress(InputError):  # a method of the user's own, which a folder alone does not tell
            model = load(options.codes)
    truth = MetricInputs(None, torch.tensor(run.truth), run.factors, model)
    return kept | (score_codes(run.codes, truth, options, rest, notify, least=0 if kept else 1) if rest else {})


def _of_files(options: Score, scorers: dict[str, Metric], notify: Notify) -> dict[str, dict[str, float]]:
    """Every score that the files at hand allow."""
    from unweave.data.readers.tables import read_codes

    alone = bool(options.metrics) and all(scorer.facts.truth == "nothing" for scorer in scorers.values())
    if options.factors is None and options.inputs is None and not alone:
        raise InputError("nothing to compare the codes with: give --factors FILE, or --inputs FILE for local-isometry")
    codes = read_codes(options.codes)
    return score_codes(codes, _truths(options, codes), options, scorers, notify)


def score_codes(
    codes: Any, truth: Any, options: Score, scorers: dict[str, Metric], notify: Notify, least: int = 1
) -> dict[str, dict[str, float]]:
    """Every score that the truth allows: its value and, if asked for, its chance level and interval."""
    from unweave.metrics.uncertainty import score_table

    found: dict[str, dict[str, float]] = {}
    insist = bool(options.metrics) and not options.all
    for name, scorer in scorers.items():
        if not truth.has(scorer):
            if insist:
                raise InputError(_lacking(name, scorer, options.codes))
            continue
        notify(f"scoring {options.codes}: {name}")
        try:
            found |= score_table(
                name, scorer, truth.of(scorer), codes, chance=options.chance, bootstrap=options.bootstrap
            )
        except InputError as error:
            if insist:
                raise
            warnings.warn(f"{name} was not computed: {error}", stacklevel=2)
    if len(found) < least:
        raise InputError(f"none of {', '.join(scorers)} fits these files: are all factors classes without an order?")
    return found


def _lacking(name: str, scorer: Metric, codes: Path) -> str:
    """Why a score cannot be had from the files."""
    if _is_run(codes) and scorer.facts.truth in ("factors", "inputs"):
        return (
            f"{codes} has no {name}: its data have no factors of that kind, or it was not asked for; "
            "repeat its `unweave fit` with --metrics, or give --factors FILE or --inputs FILE"
        )
    return {
        "decoder": f"{name} exchanges codes and decodes them: it wants a run folder whose method has a decoder",
        "labels": f"{name} wants a classifier's predictions: call unweave.metrics on them",
        "runs": f"{name} compares runs: unweave select RUNS",
    }.get(scorer.facts.truth, f"{name} needs --{scorer.facts.truth} FILE, with values that can be put in order")


def _truths(options: Score, codes: Any) -> Any:
    """What the files know; a mistake in the files themselves is said once, and ends it."""
    import torch

    from unweave.data.readers.tables import read
    from unweave.metrics.contract import validate_pair
    from unweave.metrics.evaluate import MetricInputs

    coded = None if options.factors is None else _read_factors(options.factors)
    inputs = None if options.inputs is None else read(options.inputs)[0]
    if coded is not None:
        validate_pair(coded.c, codes)
    if inputs is not None:
        validate_pair(inputs, codes, what="inputs")
    c = torch.zeros(len(codes), 0) if coded is None else coded.c
    return MetricInputs(inputs, c, () if coded is None else coded.factors)


def _read_factors(path: Path) -> Any:
    """A file of factors, with their names and kinds."""
    from unweave.data.arrays import as_data
    from unweave.data.readers.tables import read_factors

    table = read_factors(path)
    return as_data(table.iloc[:, :0].assign(rows=0), table)


# explain --------------------------------------------------------------------------------------------------------


@dataclass(kw_only=True)
class Explain:
    """Say why scores are low: which codes are dead, doubled or mixed, which factors are split or missing."""

    codes: tyro.conf.Positional[Path]
    """a run folder, or a file of codes, one row per sample (.npy .npz .csv .parquet)"""
    factors: Path | None = None
    """file with the true factors, one row per sample, in the same order (a run knows its own)"""
    out: Path = Path("explain.svg")
    """the figure to write: factor-code information and importance (.svg .png .pdf)"""
    json: bool = False
    """print findings and matrices as JSON"""


def explain(args: list[str]) -> None:
    """say why a score is low: unweave explain codes.npy --factors factors.csv"""
    options = parse_options(Explain, prog="unweave explain", args=args)
    if options.out.suffix.lower() not in (".svg", ".png", ".pdf"):
        raise InputError(f"{options.out}: figures are written as .svg, .png or .pdf")
    from unweave.metrics.explain import explain as explained
    from unweave.report.figures.matrices import draw_matrices
    from unweave.report.figures.style import save_figure

    with progress(quiet=options.json) as notify:
        notify(f"looking at {options.codes}")
        values, codes, names = _known_codes(options)
        found = explained(values, codes, names=names)
        save_figure(draw_matrices(found), options.out)
    if options.json:
        told, importance = found.information.tolist(), found.importance.tolist()
        return print_json({"factors": names, "findings": found.findings, "information": told, "importance": importance})
    for finding in found.findings:
        print_text(f"- {finding}")
    return print_text(f"The factor-code matrices are drawn in {options.out}.")


def _known_codes(options: Explain) -> tuple[Any, Any, list[str]]:
    """Factors (n, k), codes (n, d), and the factors' names."""
    from unweave.data.readers.tables import read_codes
    from unweave.experiments.run import read_run

    run = read_run(options.codes) if _is_run(options.codes) else None
    codes = read_codes(options.codes) if run is None else run.codes
    if options.factors is not None:
        coded = _read_factors(options.factors)
        return coded.c, codes, [f.name for f in coded.factors]
    kept = [j for j, f in enumerate(run.factors) if not f.noise] if run is not None else []
    if run is None or not kept:
        raise InputError(f"which factors should {options.codes} be compared with? give --factors FILE")
    return run.truth[:, kept], codes, [run.factors[j].name for j in kept]


# select ---------------------------------------------------------------------------------------------------------


By = Literal["udr", "model-centrality", "translation-difficulty", "likelihood", "isometry"]


@dataclass(kw_only=True)
class Select:
    """Rank runs on the same data without any labels; where some have scores by labels, say how well both agree."""

    runs: tyro.conf.Positional[tuple[Path, ...]]
    """run folders, folders that hold runs, or study files; five runs or more make sense"""
    by: tuple[By, ...] = ("udr", "model-centrality")
    """what to trust; the first decides the order. udr, model-centrality: codes that agree with those of other runs.
    translation-difficulty: codes whose exchange is easily learned. likelihood: the bound at the end of the training.
    isometry: near distances that are kept"""
    json: bool = False
    """print the table as JSON"""


def select(args: list[str]) -> None:
    """rank runs without labels, by how well their codes agree: unweave select runs/"""
    options = parse_options(Select, prog="unweave select", args=args)
    if not options.runs or not options.by:
        raise InputError("name run folders, or a folder that holds runs: unweave select runs/ --by udr")
    from unweave.experiments.run import find_runs, read_run
    from unweave.experiments.selection import agreement, trust_scores

    with progress(quiet=options.json) as notify:
        notify("reading runs")
        runs = [read_run(folder) for folder in find_runs(map(runs_of, options.runs))]
        columns = {}
        for name in options.by:
            notify(f"comparing {len(runs)} runs by {name}")
            columns[name] = trust_scores(runs, name)
    first = columns[options.by[0]]
    order = sorted(range(len(runs)), key=lambda i: -first[i] if first[i] == first[i] else float("inf"))  # NaN last
    known = {name: agreement(runs, column) for name, column in columns.items()}
    table = [
        {"run": str(runs[i].folder), "method": runs[i].recipe["method"]["name"]}
        | {name: float(column[i]) for name, column in columns.items()}
        for i in order
    ]
    if options.json:
        return print_json({"runs": table, "agreement": known})
    print_table(
        list(table[0]),
        [[v if isinstance(v, str) else f"{v:.4g}" for v in row.values()] for row in table],
        "most trusted first; larger is better",
    )
    for name, found in known.items():
        told = ", ".join(f"{score} {value:.2f}" for score, value in found.items())
        print_text(f"Rank correlation of {name} with scores by labels: {told or 'there are none, or too few runs'}.")
    return None


def runs_of(path: Path) -> Path:
    """Where the runs of a study file are, unless it was told otherwise; a folder as it is."""
    return Path("runs") / path.stem if path.suffix == ".py" else path
