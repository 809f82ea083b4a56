"""The user's own tables, and names that are neither datasets nor files."""

import pytest

import unweave
from unweave import InputError, OwnData


@pytest.mark.parametrize(
    ("text", "settings", "match"),
    [
        ("a,b,b\n1,2,3\n4,5,7\n", {}, "several columns named 'b'"),
        ('"a, c","b","b"\n1,2,3\n4,5,7\n', {}, "several columns named 'b'"),
        ("a,b\n1,2\n4,n/a?\n5,6\n", {}, r"numbers, but text in 1 row: first 'n/a\?' in row 1"),
        ("a,b\n1,x\n4,y\n5,x\n6,y\n", {}, r"holds text \('x'\), not numbers.*--data.factors b"),
        ("a,b\n1,2\n4,5\n", {"columns": ("a", "a")}, "'a'.* is named more than once"),
    ],
)
def test_errors_name_the_column_and_the_row(text, settings, match, tmp_path):
    (tmp_path / "mine.csv").write_text(text)
    with pytest.raises(InputError, match=match):
        OwnData(path=tmp_path / "mine.csv", **settings).load()


def test_an_unknown_name_is_reported_as_no_file_and_no_dataset():
    with pytest.raises(InputError, match="no file or folder 'photoz' here, and no dataset named"):
        unweave.catalog.dataset("photoz")
