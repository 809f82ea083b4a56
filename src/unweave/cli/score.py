"""The command `unweave score`: metrics of a run, or of codes from any other tool."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tyro

from unweave.cli.explain import read_factor_data
from unweave.cli.progress import show_progress
from unweave.cli.terminal import STDOUT, docstring_summary, is_run, parse_options, print_json, print_table
from unweave.utils.errors import InputError

if TYPE_CHECKING:
    from unweave.metrics.contract import Metric

Notify = Callable[[str], None]
ScoreRows = dict[str, dict[str, float]]  # score -> value, best, and if requested chance, low, high

MIN_WIDTH_FOR_TEXT = 110  # columns of a terminal that has room for intervals and explanations


@dataclass(kw_only=True)
class Score:
    """Score codes against known factors: those of a run, or arrays from any other tool."""

    codes: tyro.conf.Positional[Path]
    """A run folder, or a file of codes with one row per sample (.npy .npz .csv .parquet)."""
    factors: Path | None = None
    """File with the true factors, one row per sample, in the same order."""
    inputs: Path | None = None
    """File or image folder with the observations, for metrics that need no factors (local-isometry)."""
    metrics: tuple[str, ...] = ()
    """Metrics to compute, e.g. mig 'dci[gbt]' (default: all that the files allow, in their default variants)."""
    all: bool = False
    """Compute all metrics in all variants except the slow ones. Overrides --metrics."""
    chance: bool = False
    """Also compute chance levels: the scores of codes that are shuffled against the factors."""
    bootstrap: int = 0
    """Also compute 95 % bootstrap intervals from this many resamples of the rows, e.g. 20 (slow for dci)."""
    json: bool = False
    """Print the scores as JSON."""


def score(args: list[str]) -> None:
    """Score a run, or codes from any tool: unweave score codes.npy --factors factors.csv."""
    options = parse_options(Score, prog="unweave score", args=args)
    from unweave import catalog

    if options.bootstrap < 0:
        raise InputError(f"--bootstrap {options.bootstrap}: expected a number of resamples, e.g. 20")
    names = catalog.metrics() if options.all or not options.metrics else options.metrics
    metrics = catalog.find_metrics(names, every=options.all)
    with show_progress(quiet=options.json) as progress:
        progress.message(f"scoring {options.codes}")
        compute = score_run if is_run(options.codes) else score_files
        rows = compute(options, metrics, progress.message)
    if options.json:
        has_details = options.chance or options.bootstrap
        finite = {name: {k: v if math.isfinite(v) else None for k, v in row.items()} for name, row in rows.items()}
        return print_json(finite if has_details else {name: row["value"] for name, row in finite.items()})
    return _print_scores(rows, metrics, str(options.codes))


def _print_scores(scores: ScoreRows, metrics: dict[str, Metric], title: str) -> None:
    extra = [column for column in ("chance", "low", "high") if any(column in row for row in scores.values())]
    rows, previous = [], ""
    for name, row in scores.items():
        best = row.get("best", math.nan)
        numbers = [f"{row['value']:.4f}", f"{best:g}" if math.isfinite(best) else ""]
        numbers += [f"{row[column]:.4f}" if column in row else "" for column in extra]
        text = docstring_summary(metrics.get(name.partition(".")[0]))
        rows.append([name, *numbers, "" if text == previous else text])
        previous = text
    columns = ["score", "value", "best", *extra, "meaning"]
    count = len(columns) if not extra or STDOUT.width >= MIN_WIDTH_FOR_TEXT else len(columns) - 1
    print_table(columns[:count], [row[:count] for row in rows], title)


def score_run(options: Score, metrics: dict[str, Metric], notify: Notify) -> ScoreRows:
    """Return the stored scores of a run, and those that its codes and its factors allow."""
    import torch

    from unweave.catalog import load
    from unweave.experiments.evaluation import MetricInputs
    from unweave.experiments.run import read_run

    run = read_run(options.codes)
    if options.factors is not None or options.inputs is not None:
        return score_codes(run.codes, read_reference(options, run.codes), options, metrics, notify)
    stored: ScoreRows = {}
    if not (options.chance or options.bootstrap):
        for name, value in run.scores.items():
            metric = metrics.get(name.partition(".")[0])
            if metric is not None:
                stored[name] = {"value": value, "best": metric.facts.best}
        if not options.all and not options.metrics:
            return stored
    computed = {name.partition(".")[0] for name in stored}
    missing = {name: metric for name, metric in metrics.items() if name not in computed}
    if not missing:
        return stored
    model = None
    if any(metric.facts.truth == "decoder" for metric in missing.values()):
        with contextlib.suppress(InputError):  # a class of the user, whose file the folder does not name
            model = load(options.codes)
    reference = MetricInputs(None, torch.tensor(run.truth), run.factors, model)
    return stored | score_codes(run.codes, reference, options, missing, notify, min_scores=0 if stored else 1)


def score_files(options: Score, metrics: dict[str, Metric], notify: Notify) -> ScoreRows:
    """Return every score that the files allow."""
    from unweave.data.readers.files import read_codes

    needs_nothing = bool(options.metrics) and all(metric.facts.truth == "nothing" for metric in metrics.values())
    if options.factors is None and options.inputs is None and not needs_nothing:
        raise InputError("nothing to compare the codes with: give --factors FILE, or --inputs FILE for local-isometry")
    codes = read_codes(options.codes)
    return score_codes(codes, read_reference(options, codes), options, metrics, notify)


def score_codes(
    codes: Any, reference: Any, options: Score, metrics: dict[str, Metric], notify: Notify, min_scores: int = 1
) -> ScoreRows:
    """Return every score that the reference allows: value and, if requested, chance level and interval."""
    from unweave.metrics.uncertainty import score_table

    rows: ScoreRows = {}
    is_requested = bool(options.metrics) and not options.all  # by name, so that it must not be left out silently
    for name, metric in metrics.items():
        if not reference.has(metric):
            if is_requested:
                raise InputError(_explain_missing(name, metric, options.codes))
            continue
        notify(f"scoring {options.codes}: {name}")
        try:
            rows |= score_table(
                name, metric, reference.argument_for(metric), codes, chance=options.chance, bootstrap=options.bootstrap
            )
        except InputError as error:
            if is_requested:
                raise
            warnings.warn(f"{name} was not computed: {error}", stacklevel=2)
    if len(rows) < min_scores:
        raise InputError(f"none of {', '.join(metrics)} fits these files: are all factors classes without an order?")
    return rows


def _explain_missing(name: str, metric: Metric, codes: Path) -> str:
    """Return why a score cannot be computed from the files."""
    if is_run(codes) and metric.facts.truth in ("factors", "inputs"):
        return (
            f"{codes} has no {name}: its data have no such factors, or it was not computed. "
            "Repeat its `unweave fit` with --metrics, or give --factors FILE or --inputs FILE"
        )
    return {
        "decoder": f"{name} swaps codes and decodes them: expected a run folder whose method has a decoder",
        "labels": f"{name} needs the predictions of a classifier: call unweave.metrics on them",
        "runs": f"{name} compares runs: unweave select RUNS",
    }.get(metric.facts.truth, f"{name} needs --{metric.facts.truth} FILE, with values that can be ordered")


def read_reference(options: Score, codes: Any) -> Any:
    """Return what the codes are compared with, from --factors and --inputs; raise InputError if the rows differ."""
    import torch

    from unweave.data.readers.files import read_data
    from unweave.experiments.evaluation import MetricInputs
    from unweave.metrics.contract import validate_pair

    data = None if options.factors is None else read_factor_data(options.factors)
    inputs = None if options.inputs is None else read_data(options.inputs)[0]
    if data is not None:
        validate_pair(data.c, codes)
    if inputs is not None:
        validate_pair(inputs, codes, what="inputs")
    factors = torch.zeros(len(codes), 0) if data is None else data.c
    return MetricInputs(inputs, factors, () if data is None else data.factors)
