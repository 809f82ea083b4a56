"""The command `unweave demo`: a complete example that needs no data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from unweave.cli.progress import show_progress
from unweave.cli.terminal import parse_options, print_runs, print_text


@dataclass(kw_only=True)
class Demo:
    """Recover the position of a moving square from its images alone, with PCA, ICA and HLLE+ICA. Write a report."""

    out: Path = Path("report.html")
    """The report to write."""
    runs: Path = Path("runs/demo")
    """Folder of the runs. Finished runs are not repeated."""
    points: int = 3_000
    """Number of images."""
    seed: int = 0
    """Seed of the images and of the methods."""
    json: bool = False
    """Print the table as JSON."""


def demo(args: list[str]) -> None:
    """Recover two factors from generated images and write report.html."""
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
    runs = [Run(data, method(latent_dim=2, seed=options.seed)) for method in (PCA, LinearICA, HessianICA)]
    folders = [options.runs / run.key for run in runs]
    with show_progress(quiet=options.json) as progress:
        metrics = catalog.find_metrics(DEFAULT_METRICS)
        done = [
            execute_run(run, folder, metrics, progress.message, progress.training)
            for run, folder in zip(runs, folders, strict=True)
        ]
        progress.message(f"writing {options.out}")
        page = write_report(folders, options.out)
    if options.json:
        return print_runs(done, as_json=True)
    print_runs(done, f"{options.points:,} images of a moving square, trained without labels")
    print_text("mcc: 1 means that each code equals one true factor.")
    print_text("local-isometry: 1 means that distances between neighbors are preserved.")
    return print_text(f"Open {page} in a browser.")
