"""Rows of two tables are matched by what identifies them."""

import numpy as np
import pandas as pd
import pytest

from unweave import InputError
from unweave.data.readers.join import join_rows, key_columns, match_names


@pytest.mark.parametrize(
    ("left", "right", "partners", "rule"),
    [
        (["a", "b"], ["b", "a"], [1, 0], ""),
        (["x/a.png", "x/b.png"], ["x\\b.png", "x\\a.png"], [1, 0], ""),
        (["a.png", "b.png"], ["b", "c", "a"], [2, 0], "without extension"),
        (["day1/a.png", "day1/b.png"], ["b.png", "a.png"], [1, 0], "without folder"),
        (["day1/a.png", "day1/b.png"], ["raw/b.tif", "raw/a.tif"], [1, 0], "without folder and extension"),
        (["IMG_1.png", "img_2.png"], ["img_1", "IMG_2"], [0, 1], "without folder, extension and case"),
        (["007.png", "012.png"], ["12", "7"], [1, 0], "as numbers"),
        (["s1.5", "s2.5"], ["s2.5", "s1.5"], [1, 0], ""),
    ],
)
def test_names_match_under_the_strictest_rule_that_matches_most(left, right, partners, rule):
    matching = match_names(left, right)
    assert (matching.left.tolist(), matching.right.tolist(), matching.rule) == ([0, 1], partners, rule)


def test_ambiguous_names_do_not_match():
    assert match_names(["1/a.png", "2/a.png"], ["a", "b"]) is None
    assert match_names(["a", "b"], ["a", "a"]) is None
    assert match_names(["1/a.png", "2/a.png"], ["2/a.png", "1/a.png"]).right.tolist() == [1, 0]


def tables(left, right):
    a, b = pd.DataFrame(left), pd.DataFrame(right)
    return join_rows(key_columns(a), key_columns(b), ("z.csv", "f.csv"), (len(a), len(b)))


def test_a_shared_key_decides_and_leftovers_are_counted():
    join = tables({"id": [3, 1, 2], "z": [0.1, 0.2, 0.3]}, {"id": [1, 2, 4], "age": [5, 6, 7]})
    assert (join.left.tolist(), join.right.tolist()) == ([1, 2], [0, 1])
    assert join.note.startswith("2 rows matched by `id`; 1 row of z.csv without a partner left out (3); 1 row of f.csv")
    assert join.is_doubtful


def test_keys_of_different_names_match_by_their_values():
    join = tables({"file": ["a.png", "b.png", "c.png"]}, {"image": ["c", "b", "a"], "note": ["x y", "y z", "z x"]})
    assert join.right.tolist() == [2, 1, 0]
    assert "`file` and `image` (without extension)" in join.note
    assert not join.is_doubtful


def test_two_keys_are_used_together_where_neither_is_unique():
    left = {"subject_id": [1, 1, 2, 2], "scan_id": [1, 2, 1, 2]}
    join = tables(left, {"subject_id": [2, 2, 1, 1], "scan_id": [2, 1, 2, 1]})
    assert join.right.tolist() == [3, 2, 1, 0]
    assert "`subject_id and scan_id`" in join.note


def test_keys_that_do_not_agree_are_refused():
    with pytest.raises(InputError, match=r"both have a column 'id', but no row has the same value .*'1' and '7'"):
        tables({"id": [1, 2]}, {"id": [7, 8]})
    with pytest.raises(InputError, match=r"column 'id' of f.csv has '1' more than once"):
        tables({"id": [1, 2]}, {"id": [1, 1]})


def test_position_is_the_last_resort_and_is_reported():
    assert tables({"z": [0.1, 0.2]}, {"age": [1.5, 2.5]}).note == "2 rows matched by position"
    join = tables({"file": ["a", "b"]}, {"age": [1.5, 2.5]})
    assert join.is_doubtful
    assert "only z.csv names its rows (`file`)" in join.note
    with pytest.raises(InputError, match=r"3 rows of z.csv and 2 rows of f.csv"):
        tables({"z": np.ones(3)}, {"age": [1.5, 2.5]})
