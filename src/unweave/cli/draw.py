"""The command `unweave draw`: figures of one run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from unweave.cli.encode import ApplyOptions, load_run_and_data
from unweave.cli.progress import show_progress
from unweave.cli.terminal import parse_options, print_text

if TYPE_CHECKING:
    import numpy as np

    from unweave.methods.base import Method

MAX_SAMPLES = 2_000  # observations that determine the range of each code


@dataclass(kw_only=True)
class Draw(ApplyOptions):
    """Draw traversals (grid and GIF), reconstructions, an interpolation, loss curves and KL per code of a run.

    For a flow, also draw its spectrum, its variables one by one, and samples.
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
        from torch import Generator

        points = loaded.sample(MAX_SAMPLES, Generator().manual_seed(options.seed))
        progress.message("drawing")
        x, c = loaded.render(points).float().numpy(force=True), loaded.labels(points)
        labels = next((c[:, j].numpy(force=True) for j, f in enumerate(loaded.factors) if f.size is not None), None)
        paths = _save_figures(method, x, labels, options.out)
    print_text("\n".join(str(path) for path in paths))


def _save_figures(method: Method, x: np.ndarray, labels: np.ndarray | None, out: Path) -> list[Path]:
    """Write every figure that the method supports, and an animation beside traversals; return the paths."""
    from unweave.report.figures.registry import draw_figures
    from unweave.report.figures.style import save_figure
    from unweave.report.figures.traversal import save_animation

    paths = []
    figures = draw_figures(method, x, labels)
    for name, figure in figures.items():
        paths.append(out / f"{name}.png")
        save_figure(figure, paths[-1])
    if "traversals" in figures:
        paths.append(save_animation(method, x, out / "traversals.gif"))
    return paths
