"""Observations along each code: which rows are chosen, how tables are summarized, what a run folder keeps."""

import math

import numpy as np
import pytest
import torch

from unweave import Dataset, Factor, InputError, Run, Table
from unweave.experiments.ordered import (
    FILE_NAME,
    MAX_STORED_CODES,
    MAX_STORED_PIXELS,
    STEPS,
    OrderedColumns,
    OrderedImages,
    order_observations,
    pick_rows,
    read_ordered,
    to_bytes,
    write_ordered,
)
from unweave.experiments.runner import execute_run
from unweave.methods import PCA

RNG = np.random.default_rng(0)
NONE = (None,) * 3


def test_a_row_changes_one_code_from_quantile_to_quantile_and_holds_the_others():
    z = RNG.normal(size=(3_000, 3)) * [1.0, 100.0, 0.01]
    rows = pick_rows(z, np.arange(3), NONE)
    for j in range(3):
        values = z[rows[j]]
        assert (np.diff(values[:, j]) > 0).all()
        quantiles = [(z[:, j] <= value).mean() for value in values[:, j]]
        np.testing.assert_allclose(quantiles, np.linspace(0.05, 0.95, STEPS), atol=0.06)
        others = [i for i in range(3) if i != j]
        assert (values[:, others].std(0) < 0.25 * z[:, others].std(0)).all()


def test_a_circular_code_goes_once_around_and_gaps_stay_empty():
    z = np.stack([RNG.uniform(0, 2 * math.pi, 2_000), RNG.normal(size=2_000)], 1)
    z[:, 0] -= 2 * math.pi * RNG.integers(0, 2, 2_000)  # the same angles, some negative
    (rows,) = pick_rows(z, np.array([0]), (2 * math.pi, None))
    turn = np.arange(STEPS) * 2 * math.pi / (STEPS - 1)
    assert np.cos(z[rows, 0] - turn).min() > 0.95
    assert rows[0] == rows[-1]
    assert z[rows, 1].std() < 0.25
    half = z[(z[:, 0] % (2 * math.pi)) < math.pi]
    (rows,) = pick_rows(half, np.array([0]), (2 * math.pi, None))
    assert (rows >= 0).tolist() == [True] * 5 + [False] * 3 + [True]
    (rows,) = pick_rows(np.array([[6.2], [6.25]]), np.array([0]), (2 * math.pi,))
    assert rows.tolist() == [1, -1, -1, -1, -1, -1, -1, -1, 1], "just before a full turn is near 0"


def test_other_codes_near_both_ends_of_a_turn_are_neighbors():
    angle = np.where(RNG.random(1_000) < 0.5, 0.01, 2 * math.pi - 0.01)
    angle[::2] = math.pi
    angle[0] = 0.01
    z = np.stack([np.concatenate([[0.0], RNG.normal(size=999)]), angle], 1)  # row 0 is the center
    (rows,) = pick_rows(z, np.array([0]), (None, 2 * math.pi))
    assert np.cos(z[rows, 1]).min() > 0.9, "never pi"


def test_few_rows_leave_places_empty_and_constant_codes_are_not_shown():
    z = np.array([[3.0, 1.0], [1.0, 1.0], [2.0, 1.0]])
    ordered = order_observations(z, np.zeros((3, 2, 2)), (None, None))
    assert ordered.codes.tolist() == [0]
    assert ordered.values[0][~np.isnan(ordered.values[0])].tolist() == [1, 2, 3]
    assert (ordered.places[0] >= 0).sum() == 3
    assert order_observations(np.ones((3, 2)), np.zeros((3, 2, 2)), (None, None)) is None


def test_columns_of_a_table_are_sorted_by_their_change_and_keep_their_units():
    z = RNG.uniform(-1, 1, (5_000, 2))
    x = np.stack([RNG.normal(size=5_000), 1_000 + 500 * z[:, 0], 3 - z[:, 1] * 1e-3], 1)
    ordered = order_observations(z, x, (None, None), feature_names=("noise", "mass [g]", "width [m]"))
    assert isinstance(ordered, OrderedColumns)
    assert ordered.columns[:, 0].tolist() == ["mass [g]", "width [m]"]
    np.testing.assert_allclose(ordered.means[0, 0], 1_000 + 500 * ordered.values[0], rtol=1e-6)
    np.testing.assert_allclose(ordered.scaled[0, 0], (ordered.means[0, 0] - x[:, 1].mean()) / x[:, 1].std(), rtol=1e-6)
    assert ordered.means[1, 0, 0] > ordered.means[1, 0, -1]
    circular = order_observations(z * math.pi, np.cos(z[:, :1] * math.pi), (2 * math.pi, None))
    np.testing.assert_allclose(circular.means[0, 0], np.cos(circular.values[0]), atol=0.05)
    assert circular.columns[0].tolist() == ["column 0"]


