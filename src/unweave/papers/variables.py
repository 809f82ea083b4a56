"""Names of the variables of a flow: what each one does, on which classes, and whether a second seed finds it."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from unweave import catalog
from unweave.data.core import FactorData
from unweave.papers.flow_digits import MODEL
from unweave.papers.output import SILENT, Output, TextTable
from unweave.report.description import Description, describe
from unweave.report.explorer.matching import Counterpart

FILE_NAME = "variables.csv"
NOT_COMPARED, NO_MATCH = "not compared", "no match"


def write_variables(folder: Path, data: FactorData, output: Output = SILENT) -> None:
    """Write a row for each code of the model of the first seed: name, effect, classes, and the second seed's code.

    Args:
        folder: Folder of the seeds, and of the file `variables.csv`. Seeds that diverged have no model.
        data: Observations to describe the codes with, e.g. test digits with their labels.
        output: Receives messages about the progress.
    """
    paths = sorted(folder.glob(f"seed-*/{MODEL}"), key=lambda path: int(path.parent.name.removeprefix("seed-")))
    models = [catalog.load(path) for path in paths[:2]]
    if models:
        output.progress("Describing the variables")
        description = describe(models[0], data, models[1] if len(models) > 1 else None)
        tabulate_variables(description).to_csv(folder / FILE_NAME, index=False)


def tabulate_variables(description: Description) -> pd.DataFrame:
    """Return one row of texts for each code; the effect is that on the first attribute of its name."""
    rows = []
    for entry in description.codes:
        names = [f"a little {a.words}" if a.is_little else a.words for a in entry.attributes]
        effect = entry.attributes[0].describe() if entry.attributes else ""
        rows.append([
            str(entry.code), ", ".join(names) or entry.words, effect, entry.region, description.scope(entry),
            describe_match(entry.counterpart),
        ])  # fmt: skip
    return pd.DataFrame(rows, columns=["variable", "name", "effect", "especially at", "classes", "second seed"])


def describe_match(match: Counterpart | None) -> str:
    """Return the variable of the second seed that a code is matched with, and the correlation."""
    if match is None:
        return NOT_COMPARED
    return f"variable {match.code + 1} ({abs(match.correlation):.2f})" if match.code >= 0 else NO_MATCH


def read_variables(folder: Path, title: str) -> list[TextTable]:
    """Return the table of a folder; none where it was not written."""
    if not (folder / FILE_NAME).is_file():
        return []
    frame = pd.read_csv(folder / FILE_NAME, dtype=str, keep_default_na=False)
    return [TextTable(title, tuple(frame.columns), frame.to_numpy().tolist())]
