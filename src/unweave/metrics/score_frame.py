"""`ScoreTable`: a DataFrame of scores that notebooks show with three digits and the best values marked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from unweave.utils import html
from unweave.utils.errors import plural

PARTS = ("value", "chance", "low", "high", "best")  # columns of a table with one row per score
# Operations of pandas, by the names that it gives them, whose results are still scores.
SELECTIONS = (None, "take", "copy", "sort_values", "rename", "round", "convert_dtypes")
MAX_UNFOLDED = 12  # columns, above which those with one value in all rows are folded
HEAD_COLUMNS = 3  # that are never folded: key, data and method of a run


class ScoreTable(pd.DataFrame):
    """A DataFrame that notebooks show with formatted scores; in everything else a DataFrame.

    Tables that are selected from it, e.g. by `table[table["method"] == "pca"]`, are shown in the same way.

    Example:
        >>> table = ScoreTable({"mcc": [0.91234, 0.5]}, index=["a", "b"])
        >>> table.best_scores = {"mcc": 1.0}
        >>> "0.912" in table._repr_html_()
        True
    """

    _metadata = ["best_scores"]  # noqa: RUF012 (pandas copies these attributes to selections)
    best_scores: Mapping[str, float] | None = None
    """Best possible score by column, for columns of scores; None for other columns and for one row per score."""

    @property
    def _constructor(self) -> type[ScoreTable]:
        return ScoreTable

    def __finalize__(self, other: Any, method: str | None = None, **kwargs: Any) -> ScoreTable:
        """Copy the attributes; a table of other quantities, e.g. standard deviations by group, has no best scores."""
        super().__finalize__(other, method=method, **kwargs)  # type: ignore[misc]
        if method not in SELECTIONS:
            self.best_scores = None
        return self

    def _repr_html_(self) -> str | None:
        """Return the table as HTML; of many rows the first and last, as many as pandas shows."""
        is_plain = self.columns.nlevels == self.index.nlevels == 1 and self.columns.is_unique and len(self) > 0
        if not is_plain or not pd.get_option("display.notebook_repr_html"):
            return super()._repr_html_()  # type: ignore[misc]
        columns = [str(column) for column in self.columns]
        if "value" in columns and set(columns) <= set(PARTS):
            return _single_html(self)
        return _many_html(self, self.best_scores or {})


def _single_html(table: ScoreTable) -> str:
    """Return one row per score, tinted by its place between chance and the best score."""
    columns = [column for column in PARTS if column in table.columns]
    rows: list[list[object]] = []
    for name, values in zip(table.index, table.to_dict("records"), strict=True):
        is_count = html.is_missing(values.get("best"))
        texts = [html.format_value(values[c]) if is_count else html.format_score(values[c]) for c in columns]
        cells = [html.Cell(text, is_number=True) for text in texts]
        cells[0] = cells[0]._replace(is_strong=True, tint=_progress(values))
        rows.append([str(name), *cells])
    labels = {"best": "best possible", "low": "95 % from", "high": "to"}
    note = "Blue: how far the score is from chance (none) to the best possible (full)."
    body = html.table(["score", *(labels.get(column, column) for column in columns)], rows)
    return html.page("Scores", "", body, html.text(note) if "chance" in columns else "")


def _progress(values: Mapping[Any, Any]) -> float:
    """Return the place of a score between chance, 0, and the best score, 1; 0 where chance is unknown."""
    value, best, chance = (values.get(part) for part in ("value", "best", "chance"))
    if any(html.is_missing(number) for number in (value, best, chance)) or best == chance:
        return 0.0
    return float((value - chance) / (best - chance))  # type: ignore[operator]


def _many_html(table: ScoreTable, best_scores: Mapping[str, float]) -> str:
    """Return one row per run or array of codes; columns with one value in all rows are folded if there are many."""
    folded = _constant_columns(table, best_scores)
    columns = [column for column in table.columns if column not in folded]
    numeric = [column for column in columns if pd.api.types.is_numeric_dtype(table[column])]
    marked = {column: _best_rows(table[column], best_scores[column]) for column in numeric if column in best_scores}
    shown = _shown_rows(len(table))
    cells = [[_cell(table[c].iloc[i], i in marked.get(c, ()), c in marked) for i in shown] for c in columns]
    names, labels = [str(column) for column in columns], [str(table.index[i]) for i in shown]
    summary = plural(len(table), "row")
    if len(table) < len(columns) == len(numeric) and len(columns) > MAX_UNFOLDED:  # it is easier to read turned
        summary += ", shown as columns"
        body = html.table(["score", *labels], [[name, *row] for name, row in zip(names, cells, strict=True)])
    else:
        summary += "" if len(shown) == len(table) else f", of which the first and last {len(shown) // 2}"
        rows = [[label, *row] for label, row in zip(labels, zip(*cells, strict=True), strict=True)]
        body = html.table([str(table.index.name or ""), *names], rows)
    mark = html.text("Green: best value of each score.") if any(marked.values()) else ""
    values = html.table(["column", "value"], [[str(column), table[column].iloc[0]] for column in folded])
    note = html.details(f"{plural(len(folded), 'column')} with one value in all rows", values) if folded else ""
    return html.page("Scores", summary, body, mark, note)


def _cell(value: Any, is_best: bool, is_score: bool) -> object:
    return html.Cell(html.format_score(value), is_number=True, is_best=is_best) if is_score else value


def _constant_columns(table: pd.DataFrame, best_scores: Mapping[str, float]) -> list[Any]:
    """Return columns of settings with one value in all rows, if the table is wide."""
    if len(table.columns) <= MAX_UNFOLDED:
        return []
    settings = [column for column in table.columns[HEAD_COLUMNS:] if column not in best_scores]
    return [column for column in settings if table[column].astype(str).nunique() == 1]


def _best_rows(column: pd.Series[Any], best: float) -> set[int]:
    """Return the rows with the score closest to the best possible one, to three digits; none if all rows have it."""
    distance = (column.astype(float) - best).abs().round(3)
    rows = {i for i, value in enumerate(distance) if value == distance.min()}
    return rows if len(rows) < len(column) else set()


def _shown_rows(count: int) -> Sequence[int]:
    """Return the numbers of the rows to show: all, or the first and the last, as in the settings of pandas."""
    most, few = pd.get_option("display.max_rows"), pd.get_option("display.min_rows")
    if not most or count <= most:
        return range(count)
    half = max(1, (few or most) // 2)
    return [*range(half), *range(count - half, count)]
