"""Options of commands that compare codes with true factors, and the reading of both."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tyro

from unweave.cli.terminal import is_run, print_text
from unweave.utils.errors import InputError, unknown

if TYPE_CHECKING:
    from unweave.data.kinds import KindSpec
    from unweave.data.readers.codes import Codes
    from unweave.experiments.run import FinishedRun
    from unweave.metrics.contract import Metric


@dataclass(kw_only=True)
class CompareOptions:
    """Codes, factors and their kinds."""

    codes: tyro.conf.Positional[Path]
    """A run folder, or a file of codes with one row per sample (.npy .npz .csv .parquet)."""
    factors: Path | None = None
    """File with the true factors, one row per sample. Rows are matched by a column that both files have (file, id);
    by position if there is none. A run folder contains its own factors."""
    continuous: tuple[str, ...] = ()
    """Factors that are measured numbers, such as age. By default those with more than 100 values or few rows each."""
    ordinal: tuple[str, ...] = ()
    """Factors whose values are ordered levels. By default numbers with few values."""
    nominal: tuple[str, ...] = ()
    """Factors whose values are classes without an order. By default text and true/false."""
    circular: tuple[str, ...] = ()
    """Factors that are angles, as NAME or NAME=PERIOD, e.g. azimuth=360 hour=24."""
    circular_codes: tuple[str, ...] = ()
    """Codes that are angles, as NUMBER=PERIOD, counted from 1, e.g. 1=360. A run folder knows its own."""

    def kinds(self) -> dict[str, KindSpec]:
        """Return the stated kinds by factor."""
        from unweave.data.kinds import kinds_from_flags

        return kinds_from_flags(self.continuous, self.ordinal, self.nominal, self.circular)


@dataclass
class Comparison:
    """Codes beside the factors of the same rows."""

    codes: Any  # (n, d)
    keys: Any  # DataFrame with the identifiers of their rows
    c: Any  # Tensor (n, k)
    factors: tuple[Any, ...]
    code_periods: tuple[float | None, ...]
    notes: list[str]
    warnings: list[str]


def read_comparison(options: CompareOptions, run: FinishedRun | None) -> Comparison:
    """Return codes and factors from files, or from a run folder, which has factors of its own."""
    import torch

    from unweave.data.readers.codes import compare_factors

    codes = _codes_of(options, run)
    periods = _code_periods(options, run, codes.values.shape[1])
    if options.factors is not None:
        compared = compare_factors(codes, options.factors, options.kinds())
        data = compared.data
        return Comparison(
            compared.codes, compared.keys, data.c, data.factors, periods, compared.notes, compared.warnings
        )
    if run is None:
        return Comparison(codes.values, codes.keys, torch.zeros(len(codes.values), 0), (), periods, [], [])
    if options.kinds():
        raise InputError("kinds are stated for the columns of --factors FILE; those of a run are part of its data")
    return Comparison(run.codes, codes.keys, torch.tensor(run.truth), run.factors, periods, [], [])


def read_run_if_any(path: Path) -> FinishedRun | None:
    """Return the run in a folder; None for a file of codes."""
    from unweave.experiments.run import read_run

    return read_run(path) if is_run(path) else None


def _codes_of(options: CompareOptions, run: FinishedRun | None) -> Codes:
    import pandas as pd

    from unweave.data.readers.codes import Codes, read_codes, read_factors

    if run is not None:
        keys = {} if run.row_names is None else {run.row_key: list(run.row_names)}
        return Codes(run.codes, pd.DataFrame(keys, index=range(len(run.codes))), f"the run {options.codes.name}")
    names = () if options.factors is None else tuple(map(str, read_factors(options.factors).columns))
    return read_codes(options.codes, names)


def _code_periods(options: CompareOptions, run: FinishedRun | None, d: int) -> tuple[float | None, ...]:
    periods: list[float | None] = [None] * d if run is None else list(run.code_periods)
    for text in options.circular_codes:
        number, _, period = text.removeprefix("code").partition("=")
        if number not in (names := [str(i + 1) for i in range(d)]):
            raise unknown("code", number, names)
        try:
            periods[int(number) - 1] = float(period)
        except ValueError:
            raise InputError(f"--circular-codes {text}: expected NUMBER=PERIOD, e.g. 1=360") from None
    return tuple(periods)


def prepare_comparison(pair: Comparison) -> tuple[Any, list[str]]:
    """Return the factors that are scored, as metrics take them, and their names."""
    from unweave.experiments.evaluation import MetricInputs

    columns = [j for j, factor in enumerate(pair.factors) if not factor.noise]
    inputs = MetricInputs(None, pair.c, pair.factors, code_periods=pair.code_periods)
    return inputs.prepare(columns), [pair.factors[j].name for j in columns]


def report_warnings(pair: Comparison) -> None:
    """Warn where rows were matched in a way that the user should check."""
    for text in pair.warnings:
        warnings.warn(text, stacklevel=2)


def print_left_out(factors: Sequence[Any], metrics: Mapping[str, Metric]) -> None:
    """Print which factors some metrics leave out, and why; metrics of angles leave out all others by definition."""
    from unweave.experiments.evaluation import describe_left_out
    from unweave.metrics.contract import CIRCULAR

    for text in describe_left_out(factors, {n: m for n, m in metrics.items() if m.facts.kinds != CIRCULAR}):
        print_text(text)


def print_notes(pair: Comparison) -> None:
    """Print how rows were matched, the kinds of the factors, and what was left out."""
    for note in pair.notes:
        print_text(note)
