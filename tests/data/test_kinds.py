"""Kinds of factors: inferred, stated, or no factor at all."""

import numpy as np
import pandas as pd
import pytest

from unweave import InputError, OwnData
from unweave.data.conversion import as_data
from unweave.data.core import Factor
from unweave.data.kinds import hint_at_angles, kinds_from_flags, reason_to_leave_out

N = 72
AZIMUTH = 5 * np.arange(N)


@pytest.mark.parametrize(
    ("values", "name", "reason"),
    [
        ([f"img{i}.png" for i in range(N)], "file", "an identifier"),
        ([f"P{i:03}" for i in range(N)], "patient", "an identifier"),
        (np.arange(N), "id", "an identifier"),
        (np.arange(N), "angle", ""),
        ([f"2026-01-{i % 28 + 1:02}" for i in range(N)], "day", "a date"),
        (["12:30"] * 36 + ["13:30"] * 36, "time", "a date"),
        ([f"the object {i} was moved a little" for i in range(N)], "notes", "free text"),
        (["cat", "dog"] * 36, "species", ""),
        ([True, False] * 36, "name", ""),
        (["x"] * N, "lab", "constant"),
        (np.linspace(0, 1, N), "id", ""),
        (["1", "2", "?"] + ["3"] * (N - 3), "dose", ""),
    ],
)
def test_columns_that_are_no_factors_are_recognized(values, name, reason):
    assert reason_to_leave_out(pd.Series(values, name=name)) == reason


def test_left_out_columns_are_named_once():
    y = pd.DataFrame({"file": [f"{i}.png" for i in range(N)], "azimuth": AZIMUTH, "lab": ["A", "B"] * 36})
    with pytest.warns(UserWarning, match="left out: file is an identifier$"):
        data = as_data(np.zeros((N, 2)), y)
    assert data.factors == (Factor("azimuth"), Factor("lab", 2, "nominal", values=("A", "B")))
    kept = as_data(np.zeros((N, 2)), y, kinds={"file": "nominal"}).factors[0]
    assert (kept.kind, kept.size) == ("nominal", N), "a stated kind keeps a column"


def test_whole_numbers_and_shifted_ones_have_the_same_kind():
    for values in (AZIMUTH, np.repeat(AZIMUTH, 10), np.arange(100) % 4):
        kinds = [as_data(np.zeros((len(values), 1)), values + shift).factors[0] for shift in (0, 0.001)]
        assert (kinds[0].kind, kinds[0].size) == (kinds[1].kind, kinds[1].size)
    assert as_data(np.zeros((N, 1)), AZIMUTH).factors[0].kind == "real"
    assert as_data(np.zeros((10 * N, 1)), np.repeat(AZIMUTH, 10)).factors[0].kind == "ordinal"


def test_kinds_are_stated_by_flags_and_in_python():
    kinds = kinds_from_flags(["age"], ["dose"], ["site"], ["azimuth=360", "phase"])
    assert kinds["azimuth"] == ("circular", 360.0)
    y = pd.DataFrame({
        "age": [30, 40] * 36, "dose": [1, 2, 3] * 24, "site": [1, 2] * 36, "azimuth": AZIMUTH,
        "phase": np.deg2rad(AZIMUTH),
    })  # fmt: skip
    factors = {f.name: f for f in as_data(np.zeros((N, 1)), y, kinds=kinds).factors}
    assert factors["age"] == Factor("age")
    assert (factors["dose"].kind, factors["site"].kind) == ("ordinal", "nominal")
    assert factors["azimuth"] == Factor("azimuth", kind="circular", period=360.0)
    assert factors["phase"].period == pytest.approx(2 * np.pi)


def test_circular_factors_with_few_values_are_discrete_and_keep_their_angles():
    angle = np.tile([0, 90, 180, 270], 20)
    data = as_data(np.zeros((80, 1)), angle, kinds={"y": ("circular", 360)})
    factor = data.factors[0]
    assert (factor.kind, factor.size, factor.period) == ("circular", 4, 360.0)
    assert factor.numeric_values(data.c[:, 0]).tolist() == angle.tolist()


@pytest.mark.parametrize(
    ("kinds", "match"),
    [
        ({"w": "ordinal"}, "no factor named 'w'"),
        ({"y": "angle"}, "expected nominal, ordinal, continuous or circular"),
        ({"y": "circular"}, "its period is unclear"),
        ({"y": ("circular", 0)}, "expected a positive number"),
    ],
)
def test_wrong_kinds_are_refused(kinds, match):
    with pytest.raises(InputError, match=match):
        as_data(np.zeros((20, 1)), np.arange(20), kinds=kinds)


def test_contradicting_flags_are_refused():
    with pytest.raises(InputError, match="'a' is given two kinds, continuous and circular"):
        kinds_from_flags(continuous=["a"], circular=["a=360"])
    with pytest.raises(InputError, match="expected NAME or NAME=PERIOD"):
        kinds_from_flags(circular=["a=b"])
    with pytest.raises(InputError, match="not numbers: it cannot be circular"):
        as_data(np.zeros((3, 1)), ["a", "b", "a"], kinds={"y": ("circular", 360)})


def test_angles_in_degrees_are_hinted_at():
    def hints(values):
        return hint_at_angles((Factor("a"),), np.asarray(values, float)[:, None])

    assert "--circular a=360" in hints(AZIMUTH)[0]
    assert "--circular a=360" in hints(np.arange(-180, 180, 10))[0]
    assert not hints(np.arange(0, 200, 5))
    assert not hints(np.arange(0, 100))


def test_the_hint_names_the_flag_of_the_command(tmp_path):
    pd.DataFrame({"x": np.sin(AZIMUTH), "azimuth": AZIMUTH}).to_csv(tmp_path / "t.csv", index=False)
    notes = OwnData(path=tmp_path / "t.csv", factors=("azimuth",)).load().notes
    assert "--data.circular azimuth=360" in notes[-1]
