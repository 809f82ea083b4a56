"""The command `unweave explore`: one HTML page to move the codes of a run."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from unweave.cli.encode import ApplyOptions, load_run_and_data
from unweave.cli.progress import show_progress
from unweave.cli.terminal import parse_options, print_text
from unweave.utils.errors import InputError

if TYPE_CHECKING:
    from unweave.data.dataset import Dataset


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


def dataset_of_run(folder: Path) -> Dataset:
    """Return the catalog dataset that a run was trained on, with all its settings."""
    from unweave import catalog
    from unweave.utils.storage import read_json, to_jsonable

    missing = InputError(f"{folder} does not say where its data are: unweave explore {folder} DATA")
    if not (folder / "run.json").is_file():
        raise missing
    recipe = read_json(folder / "run.json")["data"]
    cls = catalog.datasets().get(str(recipe["name"]).partition(" ")[0])
    if cls is None:
        raise missing
    names = {field.name for field in fields(cls)}  # type: ignore[arg-type]
    values = {name: tuple(v) if isinstance(v, list) else v for name, v in recipe.items() if name in names - {"name"}}
    try:
        dataset = cls(**values)
    except (TypeError, ValueError):
        raise missing from None
    if json.loads(json.dumps(dataset.recipe(), default=to_jsonable)) != recipe:  # of another version, or a substitute
        raise missing
    return dataset
