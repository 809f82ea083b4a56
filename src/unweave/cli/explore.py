"""The command `unweave explore`: one HTML page to move the codes of a run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import tyro

from unweave.cli.encode import ApplyOptions, load_run_and_data
from unweave.cli.progress import show_progress
from unweave.cli.terminal import parse_options, print_text


@dataclass(kw_only=True)
class Explore(ApplyOptions):
    """Write one self-contained HTML page to move the codes of a run and see what each one does.

    It has sliders with the density of the data, decoded observations, traversals, a map of the observations and the
    matrix of codes and factors. A method without a decoder shows the nearest observations.
    """

    data: tyro.conf.Positional[str] = ""
    """Data like those of the training: the path of your own data, or a catalog name. By default those of the run."""
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Path("explore.html")
    """The page to write."""
    compare: Path | None = None
    """Second run folder, e.g. of another seed. Its codes are matched with those of the first and shown beside them."""
    seed: int = 0
    """Seed that selects the observations."""


def explore_run(args: list[str]) -> None:
    """Move the codes of a run in one HTML page: unweave explore runs/MY-RUN photos/ -o explore.html."""
    options = parse_options(Explore, prog="unweave explore", args=args)
    with show_progress() as progress:
        progress.message("reading the run and the data")
        from unweave.experiments.recorded_data import dataset_of_run

        options = options if options.data else replace(options, data=dataset_of_run(options.run))
        method, data = load_run_and_data(options)
        from unweave.catalog import dataset
        from unweave.report.explorer.page import explore

        title = f"{method.name} on {dataset(options.data).title()}"
        settings: Any = {"title": title, "model_path": options.run, "seed": options.seed}
        if options.compare is not None:
            settings["compare"], _ = load_run_and_data(replace(options, run=options.compare))
        page = explore(method, data, options.out, **settings, notify=progress.message)
    size = page.stat().st_size / 1e6
    print_text(f"Open {page} in a browser ({size:.1f} MB).")
