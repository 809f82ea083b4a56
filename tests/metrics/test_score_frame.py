"""Tables of scores in notebooks, and that they are ordinary DataFrames everywhere else."""

import pickle
import re

import numpy as np
import pandas as pd
import pytest

from unweave.metrics.score_frame import (
    MAX_UNFOLDED,
    ScoreTable,
    _best_rows,
    _constant_columns,
    _progress,
    _shown_rows,
)


def make_table(rows: int = 3, **columns: object) -> ScoreTable:
    values = {"method": [f"m{i}" for i in range(rows)], "mcc": np.linspace(0.5, 0.9004, rows), "error": range(rows)}
    table = ScoreTable(values | columns)
    table.best_scores = {"mcc": 1.0, "error": 0.0}
    return table


def shown_rows(page: str) -> list[list[str]]:
    """Return the texts of the cells of a page, by row; the best ones with a star."""
    rows = re.findall(r"<tr>(.*?)</tr>", page)
    return [
        [("*" if "uw-best" in start else "") + text for start, text in re.findall(r"<(t[dh][^>]*)>(.*?)</t[dh]>", row)]
        for row in rows
    ]


def test_scores_have_three_digits_and_the_best_is_marked():
    rows = shown_rows(make_table()._repr_html_())
    assert rows == [
        ["", "method", "mcc", "error"],
        ["0", "m0", "0.500", "*0.000"],
        ["1", "m1", "0.700", "1.000"],
        ["2", "m2", "*0.900", "2.000"],
    ]


def test_equal_digits_are_equally_good():
    rows = shown_rows(make_table(mcc=[0.90001, 0.5, 0.90002])._repr_html_())
    assert [row[2] for row in rows[1:]] == ["*0.900", "0.500", "*0.900"]
    assert "*" not in str(shown_rows(make_table(mcc=[0.9] * 3, error=[1] * 3)._repr_html_())), "nobody is better"


def test_missing_scores_and_other_types_are_shown():
    table = make_table(mcc=[np.nan, 0.5, np.nan], error=["a", "b", "c"], steps=[None, 100, 0.00012345]).convert_dtypes()
    rows = shown_rows(table._repr_html_())
    assert [row[2] for row in rows[1:]] == ["–", "*0.500", "–"]  # noqa: RUF001
    assert [row[3] for row in rows[1:]] == ["a", "b", "c"]
    assert [row[4] for row in rows[1:]] == ["–", "100", "0.0001234"]  # noqa: RUF001


@pytest.mark.parametrize(
    "select",
    [
        lambda t: t[["method", "mcc"]],
        lambda t: t[t["mcc"] > 0.6],
        lambda t: t.sort_values("mcc"),
        lambda t: t.head(2),
        lambda t: t.drop(columns="error"),
        lambda t: t.set_index("method"),
        lambda t: t.round(2),
        lambda t: t.assign(more=1),
        lambda t: t.convert_dtypes(),
        lambda t: pickle.loads(pickle.dumps(t)),
    ],
)
def test_selections_are_shown_in_the_same_way(select):
    table = select(make_table())
    assert isinstance(table, ScoreTable)
    assert 'uw-best">0.' in table._repr_html_()


@pytest.mark.parametrize(
    "derive",
    [
        lambda t: t.groupby("method")[["mcc", "error"]].std(),
        lambda t: t.describe(),
        lambda t: t[["mcc", "error"]].corr(),
        lambda t: t.groupby("method").agg({"mcc": ["mean", "std"]}),
        lambda t: t.T,
        lambda t: t.isna(),
    ],
)
def test_tables_of_other_quantities_have_no_best_score(derive):
    table = make_table(4, method=["a", "a", "b", "b"], mcc=[0.1, 0.2, 0.5, 0.9], error=[3.0, np.nan, 4.0, 1.0])
    page = derive(table)._repr_html_()
    assert "<table" in page
    assert 'uw-best"' not in page


