"""The diagnosis of a spectral embedding in sentences: how far its codes can be trusted."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from unweave.methods.linear import MIN_KURTOSIS_ROWS, find_gaussians
from unweave.methods.spectral.closed_curve import CurveFit
from unweave.methods.spectral.independence import Dependence
from unweave.methods.spectral.isometry import Pairs
from unweave.methods.spectral.loops import Loop, has_several_loops
from unweave.methods.spectral.point_cloud import Embedding
from unweave.utils.errors import plural

MIN_POINTS = 50  # below which the isometry of an embedding says nothing
MIN_DISTANCES = 12  # different near distances, below which points lie on a grid
MIN_EIGENGAP = 2.0  # ratio of eigenvalues, below which the choice of eigenvectors is uncertain
MIN_DIMENSION_GAIN = 0.02  # in isometry, from which more dimensions are worth a mention
MIN_REPORTED_PERSISTENCE = 2.5  # of a loop that no code describes
# Of local averages. Chosen on half of the manifolds of `benchmarks/isometry.py`, and assessed on the others.
HIGH_ISOMETRY, LOW_ISOMETRY = 0.95, 0.86
# Chosen on the first half of the manifolds of `benchmarks/recovery.py`, and assessed on the others.
LOW_STRAIGHT_ISOMETRY = 0.81  # of straightened codes, whose surface is bent more than its factors are
REPORTED_DEPENDENCE, HIGH_DEPENDENCE = 0.12, 0.3  # distance correlations of two codes
MAX_P_VALUE = 0.01


def describe_dimension(d: int, votes: Mapping[str, float]) -> str:
    """Return the dimension that was chosen, how the estimators voted, and whether more may have been missed."""
    estimates = [round(votes["likelihood"]), votes["gap"]]
    certainty = "sure" if estimates == [d, d] else "fairly sure" if d in estimates else "not sure"
    interval = f"{votes['lowest']} to {votes['highest']} by all estimates"
    scores = {name: value for name, value in votes.items() if name.startswith("isometry")}
    listed = ", ".join(
        [
            f"likelihood {votes['likelihood']}",
            f"gap {votes['gap']}",
            *(f"{name} {value}" for name, value in scores.items()),
        ]
    )
    text = f"The data seem to have {plural(d, 'dimension')} ({certainty}, {interval}; {listed})."
    best = max(scores, key=scores.__getitem__)
    if scores[best] > scores.get(f"isometry in {d} dimensions", 1.0) + MIN_DIMENSION_GAIN:
        text += f" The {best} is higher, because of noise or of a small factor: compare latent_dim={best.split()[2]}."
    return text


def describe_blur(sigma: float) -> list[str]:
    """Return whether images were blurred, by `sigma` pixels."""
    return [f"Images were blurred by {sigma:g} pixel{'s' * (sigma != 1)}."] if sigma else []


def describe_curve(fit: CurveFit) -> list[str]:
    """Return that the data are a closed curve, and what its angle measures."""
    text = f"The data are a closed loop (persistence {fit.loop.persistence:.1f})"
    certainty = "" if fit.certain else ", but noise or few points make that uncertain"
    measures = ("counts steps", "arc-length") if fit.even else ("is arc length", "steps")
    degrees = np.degrees(fit.difference)
    return [
        f"{text}{certainty}: code 1 is an angle in radians, period 2 pi.",
        f"It {measures[0]} along the loop; loops={measures[1]!r} would change it by {degrees:.1f} degrees (median).",
    ]


def describe_loop(loop: Loop, embedding: Embedding, *, is_curve: bool) -> list[str]:
    """Return what the codes make of a loop in data that are no curve, or from which more codes were asked for."""
    text = f"a loop (persistence {loop.persistence:.1f})"
    if embedding.angle is not None:
        sparse = embedding.choice.score < LOW_ISOMETRY
        trust = " The points are too sparse for the other codes: trust the angle alone." if sparse else ""
        return [f"The data go around {text}: code 1 is an angle in radians, period 2 pi.{trust}"]
    if is_curve:
        return [f"The data are a closed loop (persistence {loop.persistence:.1f}): latent_dim=1 gives its angle."]
    if loop.persistence < MIN_REPORTED_PERSISTENCE:
        return []
    if has_several_loops(loop):
        both = f"persistence {loop.persistence:.1f} and {loop.second:.1f}"
        return [f"The data go around several loops ({both}), which no angle describes: all codes are linear."]
    if embedding.choice.score > HIGH_ISOMETRY:
        return [f"The data go around {text}, but lie flat, like a sheet with a hole: all codes are linear."]
    return [f"The data seem to go around {text}, but an angle does not keep near distances: all codes are linear."]


def describe_isometry(
    score: float, averaged: float, pairs: Pairs, *, blurred: bool, projected: bool, linear: bool, straightened: bool
) -> list[str]:
    """Return how well the embedding keeps near distances, and whether that score means anything.

    Args:
        score: Local isometry of the codes.
        averaged: Local isometry of local averages, which noise does not lower; see `averaged_isometry`.
        pairs: The pairs of points that the first score compares.
        blurred: Whether images were blurred.
        projected: Whether observations were projected.
        linear: Whether the codes of an isometric manifold are a linear map of its factors.
        straightened: Whether codes were straightened.
    """
    view = "as the method sees them, " + ("blurred and projected" if blurred else "projected")
    view = f" of observations {view}" if blurred or projected else ""
    numbers = f"local isometry {score:.3f}, {averaged:.3f} of local averages{view}; 1 is perfect"
    if not linear:
        return [f"The codes are curved functions of the factors, which need not keep near distances ({numbers})."]
    result = "keeps near distances" if averaged > HIGH_ISOMETRY else "keeps near distances roughly"
    if averaged > HIGH_ISOMETRY and score < HIGH_ISOMETRY:
        result += ", but for noise"
    if averaged < (LOW_STRAIGHT_ISOMETRY if straightened else LOW_ISOMETRY):
        result = "does not keep near distances: the data are not isometric to so few factors, too noisy, or too sparse"
    texts = [f"The embedding {result} ({numbers})."]
    if len(np.unique(np.round(pairs.dx / pairs.dx.max(), 3))) < MIN_DISTANCES:
        texts.append(
            "The points lie on a coarse grid, whose near distances take few values: that score is not reliable."
        )
    return texts


def describe_independence(dependence: Dependence, *, straightened: bool) -> list[str]:
    """Return whether codes are independent, which factors are, and whether they were straightened."""
    texts = []
    if straightened:
        texts.append(
            "A linear map left the codes dependent, since the data are only nearly isometric to independent factors. "
            "They were straightened: what some of them explain of others was subtracted."
        )
    (i, j), correlation, p = dependence
    if correlation < REPORTED_DEPENDENCE or p > MAX_P_VALUE:
        return [
            *texts,
            f"The codes are independent (largest distance correlation {correlation:.2f}; 0 is independent).",
        ]
    numbers = f"Codes {i + 1} and {j + 1} are dependent (distance correlation {correlation:.2f}, p < {MAX_P_VALUE})"
    if correlation < HIGH_DEPENDENCE:
        return [*texts, f"{numbers}, but weakly: the data are only nearly isometric to independent factors."]
    return [
        *texts,
        f"{numbers}: the data are not isometric to independent factors. "
        "The codes are coordinates of the surface, not its factors.",
    ]


def is_recovered(averaged: float, dependence: Dependence, gaussian: list[str], *, straightened: bool) -> bool:
    """Return whether codes look like factors: they keep distances, are independent, and ICA can separate them."""
    lowest = LOW_STRAIGHT_ISOMETRY if straightened else LOW_ISOMETRY
    return averaged > lowest and dependence.correlation < HIGH_DEPENDENCE and not gaussian


def describe_recovery(recovered: bool) -> str:
    """Return the verdict of the diagnosis."""
    return "The factors seem to be recovered." if recovered else "Do not take these codes for the factors: see above."


def describe_eigenvectors(embedding: Embedding, eigengap: float) -> list[str]:
    """Return which eigenvectors were selected, if these are not the first ones."""
    count = len(embedding.choice.columns)
    if embedding.choice.columns != tuple(range(count)):
        chosen = ", ".join(str(c + 1) for c in embedding.choice.columns)
        return [f"Eigenvectors {chosen} were selected: earlier ones only repeat a factor."]
    if eigengap < MIN_EIGENGAP:
        return [f"The eigenvalues have no gap after {count} ({eigengap:.1f} times): other choices are near."]
    return []


def describe_gaussian_factors(kurtosis: np.ndarray, error: np.ndarray, n: int) -> list[str]:
    """Return the factors that ICA cannot separate, from the excess kurtosis of codes and its error, (d,) each.

    A single Gaussian factor is determined by the others. Two can be rotated into each other. Nothing is claimed where n
    rows are too few.
    """
    if n < MIN_KURTOSIS_ROWS:
        return []
    gaussian = sorted({*find_gaussians(kurtosis, error, n), *np.flatnonzero(np.abs(kurtosis) < 0.1).tolist()})
    if len(gaussian) < 2:
        return []
    return [
        f"Factor {j + 1} is close to Gaussian (excess kurtosis {kurtosis[j]:.2f} +- {2 * error[j]:.2f}): "
        "ICA cannot fix its rotation."
        for j in gaussian
    ]
