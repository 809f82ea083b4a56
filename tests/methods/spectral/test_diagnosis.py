"""The diagnosis in sentences."""

import warnings

import numpy as np
import pytest
import torch
from sklearn.exceptions import ConvergenceWarning

from tests.helpers import swiss_roll
from unweave.methods import HessianICA, LaplacianICA
from unweave.methods.linear import MIN_KURTOSIS_ROWS
from unweave.methods.spectral.closed_curve import ClosedCurve, CurveFit
from unweave.methods.spectral.diagnosis import (
    describe_blur,
    describe_curve,
    describe_dimension,
    describe_eigenvectors,
    describe_gaussian_factors,
    describe_independence,
    describe_isometry,
    describe_loop,
    describe_recovery,
    is_recovered,
)
from unweave.methods.spectral.independence import Dependence
from unweave.methods.spectral.isometry import ColumnChoice, Pairs
from unweave.methods.spectral.loops import Loop
from unweave.methods.spectral.point_cloud import Embedding
from unweave.metrics import mcc


def test_a_single_gaussian_factor_is_not_reported():
    rng = np.random.default_rng(0)
    z = np.column_stack([rng.normal(size=1500), rng.uniform(-2, 2, 1500)])
    method = HessianICA(latent_dim=2, n_neighbors=14).fit(z)
    assert not any("Gaussian" in text for text in method.diagnosis_)
    assert mcc(z, method.codes_) > 0.97


def test_few_points_are_reported():
    method = HessianICA(latent_dim=1, n_neighbors=6).fit(np.linspace(0, 1, 20)[:, None] ** [[1, 1.0]])
    assert any("20 points are too few to assess" in text for text in method.diagnosis_)


def test_gaussian_factors_are_reported_with_their_kurtosis():
    z = np.random.default_rng(0).normal(size=(1500, 2))
    with pytest.warns(ConvergenceWarning, match=r"excess kurtosis .* \(0 is Gaussian\)"):
        method = HessianICA(latent_dim=2, n_neighbors=14).fit(z)
    assert any("close to Gaussian" in text and "ICA cannot fix its rotation" in text for text in method.diagnosis_)


def test_a_lack_of_isometry_is_reported():
    x = np.random.default_rng(0).uniform(size=(600, 8))
    method = HessianICA(latent_dim=2, n_neighbors=20).fit(x)
    assert method.isometry_ < 0.7
    assert any("does not keep near distances" in text for text in method.diagnosis_)


def test_noise_is_no_lack_of_isometry():
    """Near distances are noise, which says nothing about codes whose MCC is high."""
    rng = np.random.default_rng(0)
    z = rng.uniform(-1, 1, (700, 2))
    x = np.pad(z, ((0, 0), (0, 8))) + 0.05 * rng.normal(size=(700, 10))
    method = HessianICA(latent_dim=2).fit(x)
    assert mcc(z, method.codes_) > 0.99
    assert method.isometry_ < 0.8
    assert any("keeps near distances, but for noise" in text for text in method.diagnosis_)


def test_a_factor_that_is_lost_is_a_lack_of_isometry():
    """A roll with too few points: codes repeat a factor, and the score is not even low."""
    x, z = swiss_roll(150)
    method = HessianICA(latent_dim=2).fit(x)
    assert mcc(z, method.codes_) < 0.8
    assert method.isometry_ > 0.6
    assert any("does not keep near distances" in text for text in method.diagnosis_)


def test_laplacian_eigenmaps_need_not_keep_distances():
    z = np.random.default_rng(0).uniform(-1, 1, (600, 2))
    method = LaplacianICA(latent_dim=2, n_neighbors=12).fit(z)
    assert not any("does not keep near distances" in text for text in method.diagnosis_)
    assert any("need not keep near distances" in text for text in method.diagnosis_)


