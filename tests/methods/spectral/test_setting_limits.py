"""Settings of spectral methods at the ends of their ranges, their defaults, and the views that they decide on."""

from typing import Any

import numpy as np
import pytest

from unweave.data.conversion import as_data
from unweave.methods import HessianICA, LaplacianICA, TangentICA
from unweave.methods.spectral import views
from unweave.methods.spectral.isometry import ColumnChoice
from unweave.methods.spectral.landmarks import thin
from unweave.methods.spectral.loops import Loop
from unweave.methods.spectral.point_cloud import Embedding
from unweave.methods.spectral.views import (
    View,
    blur_widths,
    check_enough_points,
    choose_observations,
    count_landmarks,
    validate_settings,
)
from unweave.utils.errors import InputError


@pytest.mark.parametrize("cls", [HessianICA, LaplacianICA, TangentICA])
def test_defaults_stay_what_recorded_runs_have(cls):
    defaults = {
        "latent_dim": "auto", "seed": 0, "n_neighbors": "auto", "landmarks": "auto", "smooth": "auto", "project": 50,
        "samples": 3_000, "on_disconnected": "error", "loops": "auto", "device": "auto",
    }  # fmt: skip
    assert {name: getattr(cls(), name) for name in defaults} == defaults
    assert cls.linear == (cls is not LaplacianICA)


@pytest.mark.parametrize(
    ("settings", "shape", "message"),
    [
        ({"latent_dim": 4}, (4,), None),
        ({"latent_dim": 5}, (4,), "n_features=4; lower latent_dim"),
        ({"latent_dim": 3, "project": 3}, (4,), None),
        ({"latent_dim": 3, "project": 2}, (4,), "project=2: expected 0 for all, or at least latent_dim=3"),
        ({"project": 0}, (4,), None),
        ({"project": 1}, (4,), None),
        ({"project": -1}, (4,), "project=-1"),
        ({"smooth": 0.0}, (4,), None),
        ({"smooth": 0.5}, (4, 4), None),
        ({"smooth": 0.5}, (4,), "rows of numbers"),
        ({"smooth": -0.5}, (4, 4), "expected 0 or a number of pixels"),
        ({"samples": 2}, (4,), None),
        ({"samples": 1}, (4,), "draw at least two points"),
        ({"landmarks": 0}, (4,), None),
        ({"landmarks": -1}, (4,), "expected 0 for all points"),
        ({"latent_dim": 2, "n_neighbors": 6}, (4,), None),
        ({"latent_dim": 2, "n_neighbors": 5}, (4,), "n_neighbors=5 is too few for latent_dim=2"),
        ({"n_neighbors": 3}, (4,), None),
        ({"n_neighbors": 2}, (4,), "a neighborhood needs at least 3"),
    ],
)
def test_settings_are_checked_against_the_shape(settings, shape, message):
    if message is None:
        validate_settings(HessianICA(**settings), shape)
        return
    with pytest.raises(InputError, match=message):
        validate_settings(HessianICA(**settings), shape)


def test_landmarks_stand_for_more_than_five_thousand_points():
    assert [count_landmarks("auto", n) for n in (5_000, 5_001)] == [0, 3_000]
    assert [count_landmarks(100, n) for n in (99, 100, 101)] == [0, 0, 100] and count_landmarks(0, 10) == 0
    rng = np.random.default_rng(0)
    assert thin(50, 1, 20, rng).tolist() == list(range(50)), "thirty for each landmark, and the first"
    rows = thin(51, 1, 20, rng)
    assert len(set(rows)) == 50 and rows.tolist() == sorted(rows) and rows[:20].tolist() == list(range(20))
    data = as_data(np.arange(100.0)[:, None])
    assert len(choose_observations(HessianICA(landmarks=2), data, 10)) == 70
    assert len(choose_observations(HessianICA(landmarks=0), data, 10)) == 100
    assert len(choose_observations(HessianICA(landmarks=3), data, 10)) == 100


def test_images_of_eight_pixels_and_more_are_blurred_by_a_thirty_second_of_their_width():
    assert blur_widths("auto", (100,)) == blur_widths("auto", (7, 9)) == [0.0]
    assert blur_widths("auto", (8, 8)) == [0.0, 1.0] and blur_widths("auto", (3, 64, 96)) == [0.0, 2.0]
    assert blur_widths(0.5, (3,)) == [0.5] and blur_widths(0, (8, 8)) == [0.0]


def test_fifty_points_are_needed_to_count_factors():
    check_enough_points(50, "auto")
    check_enough_points(3, 1)
    with pytest.raises(InputError, match="n_samples=49 is too few to find factors: at least 50"):
        check_enough_points(49, "auto")


def view(score: float | None = None, curve: bool | None = None, persistence: float = 3.0, may: bool = True) -> View:
    """A view with an embedding of some isometry, and a curve that is certain or not."""
    choice = ColumnChoice((0,), score or 0.0)
    trial = None if score is None else Embedding(5, 1, np.zeros((3, 1)), np.zeros(2), choice, {})
    found: Any = None if curve is None else Fit(curve)
    none: Any = None
    return View(0.0, none, none, Loop(np.zeros(3), persistence, 1.0, 5), found, trial, may)


class Fit:
    """A curve of which only the certainty matters."""

    def __init__(self, certain: bool) -> None:
        self.certain = certain


def test_a_curve_is_taken_where_it_is_certain_or_distances_are_lost():
    assert view(None, True).is_curve and view(0.95, True).is_curve and view(0.89, False).is_curve
    assert not view(0.9, False).is_curve and not view(None, False).is_curve and not view(0.1).is_curve
    assert not view(0.1, True, may=False).is_curve


def test_a_blur_is_taken_where_it_shows_a_loop_or_distances_clearly_better():
    assert views.MIN_ISOMETRY_GAIN == 0.02
    assert view(0.53).is_better(view(0.5)) and not view(0.51).is_better(view(0.5))
    assert not view(0.5).is_better(view(0.6))
    assert view(None, True).is_better(view(0.99)) and not view(0.99).is_better(view(None, True))
    assert view(None, True, 3.7).is_better(view(None, True, 3.0))
    assert not view(None, True, 3.5).is_better(view(None, True, 3.0))
    assert view(0.99, True).is_better(view(0.98)), "a curve is better whatever the distances"
