"""How far the codes of a spectral method can be trusted: numbers and sentences, learned after the codes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unweave.methods.linear import excess_kurtosis
from unweave.methods.spectral.diagnosis import (
    MIN_POINTS,
    describe_blur,
    describe_dimension,
    describe_eigenvectors,
    describe_gaussian_factors,
    describe_independence,
    describe_isometry,
    describe_loop,
    describe_recovery,
    is_recovered,
)
from unweave.methods.spectral.independence import measure_dependence
from unweave.methods.spectral.isometry import averaged_isometry, isometry_score, rescaled_distances
from unweave.methods.spectral.point_cloud import Embedding, PointCloud
from unweave.methods.spectral.views import View
from unweave.utils.errors import plural

if TYPE_CHECKING:
    from unweave.methods.spectral.base import SpectralICA


def assess(method: SpectralICA, view: View, embedding: Embedding) -> None:
    """Learn how far the codes of an embedding can be trusted, in numbers and in sentences."""
    cloud, z = view.search.cloud, method.codes_.numpy()
    distances = rescaled_distances(z[cloud.scored], cloud.pairs, method.periods_)
    method.isometry_ = isometry_score(distances, cloud.pairs.dx)
    linear = z[:, [j for j, period in enumerate(method.periods_) if period is None]]
    kurtosis, error = excess_kurtosis((linear - linear.mean(0)) / linear.std(0))
    method.kurtosis_, method.kurtosis_error_ = kurtosis.tolist(), error.tolist()
    dependence = measure_dependence(z, method.periods_, int(method.seed))
    method.dependence_, method.independence_p_value_ = dependence.correlation, dependence.p_value
    n_vectors = embedding.y.shape[1]
    used, unused = embedding.values[:n_vectors].max(), embedding.values[n_vectors:]
    method.eigengap_ = float(unused.min() / max(used, 1e-300)) if len(unused) else float("inf")
    texts = [*cloud.notes, *describe_blur(method.smooth_)]
    if method.latent_dim == "auto":
        texts.append(describe_dimension(embedding.d, method.dimension_))
    if view.loop:
        texts += describe_loop(view.loop, embedding, is_curve=view.curve is not None and view.curve.certain)
    texts.append(f"The neighbor graph of {embedding.k} neighbors is connected.")
    texts += _assess_isometry(method, cloud)
    if not method.straightened_ and len(cloud.points) >= MIN_POINTS:
        texts += describe_eigenvectors(embedding, method.eigengap_)
    gaussian = describe_gaussian_factors(kurtosis, error, len(z))
    if embedding.d > 1:
        texts += describe_independence(dependence, straightened=method.straightened_)
    averaged, straightened = method.averaged_isometry_, method.straightened_
    method.recovered_ = is_recovered(averaged, dependence, gaussian, straightened=straightened)
    method.diagnosis_ = [*texts, *gaussian, describe_recovery(method.recovered_)]


def _assess_isometry(method: SpectralICA, cloud: PointCloud) -> list[str]:
    """Learn the isometry of local averages, and return the sentences about isometry."""
    method.averaged_isometry_ = 0.0
    if len(cloud.points) < MIN_POINTS:
        return [f"{plural(len(cloud.points), 'point')} are too few to assess the embedding."]
    y = (method.codes_ if method.straightened_ else method.embedding_).numpy()
    method.averaged_isometry_ = averaged_isometry(cloud.points.numpy(), y, cloud.neighbors, cloud.scored)
    scores = method.isometry_, method.averaged_isometry_
    seen = {"blurred": bool(method.smooth_), "projected": bool(method.project), "linear": method.linear}
    return describe_isometry(*scores, cloud.pairs, **seen, straightened=method.straightened_)
