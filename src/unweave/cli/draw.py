"""The command `unweave draw`: what the codes of a run do to images, as pictures."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tyro

from unweave.cli.terminal import parse_options, print_text, progress
from unweave.utils.errors import InputError

LIMIT = 2_000  # observations that the range of a code is taken from


@dataclass(kw_only=True)
class Draw:
    """Draw traversals (grid and GIF), reconstructions, an interpolation, loss curves and KL per code of a run.

    Of a flow also its spectrum, its variables one by one, and samples.
    """

    run: tyro.conf.Positional[Path]
    """run folder, or the folder of a saved method"""
    data: tyro.conf.Positional[str]
    """images to encode: a catalog name, or the path of your own"""
    out: Path = Path("figures")
    """folder for the pictures"""
    seed: int = 0
    """which observations are shown"""
    method: str = ""
    """of a run of your own class, where that is: mine.py:MyMethod"""


def draw(args: list[str]) -> None:
    """draw what the codes of a run do: unweave draw runs/MY-RUN photos/"""
    options = parse_options(Draw, prog="unweave draw", args=args)
    from unweave import catalog

    with progress() as notify:
        notify("reading the run and the data")
        own = catalog.find(catalog.methods, options.method) if options.method else None
        method = catalog.load(options.run) if own is None else own.load(options.run)
        data = catalog.dataset(options.data)
        try:
            loaded = _as_learned(data, options.run).load()
        except InputError:  # other rows, which need not have the factors of those that were learned from
            loaded = data.load()
        if tuple(loaded.shape) != method.shape_:
            raise InputError(f"the run learned from shape {method.shape_}, {options.data} has shape {loaded.shape}")
        from torch import Generator

        points = loaded.sample(LIMIT, Generator().manual_seed(options.seed))
        notify("drawing")
        x, c = loaded.render(points).float().numpy(force=True), loaded.labels(points)
        labels = next((c[:, j].numpy(force=True) for j, f in enumerate(loaded.factors) if f.size is not None), None)
        made = _draw(method, x, labels, options.out)
    print_text("\n".join(str(path) for path in made))


def _as_learned(data: Any, folder: Path) -> Any:
    """The user's own file, read as the run read it: the same columns, the same factors."""
    from unweave.data.readers.tables import OwnData
    from unweave.utils.storage import read_json

    if not isinstance(data, OwnData) or not (folder / "run.json").is_file():
        return data
    told = read_json(folder / "run.json")["data"]
    factors, columns = (tuple(told.get(name, ())) for name in ("factors", "columns"))
    return replace(data, factors=factors, columns=columns, drop_constant=bool(told.get("drop_constant", False)))


def _draw(method: object, x: object, labels: object, out: Path) -> list[Path]:
    """Every figure that the method allows."""
    import numpy as np

    from unweave.methods.base import Method
    from unweave.methods.neural import Neural
    from unweave.report.figures.curves import draw_loss_curves
    from unweave.report.figures.style import save_figure
    from unweave.report.figures.traversal import (
        draw_interpolation,
        draw_kl_per_code,
        draw_reconstructions,
        draw_traversals,
        save_animation,
    )

    assert isinstance(method, Method) and isinstance(x, np.ndarray)
    figures = {}
    if isinstance(method, Neural):
        figures["curves"] = draw_loss_curves({method.name: method.history})
    if hasattr(method, "nats"):
        with contextlib.suppress(InputError):  # a prior that depends on labels, which are not here
            figures["kl"] = draw_kl_per_code(method, x)
    images = len(method.shape_) in (2, 3)
    if images and method.has_decoder():
        figures["traversals"] = draw_traversals(method, x)
        figures["reconstructions"] = draw_reconstructions(method, x[:10])
        figures["interpolation"] = draw_interpolation(method, x[0], x[1])
    if hasattr(method, "spectrum_"):
        figures |= _of_flow(method, x, labels)
    if not figures:
        raise InputError(f"{type(method).__name__} has neither a decoder for images nor a history: nothing to draw")
    made = []
    for name, figure in figures.items():
        made.append(out / f"{name}.png")
        save_figure(figure, made[-1])
    if "traversals" in figures:
        made.append(save_animation(method, x, out / "traversals.gif"))
    return made


def _of_flow(method: Any, x: Any, labels: Any) -> dict[str, Any]:
    """The spectrum; of images each variable, and samples where there are classes."""
    from unweave.report.figures.flows import MAX_VARIABLES, class_centers, draw_samples, draw_spectra, draw_variable

    figures = {"spectrum": draw_spectra(method, x)}
    classes = hasattr(method, "means_")
    if len(method.shape_) in (2, 3) and (classes or labels is not None):
        rows = None if classes else class_centers(method, x, labels)
        for j in range(min(method.n_informative_, MAX_VARIABLES)):
            figures[f"variable-{j + 1:02}"] = draw_variable(method, j, rows)
    if len(method.shape_) in (2, 3) and classes:
        figures["samples"] = draw_samples(method)
        figures["samples-informative"] = draw_samples(method, temperature=0.8, informative=True)
    return figures
