"""The dataset that a run was trained on, made again from the recipe that the run recorded."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

from unweave import catalog
from unweave.data.dataset import Dataset
from unweave.utils.errors import InputError
from unweave.utils.storage import read_json, to_jsonable


def dataset_of_run(folder: Path, command: str = "explore") -> Dataset:
    """Return the catalog dataset that a run was trained on, with all its settings.

    `command` is the one that an error suggests, with the data behind the run.
    """
    if not folder.is_dir():
        raise InputError(f"{folder} does not exist: name the folder of a run")
    if not (folder / "config.json").is_file():
        raise InputError(f"{folder} holds no trained method: name the folder of one run, e.g. {folder / 'RUN'}")
    missing = InputError(f"{folder} does not say where its data are: unweave {command} {folder} DATA")
    if not (folder / "run.json").is_file():
        raise missing
    recipe = read_json(folder / "run.json").get("data")
    if not isinstance(recipe, dict):  # as in an altered file
        raise missing
    cls = catalog.datasets().get(str(recipe.get("name")).partition(" ")[0])
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
