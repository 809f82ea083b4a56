"""The commands `unweave encode` and `unweave predict`: apply a trained run to new data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import tyro

from unweave.cli.fit import check_writable, write_codes
from unweave.cli.progress import show_progress
from unweave.cli.terminal import parse_options, print_text
from unweave.utils.errors import InputError, plural

if TYPE_CHECKING:
    import pandas as pd

    from unweave.data.core import FactorData
    from unweave.methods.base import Method


@dataclass(kw_only=True)
class ApplyOptions:
    """A trained run and new data."""

    run: tyro.conf.Positional[Path]
    """Run folder, or folder of a saved method."""
    data: tyro.conf.Positional[str]
    """Data like those of the training: the path of your own data, or a catalog name. Labels are not needed."""
    table: Path | None = None
    """Table of factors for the images of a folder, matched by file name, to color figures or to score predictions."""
    missing: Literal["error", "drop", "median"] = "error"
    """Missing values of a table: raise an error, drop the rows, or fill with the median of these rows."""
    method: str = ""
    """For a run of your own class, its file and name: mine.py:MyMethod."""
    network: str = ""
    """For a run with a network of your own, its file and function: mine.py:build."""


@dataclass(kw_only=True)
class Encode(ApplyOptions):
    """Compute the codes of new data with a trained run. Rows keep their identifiers."""

    codes: Path = Path("codes.csv")
    """File to write: .csv, .parquet or .npy."""


@dataclass(kw_only=True)
class Predict(ApplyOptions):
    """Predict classes and their probabilities with a trained classifier. Rows keep their identifiers."""

    out: Path = Path("predictions.csv")
    """File to write: .csv or .parquet."""


def encode(args: list[str]) -> None:
    """Encode new data with a trained run: unweave encode runs/MY-RUN new.csv --codes codes.csv."""
    options = parse_options(Encode, prog="unweave encode", args=args)
    check_writable(options.codes)
    with show_progress() as progress:
        progress.message("reading the run and the data")
        method, data = load_run_and_data(options)
        progress.message("encoding")
        codes = method.transform(data)
        write_codes(options.codes, codes, data.row_names, data.row_key)
    _print_notes(data)
    print_text(f"{plural(len(codes), 'row')} of {plural(codes.shape[1], 'code')} are in {options.codes}")


def predict(args: list[str]) -> None:
    """Predict classes with a trained classifier: unweave predict runs/MY-RUN photos/ --out predictions.csv."""
    options = parse_options(Predict, prog="unweave predict", args=args)
    from unweave.utils.tables import TABLE_WRITERS, write_table

    if options.out.suffix.lower() not in TABLE_WRITERS:
        raise InputError(f"{options.out}: predictions are written as {' or '.join(TABLE_WRITERS)}")
    check_writable(options.out)
    with show_progress() as progress:
        progress.message("reading the run and the data")
        method, data = load_run_and_data(options)
        if not hasattr(method, "predict_proba"):
            raise InputError(
                f"{method.name} is no classifier: `unweave encode` computes its codes; classifiers are, for example, "
                "swap-contrast and cnn-classifier"
            )
        progress.message("predicting")
        table = predictions(method, data)
        write_table(table, options.out)
    _print_notes(data)
    label: str = getattr(method, "label_", "")
    if any(factor.name == label for factor in data.factors):
        print_text(f"accuracy {method.score(data):.4f}, compared with the column {label!r}")
    print_text(f"{plural(len(table), 'prediction')} are in {options.out}")


def predictions(method: Any, data: FactorData) -> pd.DataFrame:
    """Return one row per observation: its identifier, if it has one, the most probable class, all probabilities."""
    import pandas as pd

    probabilities = method.predict_proba(data)
    table = pd.DataFrame(probabilities, columns=[f"p({name})" for name in method.classes_])
    table.insert(0, "prediction", method.classes_[probabilities.argmax(1)])
    if data.row_names is not None:
        table.insert(0, data.row_key, list(data.row_names))
    return table


def load_run_and_data(options: ApplyOptions) -> tuple[Method, FactorData]:
    """Return the trained method, and the data with the columns that it learned from."""
    from unweave import catalog

    own_class = catalog.find(catalog.methods, options.method) if options.method else None
    networks = {"network": options.network} if options.network else {}
    method = (catalog if own_class is None else own_class).load(options.run, **networks)
    dataset = catalog.dataset(options.data)
    data = read_as_trained(_with_table(dataset, options.table), options.run, options.missing)
    if tuple(data.shape) != method.shape_:
        raise InputError(f"the run was trained on shape {method.shape_}, but {options.data} has shape {data.shape}")
    return method, data


def read_as_trained(dataset: Any, folder: Path, missing: Literal["error", "drop", "median"] = "error") -> FactorData:
    """Return data with the columns that the run learned from, and with its factors if the data have them."""
    from unweave.data.own_data import OwnData

    if not isinstance(dataset, OwnData) or not (folder / "run.json").is_file():
        return dataset.load()
    settings, factors = _recorded_settings(folder)
    plain = replace(dataset, missing=missing, **settings)
    try:
        return replace(plain, **factors).load_to_apply()
    except InputError:  # a file without the factors of the training data
        return plain.load_to_apply()


def _recorded_settings(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the settings of the data that a run learned from, and those of their factors."""
    from unweave.utils.storage import read_json

    recipe: Any = read_json(folder / "run.json").get("data")
    env: Any = read_json(folder / "env.json").get("data")
    names = ("continuous", "ordinal", "nominal", "circular", "factors")
    try:
        columns = env.get("feature_names") or recipe.get("columns", ())
        kinds = {name: tuple(map(str, recipe.get(name, ()))) for name in names}
        return {"columns": tuple(map(str, columns)), "resize": int(recipe.get("resize", 0))}, kinds
    except (AttributeError, TypeError, ValueError) as error:
        raise InputError(f"{folder} is altered: it does not say which columns it learned from") from error


def _with_table(dataset: Any, table: Path | None) -> Any:
    from unweave.data.own_data import OwnData

    if table is not None and not isinstance(dataset, OwnData):
        raise InputError("--table adds factors to a folder of your own images; datasets have their own")
    return dataset if table is None else replace(dataset, table=table)


def _print_notes(data: FactorData) -> None:
    for note in data.notes:
        print_text(note)
