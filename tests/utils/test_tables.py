"""Tables as CSV: what a spreadsheet would execute, and what comes back."""

import csv
import io

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unweave.data.readers.tables import read_table
from unweave.utils.tables import csv_text, neutralize, restore_text, write_table

FORMULAS = [
    "=1+2",
    "+1-cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(A1)",
    " =1",
    "\t=1",
    "\r=1",
    "\tx",
    "\uff1d1",
    "\ufeff=1",
    "'=1",
    "-",
]
NUMBERS = ["-1", "+1.5", "-1e-3", "-0,5", "12", " -3 "]
SIGNS = "=+-@\t\r\uff1d\uff0b\uff0d\uff20"


@pytest.mark.parametrize("text", FORMULAS)
def test_formulas_are_neutralized_and_restored(text):
    assert neutralize(text) == f"'{text}"
    assert restore_text(neutralize(text)) == text


@pytest.mark.parametrize("value", [*NUMBERS, -1, -1.5, np.float64(-2), None, "anna", "a=b", "", "it's", "'x'"])
def test_everything_else_is_unchanged(value):
    assert neutralize(value) is value
    assert restore_text(value) is value


@given(st.text(alphabet=st.sampled_from("=+-@'\t\r\n 1a;,\"\uff0b\0")))
def test_any_text_comes_back_and_is_no_formula(text):
    safe = neutralize(text)
    assert safe == text or restore_text(safe) == text
    if safe.strip() and safe.strip()[0] in SIGNS:
        assert np.isfinite(float(safe.replace(",", ".")))


def test_cells_and_names_of_columns_are_safe_and_numbers_stay_numbers():
    table = pd.DataFrame({"=id": FORMULAS, "x": -np.arange(12.0), "n": -np.arange(12), "mixed": [-1, "=a"] * 6})
    rows = list(csv.reader(io.StringIO(csv_text(table), newline="")))
    assert rows[0] == ["'=id", "x", "n", "mixed"]
    assert [row[0] for row in rows[1:]] == [f"'{text}" for text in FORMULAS]
    assert rows[2][1:] == ["-1.0", "-1", "'=a"]
    assert list(table.columns) == ["=id", "x", "n", "mixed"], "the table itself is not changed"


def test_a_line_is_not_split_at_another_separator():
    """Where the decimal sign is a comma, spreadsheets split lines at semicolons."""
    text = csv_text(pd.DataFrame({"name": ["a;=cmd()", "b"], "x": [-1.5, np.nan]}))
    assert [row[0] for row in csv.reader(io.StringIO(text), delimiter=";")][1] == "a;=cmd(),-1.5"
    assert list(csv.reader(io.StringIO(text)))[1:] == [["a;=cmd()", "-1.5"], ["b", ""]]
    assert csv_text(pd.DataFrame({"name": ["a"], "x": [1]})) == "name,x\na,1\n", "quotes only where they are needed"


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_written_tables_are_read_as_they_were(suffix, tmp_path):
    names = ["=1+2", "+49 30 1", "@anna", "-x", "plain"]
    table = pd.DataFrame({"@name": names, "code1": [-1.5, 2.0, -3.0, 0.0, 1.0], "n": [-1, 2, -3, 4, 5]})
    write_table(table, tmp_path / "deeper" / f"table{suffix}")
    pd.testing.assert_frame_equal(read_table(tmp_path / "deeper" / f"table{suffix}"), table)


def test_columns_that_are_the_same_once_restored_are_refused(tmp_path):
    (tmp_path / "a.csv").write_text("'=a,=a\n1,2\n3,4\n")
    with pytest.raises(ValueError, match="several columns named '=a'"):
        read_table(tmp_path / "a.csv")
