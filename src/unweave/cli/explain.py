"""The command `unweave explain`: which codes and factors cause a low score."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

from unweave.cli.progress import show_progress
from unweave.cli.terminal import is_run, parse_options, print_json, print_text
from unweave.utils.errors import InputError

FIGURE_FORMATS = (".svg", ".png", ".pdf")


@dataclass(kw_only=True)
class Explain:
    """Explain low scores: which codes are dead, duplicate or mixed, and which factors are split or missing."""

    codes: tyro.conf.Positional[Path]
    """A run folder, or a file of codes with one row per sample (.npy .npz .csv .parquet)."""
    factors: Path | None = None
    """File with the true factors, one row per sample, in the same order. A run folder contains its own."""
    out: Path = Path("explain.svg")
    """Figure to write: mutual information and importance of every code for every factor (.svg .png .pdf)."""
    json: bool = False
    """Print findings and matrices as JSON."""


def explain_scores(args: list[str]) -> None:
    """Explain low scores: unweave explain codes.npy --factors factors.csv."""
    options = parse_options(Explain, prog="unweave explain", args=args)
    if options.out.suffix.lower() not in FIGURE_FORMATS:
        raise InputError(f"{options.out}: figures are written as .svg, .png or .pdf")
    from unweave.metrics.explain import explain
    from unweave.report.figures.matrices import draw_matrices
    from unweave.report.figures.style import save_figure

    with show_progress(quiet=options.json) as progress:
        progress.message(f"comparing {options.codes} with the factors")
        factors, codes, names = read_pair(options.codes, options.factors)
        explanation = explain(factors, codes, names=names)
        save_figure(draw_matrices(explanation), options.out)
    if options.json:
        information, importance = explanation.information.tolist(), explanation.importance.tolist()
        matrices = {"information": information, "importance": importance}
        return print_json({"factors": names, "findings": explanation.findings} | matrices)
    for finding in explanation.findings:
        print_text(f"- {finding}")
    return print_text(f"The factor-code matrices are in {options.out}.")


def read_pair(path: Path, factors_path: Path | None) -> tuple[Any, Any, list[str]]:
    """Return factors (n, k), codes (n, d) and the names of the factors, from files or a run folder."""
    from unweave.data.readers.files import read_codes
    from unweave.experiments.run import read_run

    run = read_run(path) if is_run(path) else None
    codes = read_codes(path) if run is None else run.codes
    if factors_path is not None:
        data = read_factor_data(factors_path)
        return data.c, codes, [factor.name for factor in data.factors]
    columns = [j for j, factor in enumerate(run.factors) if not factor.noise] if run is not None else []
    if run is None or not columns:
        raise InputError(f"which factors should {path} be compared with? give --factors FILE")
    return run.truth[:, columns], codes, [run.factors[j].name for j in columns]


def read_factor_data(path: Path) -> Any:
    """Return a file of factors as data without observations: values `c`, names and kinds."""
    from unweave.data.conversion import as_data
    from unweave.data.readers.files import read_factors

    table = read_factors(path)
    return as_data(table.iloc[:, :0].assign(rows=0), table)