def test_few_rows_are_not_reported_as_gaussian():
    for n, reported in ((150, False), (1500, True)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            z = np.random.default_rng(3).normal(size=(n, 2))
            method = HessianICA(latent_dim=2, n_neighbors=14, loops="never").fit(z)
        assert any("close to Gaussian" in text for text in method.diagnosis_) == reported


def test_a_coarse_grid_is_reported():
    z = np.stack(np.meshgrid(np.arange(20.0), np.arange(20.0)), -1).reshape(-1, 2)
    on_grid = HessianICA(latent_dim=2, n_neighbors=12).fit(z + 1e-9 * np.random.default_rng(0).normal(size=z.shape))
    assert any("coarse grid" in text for text in on_grid.diagnosis_)
    spread = HessianICA(latent_dim=2, n_neighbors=12).fit(np.random.default_rng(0).uniform(size=(400, 2)))
    assert not any("coarse grid" in text for text in spread.diagnosis_)


# Sentences, from numbers ----------------------------------------------------------------------------------------------

VOTES = {"likelihood": 2.1, "gap": 2, "lowest": 1, "highest": 3, "isometry in 2 dimensions": 0.95}


def embedding_of(score=0.5, columns=(0, 1), angle=None):
    return Embedding(9, 2, np.zeros((5, 2)), np.zeros(3), ColumnChoice(columns, score), {}, angle)


def loop_of(persistence, second=1.0):
    return Loop(np.zeros(5), persistence, second, 9)


def test_the_dimension_is_described_with_its_certainty():
    estimates = "1 to 3 by all estimates; likelihood 2.1, gap 2, isometry in 2 dimensions 0.95"
    assert describe_dimension(2, VOTES) == f"The data seem to have 2 dimensions (sure, {estimates})."
    assert "(fairly sure, " in describe_dimension(2, VOTES | {"gap": 3})
    assert "1 dimension (not sure" in describe_dimension(1, VOTES)
    assert "(fairly sure, " in describe_dimension(2, VOTES | {"likelihood": 2.6})
    more = VOTES | {"isometry in 3 dimensions": 0.98}
    assert describe_dimension(2, more).endswith(
        "The isometry in 3 dimensions is higher, because of noise or of a small factor: compare latent_dim=3."
    )
    assert "compare" not in describe_dimension(2, VOTES | {"isometry in 3 dimensions": 0.96})


def test_blurs_and_curves_are_described():
    assert describe_blur(0) == [] and describe_blur(1.0) == ["Images were blurred by 1 pixel."]
    assert describe_blur(1.5) == ["Images were blurred by 1.5 pixels."]
    curve = ClosedCurve(torch.zeros(3, 2), torch.zeros(3))
    sure = describe_curve(CurveFit(curve, True, True, np.pi / 18, loop_of(3.0)))
    assert sure == [
        "The data are a closed loop (persistence 3.0): code 1 is an angle in radians, period 2 pi.",
        "It counts steps along the loop; loops='arc-length' would change it by 10.0 degrees (median).",
    ]
    doubtful = describe_curve(CurveFit(curve, False, False, 0.0, loop_of(3.0)))
    assert "but noise or few points make that uncertain: code 1" in doubtful[0]
    assert doubtful[1] == "It is arc length along the loop; loops='steps' would change it by 0.0 degrees (median)."


@pytest.mark.parametrize(
    ("persistence", "second", "score", "angle", "is_curve", "start", "end"),
    [
        (3.0, 1.0, 0.9, True, False, "The data go around a loop (persistence 3.0): code 1 is an angle", "period 2 pi."),
        (3.0, 1.0, 0.85, True, True, "The data go around a loop (persistence 3.0): code 1", "trust the angle alone."),
        (3.0, 1.0, 0.9, False, True, "The data are a closed loop (persistence 3.0): latent_dim=1", "gives its angle."),
        (2.4, 1.0, 0.9, False, False, None, None),
        (2.5, 1.0, 0.9, False, False, "The data seem to go around a loop (persistence 2.5)", "all codes are linear."),
        (3.0, 2.9, 0.9, False, False, "The data go around several loops (persistence 3.0 and 2.9)", "are linear."),
        (3.0, 2.5, 0.9, False, False, "The data seem to go around a loop", "are linear."),
        (3.0, 1.0, 0.96, False, False, "The data go around a loop (persistence 3.0), but lie flat", "are linear."),
        (3.0, 1.0, 0.95, False, False, "The data seem to go around a loop", "are linear."),
    ],
)
def test_loops_are_described(persistence, second, score, angle, is_curve, start, end):
    embedding = embedding_of(score, angle=np.zeros(5) if angle else None)
    texts = describe_loop(loop_of(persistence, second), embedding, is_curve=is_curve)
    assert len(texts) == (start is not None)
    assert all(text.startswith(start) and text.endswith(end) for text in texts)


PAIRS = Pairs(np.arange(20), np.arange(20), np.linspace(0.5, 1, 20))
SEEN = {"blurred": False, "projected": False, "linear": True, "straightened": False}


def test_isometry_is_described_with_what_the_method_saw():
    def start(score, averaged, **seen):
        (text,) = describe_isometry(score, averaged, PAIRS, **SEEN | seen)
        return text.partition(" (local")[0]

    assert start(0.96, 0.96) == "The embedding keeps near distances"
    assert start(0.95, 0.96) == "The embedding keeps near distances"
    assert start(0.94, 0.96) == "The embedding keeps near distances, but for noise"
    assert start(0.94, 0.95) == start(0.5, 0.86) == "The embedding keeps near distances roughly"
    assert start(0.5, 0.859).startswith("The embedding does not keep near distances: the data are not isometric")
    assert start(0.5, 0.82, straightened=True) == "The embedding keeps near distances roughly"
    assert start(0.5, 0.80, straightened=True).startswith("The embedding does not keep near distances")
    assert start(0.5, 0.5, linear=False).startswith("The codes are curved functions of the factors, which need not")
    for seen, text in (
        ({}, "averages; 1 is perfect"),
        ({"projected": True}, "sees them, projected; 1"),
        ({"blurred": True}, "averages of observations as the method sees them, blurred and projected;"),
    ):
        assert text in describe_isometry(0.5, 0.9, PAIRS, **SEEN | seen)[0]
    for count, texts in ((11, 2), (12, 1)):
        grid = PAIRS._replace(dx=np.repeat(np.linspace(0.1, 1, count), 3))
        assert len(describe_isometry(0.5, 0.9, grid, **SEEN)) == texts


def test_dependence_is_described_by_its_size():
    def text(correlation, p, straightened=False):
        return describe_independence(Dependence((0, 2), correlation, p), straightened=straightened)

    independent = "The codes are independent (largest distance correlation 0.11; 0 is independent)."
    assert text(0.11, 0.005) == [independent] and text(0.5, 0.02)[0].startswith("The codes are independent")
    weakly = "Codes 1 and 3 are dependent (distance correlation 0.12, p < 0.01), but weakly: the data are only nearly"
    assert text(0.12, 0.01)[0].startswith(weakly) and "but weakly" in text(0.29, 0.005)[0]
    assert text(0.3, 0.005)[0].endswith("The codes are coordinates of the surface, not its factors.")
    for correlation in (0.1, 0.2, 0.4):
        first, second = text(correlation, 0.005, straightened=True)
        assert first.startswith("A linear map left the codes dependent") and second == text(correlation, 0.005)[0]


def test_codes_look_like_factors_if_they_keep_distances_and_are_independent():
    def recovered(averaged, correlation, gaussian=(), straightened=False):
        return is_recovered(averaged, Dependence((0, 1), correlation, 0.0), [*gaussian], straightened=straightened)

    assert recovered(0.87, 0.29) and not recovered(0.86, 0.1) and not recovered(0.87, 0.3)
    assert recovered(0.82, 0.29, straightened=True) and not recovered(0.81, 0.1, straightened=True)
    assert not recovered(0.99, 0.0, ["Factor 1 is close to Gaussian"])
    assert describe_recovery(True) == "The factors seem to be recovered."
    assert describe_recovery(False) == "Do not take these codes for the factors: see above."


def test_selected_eigenvectors_and_small_gaps_are_described():
    assert describe_eigenvectors(embedding_of(columns=(0, 2)), 9.0) == [
        "Eigenvectors 1, 3 were selected: earlier ones only repeat a factor."
    ]
    gap = "The eigenvalues have no gap after 2 (1.9 times): other choices are near."
    assert describe_eigenvectors(embedding_of(), 1.9) == [gap] and describe_eigenvectors(embedding_of(), 2.0) == []


def test_two_gaussian_factors_are_described_and_one_is_not():
    kurtosis, error = np.array([0.05, -1.2, 0.3]), np.array([0.01, 0.05, 0.2])
    first, third = describe_gaussian_factors(kurtosis, error, 1_000)
    assert first == "Factor 1 is close to Gaussian (excess kurtosis 0.05 +- 0.02): ICA cannot fix its rotation."
    assert third.startswith("Factor 3 is close to Gaussian (excess kurtosis 0.30 +- 0.40)")
    assert describe_gaussian_factors(kurtosis[:2], error[:2], 1_000) == []
    assert len(describe_gaussian_factors(np.array([-0.09, 0.09]), error[:2] / 9, 1_000)) == 2
    assert describe_gaussian_factors(np.array([-0.1, 0.1]), error[:2] / 99, 1_000) == []
    assert describe_gaussian_factors(kurtosis, error, MIN_KURTOSIS_ROWS - 1) == []
    assert len(describe_gaussian_factors(kurtosis, error, MIN_KURTOSIS_ROWS)) == 2
