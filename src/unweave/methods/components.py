"""Principal components of rows: how many there are, how much variance codes explain, and which columns make them up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from sklearn import decomposition
from torch import Tensor

from unweave.data.scaling import column_blocks
from unweave.utils.errors import InputError, plural

MIN_VARIANCE = 1e-12  # of a component, relative to the first: what is below is rounding error
FOLDS = 10  # of the rows, in cross-validation
MAX_CHOSEN = 50  # components that cross-validation tries
MAX_COLUMNS = 500  # of more, a random subset is used to choose the number of components
MAX_ELEMENTS = 500_000  # of more numbers, a random subset of the rows is used
MIN_UNEXPLAINED = 1e-9  # share of a column that the components must leave open to predict it from the others
MAX_SPECTRUM = 30  # components whose variance is kept for the scree plot
MAX_SPECTRUM_COST = 3e10  # multiplications; the variances of larger data are known of the codes alone
MIN_LOADING = 0.3  # below which a column is not named as a part of a code, unless it is the largest one
MAX_NAMED = 5  # columns that a sentence about a code names
MAX_DESCRIBED = 12  # codes that are described by a sentence


def principal_components(x: Tensor, d: int, seed: int) -> tuple[Tensor, Tensor]:
    """Return the mean (features,) and the d leading principal directions (d, features) of rows x (n, features)."""
    n, features = x.shape
    if d > min(n - 1, features):
        raise InputError(
            f"latent_dim={d} is more than the data allow: n_samples={n} and n_features={features} "
            f"have at most {min(n - 1, features)} directions; lower latent_dim"
        )
    pca = decomposition.PCA(d, random_state=seed).fit(x.numpy())
    rank = int((pca.explained_variance_ > MIN_VARIANCE * pca.explained_variance_[0]).sum())
    if rank < d:
        raise InputError(
            f"latent_dim={d} is more than the data allow: all their columns are combinations of {rank}; lower it"
        )
    return torch.from_numpy(pca.mean_), torch.from_numpy(pca.components_)


# The number of components -----------------------------------------------------------------------------------------


class ComponentChoice(NamedTuple):
    """Number of components, and the error of predicting held-out values from 0, 1, ... components."""

    number: int
    errors: np.ndarray  # (tried + 1,), relative to the variance: 1 for none


def choose_components(x: Tensor, seed: int) -> ComponentChoice:
    """Return the number of components that predict held-out values of rows x (n, features) best; 0 if none does.

    Components are computed without a tenth of the rows. Every value of these rows is then predicted from the other
    columns of its row, by least squares on the components (Wold, 1978; Bro et al., 2008, "eigenvector" method). A
    component that only fits noise, or one column alone, predicts nothing and raises the error.
    """
    rng = np.random.default_rng(seed)
    rows = _choose_rows(x, rng)
    n, features = rows.shape
    most = min(MAX_CHOSEN, features - 1, n - -(-n // FOLDS) - 1)  # one column must be left to predict
    errors = np.zeros(max(0, most) + 1)
    for held_out in np.array_split(rng.permutation(n), min(FOLDS, n)):
        errors += _prediction_errors(np.delete(rows, held_out, 0), rows[held_out], len(errors) - 1)
    return ComponentChoice(int(errors.argmin()), errors / max(errors[0], np.finfo(np.float64).tiny))


def _choose_rows(x: Tensor, rng: np.random.Generator) -> np.ndarray:
    """Return a random part of rows x (n, features) that is small enough for cross-validation, in its order."""
    columns = np.arange(x.shape[1])
    if len(columns) > MAX_COLUMNS:
        columns = np.sort(rng.choice(len(columns), MAX_COLUMNS, replace=False))
    chosen = np.arange(len(x))
    if len(x) * len(columns) > MAX_ELEMENTS:
        chosen = np.sort(rng.choice(len(x), MAX_ELEMENTS // len(columns), replace=False))
    return x.numpy()[np.ix_(chosen, columns)]


def _prediction_errors(train: np.ndarray, test: np.ndarray, most: int) -> np.ndarray:
    """Return the squared errors of test values from 0, ..., `most` components of the training rows, (most + 1,).

    The residual of a column that is predicted from the others by least squares is its ordinary residual divided by
    1 - h, where h is its leverage, so that no column has to be left out in turn.
    """
    center = train.mean(0)
    directions = _leading_directions(train - center, most)
    residual, leverage = test - center, np.zeros(train.shape[1])
    errors = np.full(most + 1, np.inf)
    errors[0] = (residual**2).sum()
    for k, direction in enumerate(directions, 1):
        residual = residual - np.outer(residual @ direction, direction)
        leverage = leverage + direction**2
        if leverage.max() > 1 - MIN_UNEXPLAINED:
            break
        errors[k] = ((residual / (1 - leverage)) ** 2).sum()
    return errors


def _leading_directions(x: np.ndarray, count: int) -> np.ndarray:
    """Return at most `count` principal directions of centered rows, (count, features), without those of no variance."""
    wide = x.shape[1] > x.shape[0]
    values, vectors = np.linalg.eigh(x @ x.T if wide else x.T @ x)
    keep = np.flatnonzero(values > MIN_VARIANCE * values[-1])[::-1][:count]
    return vectors[:, keep].T @ x / np.sqrt(values[keep])[:, None] if wide else vectors[:, keep].T


# Variance and loadings --------------------------------------------------------------------------------------------


def variance_spectrum(x: Tensor) -> np.ndarray:
    """Return the shares of the variance of the leading principal components of rows x (n, features), at most 30.

    Empty where they cost too much.
    """
    n, features = x.shape
    if min(n, features) ** 2 * max(n, features) > MAX_SPECTRUM_COST:
        return np.zeros(0)
    centered = (x - x.mean(0)).numpy()
    values = np.linalg.eigvalsh(centered @ centered.T if features > n else centered.T @ centered)[::-1]
    return np.maximum(values[:MAX_SPECTRUM] / values.sum(), 0)


def variance_shares(x: Tensor, z: Tensor, directions: Tensor) -> np.ndarray:
    """Return the share of the variance of rows x (n, features) that each code explains, (d,).

    Args:
        x: Observations, (n, features).
        z: Their codes, (n, d), which must be uncorrelated.
        directions: Change of the observations with each code, (d, features).
    """
    return (z.var(0) * directions.square().sum(1) / x.var(0).sum()).numpy()


def column_loadings(x: Tensor, z: Tensor) -> np.ndarray:
    """Return the correlation of each code with each column, (n, features), (n, d) -> (d, features); 0 for constants."""
    codes = z - z.mean(0)
    codes = codes / codes.square().sum(0).sqrt().clamp(min=torch.finfo(codes.dtype).tiny)
    parts = []
    for block in column_blocks(x):  # no centered copy of all columns
        columns = block - block.mean(0)
        norms = columns.square().sum(0).sqrt()
        parts.append(torch.where(norms > 0, codes.T @ columns / norms, 0.0))
    return torch.cat(parts, 1).clamp(-1, 1).numpy()


def format_share(share: float) -> str:
    """Return a share as text.

    >>> format_share(0.413), format_share(0.002)
    ('41 %', '<1 %')
    """
    return "<1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"


def describe_codes(shares: np.ndarray, loadings: np.ndarray, names: Sequence[str]) -> list[str]:
    """Return a sentence for each code: its share of the variance (d,), and the columns with the largest loadings."""
    texts = []
    for j, (share, row) in enumerate(zip(shares[:MAX_DESCRIBED], loadings, strict=False), 1):
        order = np.argsort(-np.abs(row), kind="stable")[:MAX_NAMED]
        largest = [i for rank, i in enumerate(order) if rank == 0 or abs(row[i]) >= MIN_LOADING]
        signs = {"+": [i for i in largest if row[i] > 0], "-": [i for i in largest if row[i] <= 0]}
        parts = [f"{s} " + ", ".join(f"{names[i]} ({row[i]:.2f})" for i in own) for s, own in signs.items() if own]
        texts.append(f"Code {j}: {format_share(share)} of the variance; {'; '.join(parts)}.")
    if len(shares) > MAX_DESCRIBED:
        texts.append(f"{plural(len(shares) - MAX_DESCRIBED, 'further code')}: see loadings_ and the loading chart.")
    return texts


def describe_choice(choice: ComponentChoice) -> str:
    """Return how the number of codes was chosen, in one sentence."""
    if choice.number == 0:
        return "No component predicts held-out values of the other columns: they share nothing, and one code is kept."
    limit = f" (at most {MAX_CHOSEN} are tried)" if choice.number == MAX_CHOSEN else ""
    count = plural(choice.number, "code")
    verb = "was" if choice.number == 1 else "were"
    return f"{count} {verb} chosen by cross-validation: further ones predict held-out values no better{limit}."
