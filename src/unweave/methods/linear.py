"""Linear methods: the baselines every other method must beat."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from math import ceil
from typing import Literal, NamedTuple, final

import numpy as np
import torch
from sklearn import decomposition
from sklearn.exceptions import ConvergenceWarning
from torch import Generator, Tensor

from unweave.data.core import FactorData
from unweave.methods.base import FigureName, Method
from unweave.methods.components import (
    choose_components,
    column_loadings,
    describe_choice,
    describe_codes,
    format_share,
    principal_components,
    variance_shares,
    variance_spectrum,
)
from unweave.utils.errors import constant_data_error

MAX_ICA_ITERATIONS, QUICK_ICA_ITERATIONS = 1_000, 200
MIN_ICA_GAIN = 1.01  # factor in the contrast by which a later run must be better
MAX_ICA_RUNS = 5  # of FastICA, from other random starts, until two converge
MAX_GAUSSIAN_ERRORS = 4  # standard errors of the kurtosis within which a component counts as Gaussian
UNIFORM_KURTOSIS = -1.2  # excess kurtosis of a uniform factor
# The standard error of a Gaussian's kurtosis is sqrt(24 / n). With fewer rows a uniform factor would count as Gaussian.
MIN_KURTOSIS_ROWS = ceil(24 * (MAX_GAUSSIAN_ERRORS / UNIFORM_KURTOSIS) ** 2)


class LinearMethod(Method):
    """Abstract: codes that are linear functions of the observations, and uncorrelated.

    Learned attributes:
        explained_variance_ratio_: Share of the variance that each code explains, (d,).
        loadings_: Correlation of each code with each column, (d, columns); for rows of numbers.
        variance_spectrum_: Shares of the leading principal components, those that are no codes included; may be empty.
        choice_errors_: Cross-validation errors of 0, 1, ... components, where latent_dim is 'auto'.
        diagnosis_: The same in sentences.
    """

    latent_dim: int | Literal["auto"] = 2  # type: ignore[assignment]  # wider than Method's: takes a word
    """Number of codes. auto takes as many principal components as predict held-out values best."""
    samples: int = 10_000
    """Points to draw where the data are a generator or a large grid. Your own rows are always all used."""

    @abstractmethod
    def learn_codes(self, x: Tensor) -> Tensor:
        """Learn `latent_dim_` codes of rows x (n, features); return the change of x with each code, (d, features)."""

    @final
    def learn(self, data: FactorData) -> None:
        x = collect_rows(data, self.samples, self.seed)
        texts = []
        self.__dict__.pop("choice_errors_", None)
        if self.latent_dim == "auto":
            choice = choose_components(x, self.seed)
            self.latent_dim_, self.choice_errors_ = max(1, choice.number), choice.errors
            texts.append(describe_choice(choice))
        directions = self.learn_codes(x)
        z = self.encode(x)
        self.explained_variance_ratio_ = variance_shares(x, z, directions)
        subject = "The code explains" if len(directions) == 1 else f"The {len(directions):,} codes explain"
        texts.append(f"{subject} {format_share(self.explained_variance_ratio_.sum())} of the variance.")
        if len(self.shape_) == 1:
            self.variance_spectrum_, self.loadings_ = variance_spectrum(x), column_loadings(x, z)
            texts += describe_codes(self.explained_variance_ratio_, self.loadings_, self.column_names())
        self.diagnosis_ = texts

    @final
    def column_names(self) -> list[str]:
        """Return the names of the columns; their numbers, counted from 0, where they have none."""
        names = getattr(self, "feature_names_in_", None)
        return [f"column {i}" for i in range(self.shape_[0])] if names is None else [str(name) for name in names]

    def figures(self) -> tuple[FigureName, ...]:
        return (*super().figures(), *(("scree", "loadings") if hasattr(self, "loadings_") else ()))


@final
class PCA(LinearMethod):
    """Principal components: directions of largest variance, uncorrelated but not independent.

    Example:
        >>> import numpy as np
        >>> x = np.random.default_rng(0).normal(size=(100, 5))
        >>> PCA(latent_dim=2).fit_transform(x).shape
        (100, 2)
    """

    name = "pca"
    paper = "Pearson (1901)"

    def learn_codes(self, x: Tensor) -> Tensor:
        self.mean_, self.components_ = principal_components(x, self.latent_dim_, self.seed)
        return self.components_

    def encode(self, x: Tensor) -> Tensor:
        return (x.flatten(1) - self.mean_.to(x)) @ self.components_.to(x).T

    def decode(self, z: Tensor) -> Tensor:
        return z @ self.components_.to(z) + self.mean_.to(z)


@final
class LinearICA(LinearMethod):
    """Independent components of the principal components (FastICA): recovers factors that were mixed linearly.

    Example:
        >>> import numpy as np
        >>> factors = np.random.default_rng(0).uniform(size=(500, 2))
        >>> mixed = factors @ np.array([[2.0, 1.0], [1.0, 3.0]])
        >>> codes = LinearICA(latent_dim=2).fit_transform(mixed)
        >>> bool(np.abs(np.corrcoef(factors[:, 0], codes.T)[0, 1:]).max() > 0.99)
        True
    """

    name = "linear-ica"
    paper = "Hyvarinen and Oja (2000)"

    def learn_codes(self, x: Tensor) -> Tensor:
        self.mean_, components = principal_components(x, self.latent_dim_, self.seed)
        unmixing = unmix((x - self.mean_) @ components.T, self.seed)  # (d, d)
        self.unmixing_ = unmixing @ components  # (d, features)
        self.mixing_ = torch.linalg.pinv(self.unmixing_)
        return self.mixing_.T

    def encode(self, x: Tensor) -> Tensor:
        return (x.flatten(1) - self.mean_.to(x)) @ self.unmixing_.to(x).T

    def decode(self, z: Tensor) -> Tensor:
        return z @ self.mixing_.to(z).T + self.mean_.to(z)


def collect_rows(data: FactorData, samples: int, seed: int) -> Tensor:
    """Return observations as rows, (n, features), in double precision; at most `samples` of endless data."""
    x = data.collect(samples, Generator().manual_seed(int(seed))).x.flatten(1).double()
    if len(x) > 1 and bool((x == x[:1]).all()):
        raise constant_data_error()
    return x


def unmix(y: Tensor, seed: int, *, quick: bool = False) -> Tensor:
    """Return the matrix (d, d) that makes centered rows y (n, d) independent, with unit variance.

    FastICA with G(u) = u^4, which has no spurious optima where no kurtosis is zero (Hyvarinen, 1999). Order and signs
    are free in ICA. Here the least Gaussian component comes first, and the largest weight of each is positive. A quick
    run ends whether or not it has converged.
    """
    # One scale for all columns: embeddings have variance 1/n, at which FastICA's tolerance would stop its first step.
    scale = float(y.std().clamp(min=torch.finfo(y.dtype).tiny))
    fit = _run_fastica((y / scale).numpy(), seed, quick=quick)
    if np.linalg.matrix_rank(fit.components) < len(fit.components):
        # scikit-learn loses a component where the principal axes of y are exactly its columns. Turned, they are not.
        rotation = np.linalg.qr(np.random.default_rng(seed).normal(size=fit.components.shape))[0]
        fit = _run_fastica((y / scale).numpy() @ rotation.T, seed, quick=quick)
        fit = fit._replace(components=fit.components @ rotation)
    kurtosis, error = excess_kurtosis(fit.u)
    _warn_of_gaussians(kurtosis, error, len(fit.u), converged=fit.converged)
    W = fit.components / scale
    W = W[np.argsort(-np.abs(kurtosis), kind="stable")]
    W *= np.sign(W[np.arange(len(W)), np.abs(W).argmax(1)])[:, None]
    return torch.from_numpy(W)


class ICAFit(NamedTuple):
    """A run of FastICA."""

    converged: bool
    contrast: float  # sum of squared excess kurtosis: how far the components are from Gaussian ones
    components: np.ndarray  # the unmixing matrix, (d, d)
    u: np.ndarray  # the components of the rows, (n, d)


def _run_fastica(y: np.ndarray, seed: int, *, quick: bool) -> ICAFit:
    """Return the least Gaussian of two runs that converged, or of all runs from random starts if fewer do.

    A single run may end at a saddle, where two factors are mixed in equal parts.
    """
    best: ICAFit | None = None
    converged = 0
    for run in range(1 if quick else MAX_ICA_RUNS):
        fit = _run_fastica_once(y, seed + run, QUICK_ICA_ITERATIONS if quick else MAX_ICA_ITERATIONS)
        converged += fit.converged
        is_better = best is None or (fit.converged, fit.contrast) > (best.converged, MIN_ICA_GAIN * best.contrast)
        best = fit if is_better else best
        if converged == 2:
            break
    assert best is not None
    return best


def _run_fastica_once(y: np.ndarray, seed: int, max_iterations: int) -> ICAFit:
    ica = decomposition.FastICA(
        fun="cube", whiten="unit-variance", max_iter=max_iterations, tol=1e-6, random_state=seed
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        u = ica.fit_transform(y)
    converged = not any(w.category is ConvergenceWarning for w in caught)
    return ICAFit(converged, float((excess_kurtosis(u)[0] ** 2).sum()), ica.components_, u)


def excess_kurtosis(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return E[u^4] - 3 of standardized columns, and its standard error, (n, d) -> (d,), (d,)."""
    fourth = np.mean(u**4, 0)
    # The influence function, which accounts for the estimated mean and variance.
    influence = u**4 - 2 * fourth * u**2 - 4 * np.mean(u**3, 0) * u
    return fourth - 3, influence.std(0) / np.sqrt(len(u))


