"""The command `unweave score`: metrics of a run, or of codes from any other tool."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unweave.cli.compare import (
    CompareOptions,
    Comparison,
    print_left_out,
    print_notes,
    read_comparison,
    read_run_if_any,
    report_warnings,
)
from unweave.cli.progress import show_progress
from unweave.cli.terminal import STDOUT, docstring_summary, is_run, parse_options, print_json, print_table
from unweave.utils.errors import InputError

if TYPE_CHECKING:
    from unweave.experiments.evaluation import MetricInputs
    from unweave.experiments.run import FinishedRun
    from unweave.metrics.contract import Metric

Notify = Callable[[str], None]
ScoreRows = dict[str, dict[str, float]]  # score -> value, best, and if requested chance, low, high

MIN_WIDTH_FOR_TEXT = 110  # columns of a terminal that has room for intervals and explanations


@dataclass(kw_only=True)
class Score(CompareOptions):
    """Score codes against known factors: those of a run, or arrays from any other tool."""

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
        run, pair = read_run_if_any(options.codes), None
        if run is None or options.factors is not None or options.inputs is not None:
            rows, pair = score_files(options, metrics, progress.message, run)
        else:
            rows = score_run(options, metrics, progress.message, run)
    if options.json:
        has_details = options.chance or options.bootstrap
        finite = {name: {k: v if math.isfinite(v) else None for k, v in row.items()} for name, row in rows.items()}
        return print_json(finite if has_details else {name: row["value"] for name, row in finite.items()})
    if pair is not None:
        print_notes(pair)
        print_left_out(pair.factors, {name: metrics[name] for name in metrics if _is_computed(rows, name)})
    return _print_scores(rows, metrics, str(options.codes))


def _is_computed(rows: ScoreRows, name: str) -> bool:
    return any(column.partition(".")[0] == name for column in rows)


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


def score_run(options: Score, metrics: dict[str, Metric], notify: Notify, run: FinishedRun) -> ScoreRows:
    """Return the stored scores of a run, and those that its codes and its factors allow."""
    from unweave.catalog import load

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
    pair = read_comparison(options, run)
    reference = as_metric_inputs(pair, None, model)
    return stored | score_codes(pair.codes, reference, options, missing, notify, min_scores=0 if stored else 1)


def score_files(
    options: Score, metrics: dict[str, Metric], notify: Notify, run: FinishedRun | None
) -> tuple[ScoreRows, Comparison]:
    """Return every score that the files allow, and how codes and factors were brought together."""
    needs_nothing = bool(options.metrics) and all(metric.facts.truth == "nothing" for metric in metrics.values())
    if options.factors is None and options.inputs is None and not needs_nothing:
        raise InputError("nothing to compare the codes with: give --factors FILE, or --inputs FILE for local-isometry")
    pair = read_comparison(options, run)
    report_warnings(pair)
    inputs = None if options.inputs is None else read_matching_inputs(options, pair)
    return score_codes(pair.codes, as_metric_inputs(pair, inputs), options, metrics, notify), pair


def as_metric_inputs(pair: Comparison, inputs: Any, model: Any = None) -> MetricInputs:
    """Return what metrics compare codes with."""
    from unweave.experiments.evaluation import MetricInputs

    return MetricInputs(inputs, pair.c, pair.factors, model, pair.code_periods)


def read_matching_inputs(options: Score, pair: Comparison) -> Any:
    """Return the observations of --inputs in the order of the codes."""
    from unweave.data.readers.codes import read_inputs
    from unweave.data.readers.join import join_rows

    assert options.inputs is not None
    inputs = read_inputs(options.inputs)
    names = (options.codes.name, inputs.source)
    join = join_rows(pair.keys, inputs.keys, names, (len(pair.codes), len(inputs.values)))
    if len(join.left) < len(pair.codes):
        raise InputError(f"not every row of the codes has an observation in {options.inputs}: {join.note}")
    pair.notes.append(f"inputs: {join.note}")
    return inputs.values[join.right]


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
