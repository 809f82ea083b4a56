"""The command `unweave draw`: figures of one run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tyro

from unweave.cli.progress import show_progress
from unweave.cli.terminal import parse_options, print_text
from unweave.utils.errors import InputError

if TYPE_CHECKING:
    from unweave.data.core import FactorData
    from unweave.methods.base import Method


@dataclass(kw_only=True)
class Draw:
    """Draw real observations along each code of a run, and all codes colored by the factors.

    For a method with a decoder of images, also traversals (grid and GIF), reconstructions and an interpolation. For a
    network its loss curves, for a VAE the KL per code, for a flow its spectrum, variables and samples.
    """

    run: tyro.conf.Positional[Path]
    """Run folder, or folder of a saved method."""
    data: tyro.conf.Positional[str]
    """Observations to encode: a catalog name, or the path of your own data."""
    out: Path = Path("figures")
    """Folder of the figures."""
    seed: int = 0
    """Seed that selects the observations."""
    method: str = ""
    """For a run of your own class, its file and name: mine.py:MyMethod."""


def draw(args: list[str]) -> None:
    """Draw what each code of a run changes: unweave draw runs/MY-RUN photos/."""
    options = parse_options(Draw, prog="unweave draw", args=args)
    from unweave import catalog

    with show_progress() as progress:
        progress.message("reading the run and the data")
        own_class = catalog.find(catalog.methods, options.method) if options.method else None
        method = catalog.load(options.run) if own_class is None else own_class.load(options.run)
        data = catalog.dataset(options.data)
        try:
            loaded = read_as_trained(data, options.run).load()
        except InputError:  # a file without the factors of the training data
            loaded = data.load()
        if tuple(loaded.shape) != method.shape_:
            raise InputError(
                f"the run was trained on shape {method.shape_}, but {options.data} has shape {loaded.shape}"
            )
        progress.message("drawing")
        paths = _save_figures(method, loaded, options)
    print_text("\n".join(str(path) for path in paths))


def read_as_trained(data: Any, folder: Path) -> Any:
    """Return the user's own file with the columns and factors that the run used; other data unchanged."""
    from unweave.data.own_data import OwnData
    from unweave.utils.storage import read_json

    if not isinstance(data, OwnData) or not (folder / "run.json").is_file():
        return data
    recipe = read_json(folder / "run.json")["data"]
    factors, columns = (tuple(recipe.get(name, ())) for name in ("factors", "columns"))
    return replace(data, factors=factors, columns=columns, drop_constant=bool(recipe.get("drop_constant", False)))


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
