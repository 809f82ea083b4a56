"""The command `unweave draw`: figures of one run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from unweave.cli.encode import ApplyOptions, load_run_and_data
from unweave.cli.progress import show_progress
from unweave.cli.terminal import parse_options, print_text

if TYPE_CHECKING:
    from unweave.data.core import FactorData
    from unweave.methods.base import Method


@dataclass(kw_only=True)
class Draw(ApplyOptions):
    """Draw real observations along each code of a run, and all codes colored by the factors.

    For a method with a decoder of images, also traversals (grid and GIF), reconstructions and an interpolation. For a
    network its loss curves, for a VAE the KL per code, for a flow its spectrum, variables and samples.
    """

    out: Path = Path("figures")
    """Folder of the figures."""
    seed: int = 0
    """Seed that selects the observations."""


def draw(args: list[str]) -> None:
    """Draw what each code of a run changes: unweave draw runs/MY-RUN photos/."""
    options = parse_options(Draw, prog="unweave draw", args=args)
    with show_progress() as progress:
        progress.message("reading the run and the data")
        method, loaded = load_run_and_data(options)
        progress.message("drawing")
        paths = _save_figures(method, loaded, options)
    print_text("\n".join(str(path) for path in paths))


def _save_figures(method: Method, loaded: FactorData, options: Draw) -> list[Path]:
    """Write every figure that the method supports, and an animation beside traversals; return the paths."""
    from unweave.report.figures.registry import draw_figures, sample_observations
    from unweave.report.figures.style import save_figure
    from unweave.report.figures.traversal import save_animation

    paths, data = [], sample_observations(loaded, options.seed)
    figures = draw_figures(method, data)
    for name, figure in figures.items():
        paths.append(options.out / f"{name}.png")
        save_figure(figure, paths[-1])
    if "traversals" in figures:
        paths.append(save_animation(method, data.x, options.out / "traversals.gif"))
    return paths
