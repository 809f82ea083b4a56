"""The command `unweave score`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tyro

from .errors import InputError
from .terminal import parsed, progress, say_json, say_table, summary

if TYPE_CHECKING:
    from .scoring import Metric


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
    """scores to compute (default: all that the given files allow)"""
    all: bool = False
    """all of them, whatever --metrics says"""
    chance: bool = False
    """also what the same codes score when shuffled against the factors"""
    bootstrap: int = 0
    """also a 95 % interval, from so many resamples of the rows (20 is a start; slow for dci)"""
    json: bool = False
    """print the scores as JSON"""


def score(args: list[str]) -> None:
    """score a run, or codes from any tool: unweave score codes.npy --factors factors.csv"""
    options = parsed(Score, prog="unweave score", args=args)
    from . import catalog
    from .files import read_codes
    from .study import read_run

    scorers = catalog.find_metrics(catalog.metrics() if options.all or not options.metrics else options.metrics)
    is_run = (options.codes / "run.json").is_file()
    if options.codes.is_dir() and not is_run:
        raise InputError(f"{options.codes} is not a run folder (it has no run.json)")
    with progress(quiet=options.json) as notify:
        notify(f"scoring {options.codes}")
        if is_run and options.factors is None and options.inputs is None:
            found = {name: {"value": value} for name, value in _of_run(options, list(scorers)).items()}
        else:
            codes = read_run(options.codes).codes if is_run else read_codes(options.codes)
            found = score_files(codes, options, scorers, notify)
    if options.json:
        plain = options.chance or options.bootstrap
        return say_json(found if plain else {name: row["value"] for name, row in found.items()})
    return _say_scores(found, scorers, str(options.codes))


def _say_scores(found: dict[str, dict[str, float]], scorers: dict[str, Metric], title: str) -> None:
    extra = [column for column in ("chance", "low", "high") if any(column in row for row in found.values())]
    rows = []
    for name, row in found.items():
        scorer = scorers.get(name.partition(".")[0])
        numbers = [f"{row['value']:.4f}", f"{scorer.facts.best:g}" if scorer else ""]
        rows.append([name, *numbers, *(f"{row[c]:.4f}" if c in row else "" for c in extra), summary(scorer)])
    say_table(["score", "value", "best", *extra, "what it says"], rows, title)


def _of_run(options: Score, names: list[str]) -> dict[str, float]:
    """The scores that a run has kept."""
    from .study import read_run

    scores = {k: v for k, v in read_run(options.codes).scores.items() if k.partition(".")[0] in names}
    absent = [name for name in names if not any(k.partition(".")[0] == name for k in scores)]
    if options.metrics and absent:
        raise InputError(
            f"{options.codes} has no {', '.join(absent)}: its data have no factors of that kind, or it was not asked "
            "for; repeat its `unweave fit` with --metrics, or give --factors FILE"
        )
    return scores


def score_files(
    codes: Any, options: Score, scorers: dict[str, Metric], notify: Callable[[str], None]
) -> dict[str, dict[str, float]]:
    """Every score that the files at hand allow: its value and, if asked for, its chance level and interval."""
    from .data import as_data
    from .files import read, read_factors
    from .scoring import checked
    from .study import measured

    if options.factors is None and options.inputs is None:
        raise InputError("nothing to compare the codes with: give --factors FILE, or --inputs FILE for local-isometry")
    table = None if options.factors is None else read_factors(options.factors)
    coded: Any = None if table is None else as_data(table.iloc[:, :0].assign(rows=0), table)
    inputs = None if options.inputs is None else read(options.inputs)[0]
    # Once for all scores: a mistake in the files themselves is said once, and ends it.
    if coded is not None:
        checked(coded.c, codes)
    if inputs is not None:
        checked(inputs, codes, what="inputs")
    found: dict[str, dict[str, float]] = {}
    for name, scorer in scorers.items():
        truth: Any = inputs
        if scorer.facts.truth == "factors":
            fit = [j for j, f in enumerate(coded.factors if coded else ()) if f.kind in scorer.facts.kinds]
            truth = measured(coded.c, coded.factors, fit) if fit else None
        if truth is None and options.metrics and not options.all:
            raise InputError(f"{name} needs --{scorer.facts.truth} FILE, with values that can be put in order")
        if truth is None:
            continue
        notify(f"scoring {options.codes}: {name}")
        try:
            found |= _scored(name, scorer, truth, codes, options)
        except InputError as error:
            if options.metrics and not options.all:
                raise
            warnings.warn(f"{name} was not computed: {error}", stacklevel=2)
    if not found:
        raise InputError(f"none of {', '.join(scorers)} fits these files: are all factors classes without an order?")
    return found


def _scored(name: str, scorer: Metric, truth: Any, codes: Any, options: Score) -> dict[str, dict[str, float]]:
    from .scoring import chance_level, interval, numbers

    base = chance_level(scorer, truth, codes) if options.chance else {}
    bounds = interval(scorer, truth, codes, repeats=options.bootstrap) if options.bootstrap else {}
    found = {}
    for part, value in numbers(scorer(truth, codes)).items():
        row = {"value": value} | ({"chance": base[part]} if options.chance else {})
        row |= dict(zip(("low", "high"), bounds[part], strict=True)) if options.bootstrap else {}
        found[f"{name}.{part}" if part else name] = row
    return found
