"""Statistics of a trained flow's outputs in every class."""

from __future__ import annotations

import torch
from torch import Tensor

from unweave.methods.flows.family import Coefficients, Family
from unweave.methods.flows.labels import regression_weights

MIN_CLASS_SAMPLES = 1_000  # observations of a class, if the data have as many
MAX_CONDITIONS = 2_000  # distinct conditions that the rank of the coefficients is computed from


def fill_rare_classes(points: Tensor, r: Tensor, every: Tensor, every_r: Tensor) -> tuple[Tensor, Tensor]:
    """Return a sample of points with enough observations of each class, and their one-hot classes.

    Args:
        points: The sample, (n, p).
        r: One-hot classes of the sample, (n, classes).
        every: All points, (m, p).
        every_r: Their one-hot classes, (m, classes).
    """
    for k in range(r.shape[1]):
        if r[:, k].sum() < MIN_CLASS_SAMPLES:
            other, more = r[:, k] == 0, (every_r[:, k] > 0).nonzero()[:MIN_CLASS_SAMPLES, 0]
            points, r = torch.cat([points[other], every[more]]), torch.cat([r[other], every_r[more]])
    return points, r


def fit_classes(family: Family, y: Tensor, r: Tensor, *, soft: bool) -> Coefficients:
    """Return the coefficients of every class, (classes, d).

    Args:
        family: The distribution of the latent variables.
        y: Outputs of the flow, (n, d).
        r: Class probabilities, (n, classes).
        soft: Whether r are soft labels. One-hot classes are fitted one at a time to save memory.
    """
    if soft:
        return family.fit(y, regression_weights(r))
    each = [family.fit(y[u > 0], torch.full((int(u.sum()), 1), 1 / float(u.sum()))) for u in r.T]
    return Coefficients(*(torch.cat([getattr(c, name) for c in each]) for name in ("first", "second")))


def class_moments(y: Tensor, r: Tensor) -> tuple[Tensor, Tensor]:
    """Return means and deviations of y (n, d) in every one-hot class r (n, classes), (classes, d) each."""
    classes = [y[u > 0] for u in r.T]
    return torch.stack([w.mean(0) for w in classes]), torch.stack([w.std(0, correction=0) for w in classes])


def coefficient_rank(family: Family, c: Coefficients, r: Tensor) -> int:
    """Return in how many independent ways soft labels r (n, classes) vary the coefficients c, (classes, d)."""
    rows = torch.cat([*family.mix(c, torch.unique(r, dim=0)[:MAX_CONDITIONS])], 1).double()
    return int(torch.linalg.matrix_rank((rows - rows[0]) / rows.std(0).clamp(min=1e-9), rtol=1e-4))


def joint_log_prob(family: Family, c: Coefficients, frequencies: Tensor, outputs: Tensor) -> Tensor:
    """Return log p(x, class), (n, classes).

    Args:
        family: The distribution of the latent variables.
        c: Coefficients of every class, (classes, d).
        frequencies: Of the classes, (classes,).
        outputs: Outputs of the flow with log|det J| in the last column, (n, d + 1).
    """
    return class_log_prob(family, c, outputs[:, :-1]) + outputs[:, -1:] + frequencies.log()


def class_log_prob(family: Family, c: Coefficients, y: Tensor) -> Tensor:
    """Return log p(y | class) of outputs y (n, d) from the coefficients c of every class, (n, classes)."""
    classes = (Coefficients(a[None], b[None]) for a, b in zip(*c, strict=True))
    return torch.stack([family.log_prob(y, own).sum(1) for own in classes], 1)


def label_cross_entropy(family: Family, y: Tensor, c: Coefficients, r: Tensor) -> Tensor:
    """Return the mean of -log p(class | y) in nats, from the coefficients c of every class, (classes, d).

    Args:
        family: The distribution of the latent variables.
        y: Outputs of the flow, (n, d).
        c: Coefficients of every class, (classes, d).
        r: One-hot classes, (n, classes), whose frequencies are the prior. Rows of zeros are left out.
    """
    frequencies = r.sum(0) / r.sum()
    prior = torch.where(frequencies > 0, frequencies.log(), -1e9)  # an absent class is improbable, and finite
    log_posterior = (class_log_prob(family, c, y) + prior).log_softmax(1)
    return -(r * log_posterior).sum() / r.sum()
