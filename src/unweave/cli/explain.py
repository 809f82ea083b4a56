"""The command `unweave explain`: which codes and factors cause a low score."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from unweave.cli.compare import (
    CompareOptions,
    prepare_comparison,
    print_notes,
    read_comparison,
    read_run_if_any,
    report_warnings,
)  # fmt: skip
from unweave.cli.progress import show_progress
from unweave.cli.terminal import parse_options, print_json, print_text
from unweave.utils.errors import InputError

FIGURE_FORMATS = (".svg", ".png", ".pdf")


@dataclass(kw_only=True)
class Explain(CompareOptions):
    """Explain low scores: which codes are dead, duplicate or mixed, and which factors are split or missing."""

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
        run = read_run_if_any(options.codes)
        if options.factors is None and (run is None or all(factor.noise for factor in run.factors)):
            raise InputError(f"which factors should {options.codes} be compared with? give --factors FILE")
        pair = read_comparison(options, run)
        report_warnings(pair)
        truth, names = prepare_comparison(pair)
        explanation = explain(truth, pair.codes, names=names)
        save_figure(draw_matrices(explanation), options.out)
    if options.json:
        information, importance = explanation.information.tolist(), explanation.importance.tolist()
        matrices = {"information": information, "importance": importance}
        return print_json({"factors": names, "notes": pair.notes, "findings": explanation.findings} | matrices)
    print_notes(pair)
    for finding in explanation.findings:
        print_text(f"- {finding}")
    return print_text(f"The factor-code matrices are in {options.out}.")
