"""Linear methods: the baselines every other method must beat."""

from __future__ import annotations

import warnings
from typing import final

import numpy as np
import torch
from sklearn import decomposition
from sklearn.exceptions import ConvergenceWarning
from torch import Generator, Tensor

from unweave.data.core import FactorData
from unweave.methods.base import Method
from unweave.utils.errors import InputError

RESTARTS = 5  # of FastICA, from other starts, where it does not converge


@final
class PCA(Method):
    """Principal components: directions of largest variance, uncorrelated but not independent."""

    name = "pca"
    paper = "Pearson (1901)"

    samples: int = 10_000
    """points to draw where the data are a generator or a large grid; your own rows are always all used"""

    def learn(self, data: FactorData) -> None:
        x = flat(data, self.samples, self.seed)
        self.mean_, self.components_ = principal_components(x, self.latent_dim, self.seed)

    def encode(self, x: Tensor) -> Tensor:
        return (x.flatten(1) - self.mean_.to(x)) @ self.components_.to(x).T

    def decode(self, z: Tensor) -> Tensor:
        return z @ self.components_.to(z) + self.mean_.to(z)


@final
class LinearICA(Method):
    """Independent components of the principal components (FastICA): recovers factors that were mixed linearly."""

    name = "linear-ica"
    paper = "Hyvarinen and Oja (2000)"

    samples: int = 10_000
    """points to draw where the data are a generator or a large grid; your own rows are always all used"""

    def learn(self, data: FactorData) -> None:
        x = flat(data, self.samples, self.seed)
        self.mean_, components = principal_components(x, self.latent_dim, self.seed)
        unmixing = independent((x - self.mean_) @ components.T, self.seed)  # (d, d)
        self.unmixing_ = unmixing @ components  # (d, features)
        self.mixing_ = torch.linalg.pinv(self.unmixing_)

    def encode(self, x: Tensor) -> Tensor:
        return (x.flatten(1) - self.mean_.to(x)) @ self.unmixing_.to(x).T

    def decode(self, z: Tensor) -> Tensor:
        return z @ self.mixing_.to(z).T + self.mean_.to(z)


def flat(data: FactorData, samples: int, seed: int) -> Tensor:
    """The observations to learn from as rows, (n, features), in double precision."""
    x = data.collect(samples, Generator().manual_seed(int(seed))).x.flatten(1).double()
    if len(x) > 1 and bool((x == x[:1]).all()):
        raise InputError("every column of the data is constant: there is nothing to take apart")
    return x


def principal_components(x: Tensor, d: int, seed: int, *, least: int | None = None) -> tuple[Tensor, Tensor]:
    """The mean (features,) and the d leading directions (d, features) of centered rows x (n, features).

    With `least`, as many of d as the rank of the data gives, but not fewer than that.
    """
    least = least or d
    n, features = x.shape
    if d > min(n - 1, features):
        raise InputError(
            f"latent_dim={d} is more than the data allow: n_samples={n} and n_features={features} "
            f"have at most {min(n - 1, features)} directions; lower latent_dim"
        )
    pca = decomposition.PCA(d, random_state=seed).fit(x.numpy())
    rank = int((pca.explained_variance_ > 1e-12 * pca.explained_variance_[0]).sum())
    if rank < least:
        raise InputError(
            f"latent_dim={least} is more than the data allow: all their columns are combinations of {rank}; lower it"
        )
    return torch.from_numpy(pca.mean_), torch.from_numpy(pca.components_[:rank])


def independent(y: Tensor, seed: int) -> Tensor:
    """The matrix (d, d) that makes centered rows y (n, d) as independent as a linear map can, with unit variance.

    FastICA with G(u) = u^4, which has no spurious optima where all kurtoses differ from zero (Hyvarinen, 1999).
    Order and signs are free in ICA; the rule here is: least Gaussian first, largest weight positive.
    """
    # One scale for all columns: embeddings come with variance 1/n, where FastICA's tolerance would be met at once.
    scale = y.std().clamp(min=torch.finfo(y.dtype).tiny)
    for restart in range(RESTARTS):
        ica = decomposition.FastICA(
            fun="cube", whiten="unit-variance", max_iter=1000, tol=1e-6, random_state=seed + restart
        )
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            u = ica.fit_transform((y / scale).numpy())
        converged = not any(w.category is ConvergenceWarning for w in caught)
        if converged:
            break
    kurtosis, error = excess_kurtosis(u)
    _warn_of_gaussians(kurtosis, error, converged=converged)
    W = ica.components_ / float(scale)
    W = W[np.argsort(-np.abs(kurtosis), kind="stable")]
    W *= np.sign(W[np.arange(len(W)), np.abs(W).argmax(1)])[:, None]
    return torch.from_numpy(W)


def excess_kurtosis(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """E[u^4] - 3 of columns with mean 0 and variance 1, and its standard error, (n, d) -> (d,), (d,)."""
    fourth = np.mean(u**4, 0)
    # One sample's share, mean and variance being estimated too.
    influence = u**4 - 2 * fourth * u**2 - 4 * np.mean(u**3, 0) * u
    return fourth - 3, influence.std(0) / np.sqrt(len(u))


def _warn_of_gaussians(kurtosis: np.ndarray, error: np.ndarray, *, converged: bool) -> None:
    """Two Gaussian directions can be turned into each other and nothing shows it: say so, with the numbers."""
    if converged and (np.abs(kurtosis) < 4 * error).sum() < 2:
        return
    found = ", ".join(f"{k:.2f} +- {2 * e:.2f}" for k, e in zip(kurtosis, error, strict=True))
    warnings.warn(
        f"ICA {'found no clear axes' if converged else 'did not converge'}: excess kurtosis {found} (0 is Gaussian). "
        "Factors close to Gaussian cannot be told apart: trust the space that the codes span, not their axes",
        ConvergenceWarning,
        stacklevel=4,
    )