def test_pandas_works_as_with_any_data_frame(tmp_path):
    table = make_table()
    plain = pd.DataFrame(table.to_dict("list"))
    pd.testing.assert_frame_equal(table, plain)
    table.to_parquet(tmp_path / "t.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "t.parquet"), plain)
    assert table.to_csv() == plain.to_csv()
    assert repr(table) == repr(plain)
    assert pd.concat([table, table])["mcc"].tolist() == plain["mcc"].tolist() * 2
    assert type(pd.DataFrame(table)) is pd.DataFrame
    assert "<table" in pd.concat([table, make_table()])._repr_html_()


def test_settings_of_pandas_are_respected():
    with pd.option_context("display.notebook_repr_html", False):
        assert make_table()._repr_html_() is None
    table = make_table(100)
    with pd.option_context("display.max_rows", 20, "display.min_rows", 6):
        rows = shown_rows(table._repr_html_())
        assert "100 rows, of which the first and last 3" in table._repr_html_()
    assert [row[0] for row in rows[1:]] == ["0", "1", "2", "97", "98", "99"]
    assert rows[-1][2] == "*0.900", "the best of all rows"


def test_equal_settings_of_a_wide_table_are_folded():
    settings = {f"s{i}": [i, i, i] for i in range(MAX_UNFOLDED)}
    page = make_table(**settings, lr=[1, 2, 3])._repr_html_()
    head, _, folded = page.partition("<details>")
    assert shown_rows(head)[0] == ["", "method", "mcc", "error", "lr"]
    assert f">{MAX_UNFOLDED} columns with one value in all rows</summary>" in folded
    assert ["s7", "7"] in shown_rows(folded)
    assert "<details>" not in make_table(s1=[1, 1, 1])._repr_html_(), "a narrow table shows all columns"


def test_many_scores_of_few_codes_are_shown_as_columns():
    table = ScoreTable({f"s{i}": [0.5, 1.0] for i in range(MAX_UNFOLDED + 1)}, index=["a", "b"])
    table.best_scores = dict.fromkeys(table.columns, 1.0)
    rows = shown_rows(table._repr_html_())
    assert rows[:2] == [["score", "a", "b"], ["s0", "0.500", "*1.000"]]
    assert "2 rows, shown as columns" in table._repr_html_()


def test_one_row_per_score_has_tints_from_chance_to_best():
    columns = {"value": [0.5, 1.0, 0.2, 4.0], "best": [1.0, 1.0, 1.0, np.nan], "chance": [0.0, 0.5, 0.2, 4.0]}
    table = ScoreTable(columns, index=["mcc", "mig", "sap", "active"])
    page = table._repr_html_()
    assert shown_rows(page) == [
        ["score", "value", "chance", "best possible"],
        ["mcc", "0.500", "0.000", "1.000"],
        ["mig", "1.000", "0.500", "1.000"],
        ["sap", "0.200", "0.200", "1.000"],
        ["active", "4", "4", "–"],  # noqa: RUF001
    ]
    assert re.findall(r"rgba\(47, 129, 247, ([\d.]+)\)", page) == ["0.25", "0.50"]
    assert "chance" not in table[["value", "best"]]._repr_html_()


def test_lower_is_better_where_the_best_score_is_zero():
    table = ScoreTable({"value": [10.0], "best": [0.0], "chance": [40.0]}, index=["angle-error"])
    assert "247, 0.38)" in table._repr_html_()


def test_names_are_escaped():
    table = make_table(method=["<script>", "b", "c"]).rename(columns={"error": "<script>e"}, index={1: "<script>i"})
    page = table._repr_html_()
    assert "<script" not in page
    assert page.count("&lt;script&gt;") == 3


@pytest.mark.parametrize("table", [ScoreTable(), ScoreTable({"mcc": []}), ScoreTable([[1, 2]], columns=["mcc", "mcc"])])
def test_unusual_tables_are_left_to_pandas(table):
    assert "<table" in table._repr_html_()
    assert "unweave" not in table._repr_html_()


def test_rows_are_shown_by_the_settings_of_pandas():
    for most, few, count, shown in (
        (20, 6, 20, [*range(20)]),
        (20, 6, 21, [0, 1, 2, 18, 19, 20]),
        (20, None, 21, [*range(10), *range(11, 21)]),
        (20, 1, 21, [0, 20]),
        (None, 6, 99, [*range(99)]),
        (0, 6, 99, [*range(99)]),
    ):
        with pd.option_context("display.max_rows", most, "display.min_rows", few):
            assert [*_shown_rows(count)] == shown


def test_columns_are_folded_where_a_wide_table_has_one_value():
    settings = {f"s{i}": [1, 1] for i in range(MAX_UNFOLDED - 2)}
    narrow = pd.DataFrame({"key": ["a", "a"], "b": [1, 1]} | settings)
    assert _constant_columns(narrow, {}) == []
    wide = narrow.assign(other=[1, 2], mcc=[0.5, 0.5])
    assert _constant_columns(wide, {"mcc": 1.0}) == list(settings)[1:], "the first three columns stay"


def test_the_best_rows_are_nearest_to_the_best_score():
    assert _best_rows(pd.Series([0.9, 0.5, 0.9004]), 1.0) == {0, 2}
    assert _best_rows(pd.Series([0.9, -0.05, 0.06]), 0.0) == {1}
    assert _best_rows(pd.Series([0.9, 0.9]), 1.0) == set() and _best_rows(pd.Series([0.9]), 1.0) == set()


def test_progress_is_the_place_between_chance_and_the_best_score():
    assert _progress({"value": 0.4, "best": 1.0, "chance": 0.2}) == pytest.approx(0.25)
    assert _progress({"value": 30.0, "best": 0.0, "chance": 40.0}) == pytest.approx(0.25)
    for missing in ({"chance": np.nan}, {"best": None}, {"value": np.nan}, {"chance": 1.0}):
        assert _progress({"value": 0.4, "best": 1.0, "chance": 0.2} | missing) == 0
    assert _progress({"value": 0.4, "best": 1.0}) == 0


def test_one_row_per_score_names_its_columns():
    table = ScoreTable({"value": [0.5], "low": [0.4], "high": [0.6], "best": [1.0]}, index=["mcc"])
    page = table._repr_html_()
    head = ["score", "value", "95 % from", "to", "best possible"]
    assert shown_rows(page) == [head, ["mcc", "0.500", "0.400", "0.600", "1.000"]]
    assert "Blue" not in page and "Scores" in page and page.count('uw-strong">0.500') == 1
    with_chance = ScoreTable({"value": [0.5], "chance": [0.1], "best": [1.0]}, index=["mcc"])._repr_html_()
    assert "Blue: how far the score is from chance" in with_chance
