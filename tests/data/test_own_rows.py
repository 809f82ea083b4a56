"""Photographs with a table, folders of classes, identifiers, gaps and held-out rows."""

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from unweave import InputError, OwnData
from unweave.data.core import Factor


def picture(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("L", (4, 4), value).save(path)
    return path


@pytest.fixture
def photos(tmp_path):
    """Twelve pictures whose brightness is ten times their number."""
    for i in range(12):
        picture(tmp_path / "photos" / f"img_{i:02}.png", 10 * i)
    return tmp_path / "photos"


def write_factors(folder, names, **columns):
    path = folder / "factors.csv"
    pd.DataFrame({"file": names, **columns}).to_csv(path, index=False)
    return path


def test_photographs_are_joined_with_a_table_by_file_name(photos, tmp_path):
    order = np.random.default_rng(0).permutation(12)
    names = [f"img_{i:02}" for i in order]
    table = write_factors(tmp_path, names, light=10 * order, notes=[f"picture {i} of a long series" for i in order])
    data = OwnData(path=photos, table=table).load()
    assert data.factors == (Factor("light"),)
    assert data.c[:, 0].tolist() == (255 * data.x.float().flatten(1).mean(1) / 255).round().tolist()
    assert data.row_names[:2] == ("img_00.png", "img_01.png")
    assert "factors.csv: 12 rows matched by `file` (without extension)" in data.notes
    assert any("notes is free text" in note for note in data.notes)


def test_photographs_without_a_row_and_rows_without_a_photograph_are_counted(photos, tmp_path):
    table = write_factors(tmp_path, [f"img_{i:02}.png" for i in range(2, 14)], light=range(12))
    data = OwnData(path=photos, table=table).load()
    assert len(data) == 10
    assert data.c[:, 0].tolist() == list(range(10))
    note = data.notes[0]
    assert "10 rows matched" in note
    assert "2 rows of photos without a partner left out (img_00.png, img_01.png)" in note
    assert "2 rows of factors.csv without a partner left out (img_12.png, img_13.png)" in note
    with pytest.raises(InputError, match="no row has the same value"):
        OwnData(path=photos, table=write_factors(tmp_path, [f"x{i}" for i in range(12)], light=range(12))).load()


def test_levels_of_folders_are_factors(tmp_path):
    for domain in ("lab1", "lab2"):
        for kind in ("cell", "debris"):
            picture(tmp_path / "plates" / domain / kind / "1.png", 50)
            picture(tmp_path / "plates" / domain / kind / "2.png", 90)
    data = OwnData(path=tmp_path / "plates").load()
    assert [(f.name, f.values) for f in data.factors] == [("domain", ("lab1", "lab2")), ("class", ("cell", "debris"))]
    assert data.row_names[0] == "lab1/cell/1.png"
    picture(tmp_path / "plates" / "extra.png", 10)
    assert [f.name for f in OwnData(path=tmp_path / "plates").load().factors] == ["label"]


def test_a_column_of_paths_brings_the_photographs(photos, tmp_path):
    table = write_factors(tmp_path, [f"photos/img_{i:02}.png" for i in range(12)], light=range(12), lab=["A", "B"] * 6)
    data = OwnData(path=table).load()
    assert data.shape == (1, 4, 4)
    assert [f.name for f in data.factors] == ["light", "lab"]
    assert data.row_key == "file"
    (photos / "img_03.png").unlink()
    with pytest.raises(InputError, match=r"1 file do not exist|first 'photos/img_03.png'"):
        OwnData(path=table).load()


@pytest.fixture
def measurements(tmp_path):
    x = np.random.default_rng(0).normal(size=(20, 2))
    x[3, 0] = x[5, 1] = np.nan
    names = [f"S{i:02}" for i in range(20)]
    day = [f"2026-01-{i + 1:02}" for i in range(20)]
    table = pd.DataFrame({"sample": names, "a": x[:, 0], "b": x[:, 1], "day": day, "kind": ["u", "v"] * 10, "k": 1.0})
    table.to_csv(tmp_path / "m.csv", index=False)
    return tmp_path / "m.csv"


def test_gaps_are_refused_dropped_or_filled(measurements):
    settings = {"path": measurements, "factors": ("kind",), "ignore": ("k",)}
    with pytest.raises(InputError, match="contains NaN: first in row 3"):
        OwnData(**settings).load()
    dropped = OwnData(**settings, missing="drop").load()
    assert len(dropped) == 18
    assert "S03" not in dropped.row_names and dropped.row_names[3] == "S04"
    assert any("2 rows of m.csv with missing values left out" in note for note in dropped.notes)
    filled = OwnData(**settings, missing="median").load()
    assert len(filled) == 20
    column = pd.read_csv(measurements)["a"]
    assert filled.x[3, 0] == column.median()
    assert any("2 missing values" in note for note in filled.notes)


def test_identifiers_and_dates_are_not_learned_from(measurements):
    data = OwnData(path=measurements, factors=("kind",), ignore=("k",), missing="drop").load()
    assert data.feature_names == ("a", "b")
    assert data.row_key == "sample"
    assert any("sample is an identifier; day is a date" in note for note in data.notes)
    with pytest.raises(InputError, match=r"column of m\.csv.*did you mean 'kind'"):
        OwnData(path=measurements, ignore=("kinds",)).load()


def test_a_constant_text_is_left_out(tmp_path):
    table = pd.DataFrame({"a": [1.0, 2.0, 4.0], "b": [3.0, 1.0, 2.0], "visit": "2026-02-03", "lab": "A"})
    table.to_csv(tmp_path / "t.csv", index=False)
    data = OwnData(path=tmp_path / "t.csv").load()
    assert data.feature_names == ("a", "b")
    assert data.notes == ("left out: visit is constant; lab is constant",)


def test_held_out_rows_are_scored_and_not_learned_from(measurements):
    settings = {"path": measurements, "factors": ("kind",), "ignore": ("k",), "missing": "median"}
    for split, count in (({"test": 0.25}, 5), ({"test_where": "kind == u"}, 10), ({"test_where": "a > 0"}, None)):
        dataset = OwnData(**settings, **split)
        train = dataset.load()
        test = dataset.evaluation_data(train)
        assert set(train.row_names) | set(test.row_names) == {f"S{i:02}" for i in range(20)}
        assert not set(train.row_names) & set(test.row_names)
        assert count is None or len(test) == count
        assert train.factors == test.factors
    assert (test.x[:, 0] > 0).all() and (train.x[:, 0] <= 0).all()
    for split, match in (({"test": 1.5}, "between 0 and 1"), ({"test_where": "a > 99"}, "0 rows of 20 would be held")):
        with pytest.raises(InputError, match=match):
            OwnData(**settings, **split).load()


def test_new_settings_change_the_recipe_and_old_ones_do_not(measurements):
    plain = OwnData(path=measurements).recipe()
    assert set(plain) == {"name", "sha256", "factors", "columns", "drop_constant", "scale"}
    assert OwnData(path=measurements, ignore=("k",)).recipe()["ignore"] == ("k",)
