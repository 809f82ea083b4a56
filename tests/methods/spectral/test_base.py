"""Spectral methods on images and tables, and settings that cannot work."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from tests.helpers import flat_sheet, swiss_roll
from unweave import InputError
from unweave.datasets import Faces, SquaresXC, SquaresXY
from unweave.methods import HessianICA, LaplacianICA, LinearICA
from unweave.methods.spectral import base
from unweave.methods.spectral.isometry import ColumnChoice
from unweave.methods.spectral.loops import Loop
from unweave.methods.spectral.point_cloud import Embedding
from unweave.metrics import mcc


def test_hessian_ica_unrolls_a_swiss_roll_and_encodes_new_points():
    x, z = swiss_roll(2200)
    codes = HessianICA(n_neighbors=12).fit(x[:2000]).transform(x)
    assert mcc(z[:2000], codes[:2000]) > 0.999
    assert mcc(z[2000:], codes[2000:]) > 0.999
    assert mcc(z, LinearICA().fit_transform(x)) < 0.75, "a linear map can give the height alone"


def test_hessian_ica_finds_position_in_images_of_squares():
    data = SquaresXY(points=1000, size=32, side=10).load()
    codes = HessianICA().fit(data).transform(data.render(data.sources))
    assert mcc(data.sources, codes) > 0.99


def test_automatic_blur_recovers_a_factor_that_hard_edges_hide():
    """On hard-edged images a linear map of HLLE has lost a factor; by default they are blurred, and it has both."""
    data = SquaresXC(points=500, size=32, side=10).load()
    sharp, automatic = (HessianICA(latent_dim=2, smooth=smooth).fit(data) for smooth in (0.0, "auto"))

    def explained(method):
        y = np.column_stack([method.embedding_.numpy(), np.ones(500)])
        z = data.sources.numpy()
        return 1 - (z - y @ np.linalg.lstsq(y, z, rcond=None)[0]).var(0) / z.var(0)

    assert explained(sharp).min() < 0.7
    assert explained(automatic).min() > 0.95
    assert mcc(data.sources, automatic.codes_) > 0.99
    assert automatic.smooth_ == 1.0
    assert any("blurred by 1 pixel." in text for text in automatic.diagnosis_)
    blurred = SquaresXC(points=500, size=32, side=10, blur=1.0).load()
    assert HessianICA().fit(blurred).smooth_ == 0, "smooth images need no blur"


def test_flat_data_with_an_exactly_singular_operator_are_solved():
    """Flat data make the Hessian operator exactly singular, which a sparse factorization alone does not survive."""
    z = np.random.default_rng(0).uniform(-1, 1, (600, 2))
    assert mcc(z, HessianICA().fit_transform(z @ np.random.default_rng(1).normal(size=(2, 6)))) > 0.99


def test_two_factors_of_real_faces_are_recovered(real_data):
    """3,000 images of a face generator, two directions of its latent space (Horan et al., 2021, Sec. 4)."""
    if not Faces().is_available():
        pytest.skip("faces-01.zip is not in UNWEAVE_DATA")
    data = Faces().load()
    linear, hessian = (mcc(data.c, m.fit_transform(data)) for m in (LinearICA(), HessianICA()))
    assert hessian > 0.97 > linear


def test_laplacian_ica_recovers_factors_of_similar_range_only():
    z = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    assert mcc(z, LaplacianICA(latent_dim=2, n_neighbors=12).fit(z).transform(z), correlation="spearman") > 0.95
    long = z * [6, 1]
    assert mcc(long, LaplacianICA(latent_dim=2, n_neighbors=12).fit(long).transform(long)) < 0.8, (
        "sensitive to rescaling"
    )
    assert mcc(long, HessianICA(latent_dim=2, n_neighbors=12).fit(long).transform(long)) > 0.99


def test_repeated_rows_change_nothing():
    x, _ = swiss_roll(800)
    once = HessianICA(n_neighbors=12).fit(x)
    thrice = HessianICA(n_neighbors=12).fit(np.repeat(x, 3, axis=0))
    assert torch.equal(once.codes_, thrice.codes_)


def test_scales_and_repeats_do_not_matter():
    x, z = flat_sheet(900, 2)
    for scale in (1e-25, 1e19):
        assert mcc(z, HessianICA(latent_dim=2, n_neighbors=12).fit(scale * x).transform(scale * x)) > 0.99
    many = np.repeat(x[:300], 20, 0)
    method = HessianICA(latent_dim=2, n_neighbors=12).fit(many)
    assert len(method.points_) == 300
    assert any("5,700 observations repeat others" in text for text in method.diagnosis_)
    assert not any("landmarks" in text for text in method.diagnosis_)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"samples": 0}, "samples=0"),
        ({"latent_dim": 9}, "latent_dim=9 is more than the data allow: n_features=4"),
        ({"latent_dim": 2, "n_neighbors": 5}, "at least 6"),
        ({"smooth": -1.0}, "smooth=-1"),
        ({"smooth": 1.0}, "rows of numbers"),
        ({"landmarks": -5}, "landmarks=-5"),
        ({"landmarks": "few"}, "landmarks='few'"),
        ({"on_disconnected": "ignore"}, "on_disconnected='ignore'"),
    ],
)
def test_settings_that_cannot_work_are_named(settings, text):
    with pytest.raises(InputError, match=text):
        HessianICA(**settings).fit(np.random.default_rng(0).uniform(size=(200, 4)))


def test_too_few_points_and_constant_data_are_errors():
    with pytest.raises(InputError, match="n_samples=5 is too few"):
        HessianICA(latent_dim=2).fit(np.random.default_rng(0).uniform(size=(5, 4)))
    with pytest.raises(InputError, match="constant"):
        HessianICA(latent_dim=2).fit(np.ones((50, 4)))
    with pytest.raises(InputError, match="NaN"):
        HessianICA(latent_dim=2).fit(np.full((50, 4), np.nan))


def test_constant_columns_are_ignored():
    x, z = flat_sheet(800, 2)
    padded = np.column_stack([x, np.full(800, 5.0)])
    assert mcc(z, HessianICA(latent_dim=2, n_neighbors=12).fit_transform(padded)) > 0.99


@pytest.mark.parametrize(
    ("d", "n_neighbors", "n", "k"), [(2, 30, 99, 10), (4, 30, 99, 12), (4, 11, 99, 11), (4, 30, 9, 8)]
)
def test_maps_for_new_points_have_few_neighbors_each(d, n_neighbors, n, k, monkeypatch):
    sizes = []

    class Maps:
        def __init__(self, points, codes, size, periods):
            sizes.append(size)

        def __call__(self, points):
            return points

    monkeypatch.setattr(base, "AffineMaps", Maps)
    method = HessianICA()
    method.latent_dim_, method.n_neighbors_, method.points_ = d, n_neighbors, torch.zeros(n, 5)
    method.codes_, method.periods_ = torch.zeros(n, d), [None] * d
    method._encode_points(torch.zeros(2, 5))
    method._encode_points(torch.zeros(2, 5))
    assert sizes == [k], "fitted once"


@pytest.mark.parametrize(
    ("settings", "sizes"),
    [
        ({}, (3, 48)),
        ({"latent_dim": 2}, (6, 48)),
        ({"latent_dim": 6}, (28, 56)),
        ({"latent_dim": 2, "n_neighbors": 9}, (9, 9)),
    ],
)
def test_neighborhoods_up_to_forty_eight_points_are_tried(settings, sizes, monkeypatch):
    seen = {}

    def stop(points, rng, **arguments):
        seen.update(arguments)
        raise ZeroDivisionError

    monkeypatch.setattr(base, "build_cloud", stop)
    x = np.random.default_rng(0).uniform(size=(80, 7))
    with pytest.raises(ZeroDivisionError):
        HessianICA(**settings).fit(np.concatenate([x, x[:3]]))
    assert seen["n_neighbors"] == sizes and seen["notes"] == ("3 observations repeat others.",)
    assert seen["size_name"] == "n_samples" and seen["on_disconnected"] == "error"
    with pytest.raises(ZeroDivisionError):
        HessianICA(**settings, landmarks=40).fit(x)
    assert seen["size_name"] == "landmarks" and seen["notes"] == ("40 landmarks are averages of 80 observations.",)


@pytest.mark.parametrize(
    ("d", "n", "count", "direct"),
    [(1, 60, 4, True), (2, 60, 6, True), (3, 60, 6, True), (4, 60, 6, False), (5, 60, 7, False), (3, 7, 5, True)],
)
def test_a_few_more_eigenvectors_than_codes_are_computed(d, n, count, direct, monkeypatch):
    seen = {}

    def solve(operator, number, **arguments):
        seen.update(arguments, number=number)
        return np.arange(number), np.random.default_rng(0).normal(size=(n, number)) * np.arange(number)

    monkeypatch.setattr(base, "smallest_eigenvectors", solve)
    method = HessianICA(seed=5)
    cloud = SimpleNamespace(points=np.zeros((n, 3)))
    monkeypatch.setattr(HessianICA, "operator", lambda self, cloud, k, d: (None, np.ones(n)))
    values, y = method._eigenvectors(cloud, d, 9)
    assert seen.pop("trivial").shape == (n,)
    assert seen == {"number": count, "n_converged": d, "direct": direct, "seed": 5}
    assert len(values) == count and y.std(0).tolist() == pytest.approx([0.0] + [1.0] * (count - 1))


@pytest.mark.parametrize(("cls", "margin"), [(HessianICA, 0.02), (LaplacianICA, np.inf)])
def test_later_eigenvectors_are_selected_for_isometry_where_embeddings_are_linear(cls, margin, monkeypatch):
    margins = []

    def select(y, d, pairs, margin):
        margins.append(margin)
        return ColumnChoice((0, 2), 0.5)

    y = np.arange(12.0).reshape(3, 4)
    monkeypatch.setattr(base, "select_columns", select)
    monkeypatch.setattr(cls, "_eigenvectors", lambda self, cloud, d, k: (np.arange(4), y))
    found = cls()._embed(SimpleNamespace(scored=np.arange(3), pairs=None), 2, 9)
    assert margins == [margin] and (found.k, found.d) == (9, 2) and found.choice.score == 0.5
    np.testing.assert_array_equal(found.y, y[:, [0, 2]])


@pytest.mark.parametrize(
    ("latent_dim", "chosen", "dimensions"),
    [("auto", 4, {2, 3, 4}), ("auto", 1, {1, 2}), ("auto", 2, {1, 2}), (3, 3, {3})],
)
def test_an_angle_is_searched_in_a_few_dimensions(latent_dim, chosen, dimensions, monkeypatch):
    seen = []
    monkeypatch.setattr(base.AngleSearch, "choose", lambda self, embedding, tried: seen.append(set(tried)))
    method = HessianICA(latent_dim=latent_dim)
    embedding = Embedding(9, chosen, np.zeros((3, 1)), np.zeros(2), ColumnChoice((0,), 0.5), {})

    def search(loop):
        method._embed_loop(SimpleNamespace(loop=loop, search=None), embedding)

    search(Loop(np.zeros(3), 3.0, 1.0, 9))
    assert seen == [dimensions]
    for loop in (None, Loop(np.zeros(3), 3.0, 2.9, 9)):
        search(loop)
    assert len(seen) == 1, "without a loop, or with several, there is no angle"


def test_codes_are_centered_and_their_order_gives_an_angle_its_zero():
    np.testing.assert_allclose(base.centered(np.array([[1.0, 2], [3, 6]])), [[-1, -2], [1, 2]])
    method = HessianICA()
    angle = torch.tensor([1.0, 2, 3, 0.5])
    method.periods_, method.codes_ = [None, None], torch.zeros(4, 1)
    method.embedding_ = torch.full((4, 1), 7.0)
    method._encode_points = lambda points: torch.tensor([[2.0], [1.5], [1.0]])  # the first rows, which fall
    method._add_angle(angle, SimpleNamespace(rows=None))
    np.testing.assert_allclose(method.codes_[:, 0], (2 - angle) % (2 * np.pi), rtol=1e-5)
    assert method.periods_ == [2 * np.pi, None] and method.codes_.shape == (4, 2)
    expected = np.column_stack([np.cos(angle), np.sin(angle), np.full(4, 7)])
    np.testing.assert_allclose(method.embedding_, expected, rtol=1e-5)