def test_images_are_shown_as_bytes_whatever_their_range():
    gray = np.array([[[0.0, 0.5], [1.0, 0.25]]])
    assert to_bytes(gray)[0, :, :, 1].tolist() == [[0, 128], [255, 64]]
    for other in (gray * 8 - 4, gray - 0.5, gray * 100):
        assert to_bytes(other)[0, :, :, 1].tolist() == [[0, 128], [255, 64]]
    color = RNG.integers(0, 256, (2, 3, 4, 5), dtype=np.uint8)
    assert (to_bytes(color) == color.transpose(0, 2, 3, 1)).all()
    assert to_bytes(color[:, :2]).shape == (2, 4, 5, 3)


def test_stored_images_are_small_and_few(tmp_path):
    z = RNG.normal(size=(600, 60)) * np.arange(60, 0, -1)
    x = RNG.integers(0, 256, (600, 3, 80, 80), dtype=np.uint8)
    limits = {"max_codes": MAX_STORED_CODES, "max_pixels": MAX_STORED_PIXELS}
    ordered = order_observations(z, x, (None,) * 60, max_codes=MAX_STORED_CODES, max_pixels=50_000)
    assert ordered.codes.tolist() == list(range(MAX_STORED_CODES)), "those that vary most"
    count, height, width, _ = ordered.images.shape
    assert 40_000 < count * height * width <= 50_000
    few = order_observations(z[:, :2], x[:, :, :40], (None,) * 2, **limits)
    assert few.images.shape[1:] == (32, 64, 3)
    write_ordered(tmp_path, order_observations(z, x, (None,) * 60, **limits))
    assert (tmp_path / FILE_NAME).stat().st_size < 3 * MAX_STORED_PIXELS + 100_000, "of noise, which is not compressed"


def test_files_are_read_back_and_damaged_ones_are_named(tmp_path):
    z = RNG.normal(size=(50, 2))
    names = [f"{i}.png" for i in range(50)]
    for x, kind in ((RNG.uniform(size=(50, 4, 4)), OrderedImages), (RNG.uniform(size=(50, 4)), OrderedColumns)):
        ordered = order_observations(z, x, (None, None), row_names=names)
        write_ordered(tmp_path, ordered)
        again = read_ordered(tmp_path)
        assert isinstance(again, kind)
        for a, b in zip(ordered, again, strict=True):
            np.testing.assert_array_equal(a, b)
    (tmp_path / FILE_NAME).write_bytes((tmp_path / FILE_NAME).read_bytes()[:100])
    with pytest.raises(InputError, match="truncated or altered"):
        read_ordered(tmp_path)
    assert read_ordered(tmp_path / "old") is None


class Named(Dataset):
    """Images that are named by their brightness; the test set is darker."""

    test: bool = False

    def load(self):
        levels = torch.linspace(0, 0.4, 40) + (0.0 if self.test else 0.5)
        noise = 1e-3 * torch.rand(40, 1, 4, 4, generator=torch.Generator().manual_seed(0))
        data = Table(levels[:, None, None, None] + noise, levels[:, None], [Factor("level")])
        data.row_names = tuple(f"{float(level):.3f}" for level in levels)
        return data

    def evaluation_data(self, data):
        return Named(test=True).load()


def test_a_run_folder_keeps_images_and_names_of_the_observations_it_was_scored_on(tmp_path):
    run = execute_run(Run(Named(), PCA(latent_dim=1)), tmp_path / "run", {})
    ordered = read_ordered(run.folder)
    for name, k in zip(ordered.names[0], ordered.places[0], strict=True):
        assert ordered.images[k].mean() / 255 == pytest.approx(float(name), abs=0.01)
        assert float(name) <= 0.4
    assert run.env["code_periods"] == [None]