def find_gaussians(kurtosis: np.ndarray, error: np.ndarray, n: int) -> list[int]:
    """Return the components that cannot be told from Gaussian ones, by their excess kurtosis and its error, (d,) each.

    None where n rows are too few to tell.
    """
    if n < MIN_KURTOSIS_ROWS:
        return []
    return np.flatnonzero(np.abs(kurtosis) < MAX_GAUSSIAN_ERRORS * error).tolist()


def _warn_of_gaussians(kurtosis: np.ndarray, error: np.ndarray, n: int, *, converged: bool) -> None:
    """Warn with the kurtosis (d,) and its error (d,) of n rows if two components look Gaussian, or FastICA failed.

    Two Gaussian components can be rotated into each other without any effect on their distribution.
    """
    if converged and len(find_gaussians(kurtosis, error, n)) < 2:
        return
    listed = ", ".join(f"{k:.2f} +- {MAX_GAUSSIAN_ERRORS * e:.2f}" for k, e in zip(kurtosis, error, strict=True))
    reason = f"excess kurtosis {listed} (0 is Gaussian). Factors close to Gaussian cannot be separated"
    if n < MIN_KURTOSIS_ROWS:
        reason = f"{n} rows are too few to tell whether the factors are Gaussian, which could not be separated"
    warnings.warn(
        f"ICA {'found no clear axes' if converged else 'did not converge'}: {reason}: "
        "trust the space that the codes span, not their axes",
        ConvergenceWarning,
        stacklevel=4,
    )
