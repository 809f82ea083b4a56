"""Logistic regression on codes, as weight and bias of a linear layer."""

from __future__ import annotations

import torch
from sklearn.linear_model import LogisticRegression
from torch import Tensor

WEIGHT_DECAY = 1e-4  # relative to the mean square of the codes


def fit_classifier(z_p: Tensor, u: Tensor) -> dict[str, Tensor]:
    """Return weight and bias of a logistic regression of classes u (n,), which all occur, on codes z_p (n, p)."""
    decay = WEIGHT_DECAY * float(z_p.double().square().mean())  # relative, so that the scale of codes does not matter
    model = LogisticRegression(C=1 / (2 * len(u) * max(decay, 1e-12)), max_iter=1_000)
    model.fit(z_p.double().numpy(), u.numpy())
    weight, bias = torch.from_numpy(model.coef_), torch.from_numpy(model.intercept_)
    if len(weight) == 1:  # two classes have one row, their difference
        weight, bias = torch.cat([-weight, weight]) / 2, torch.cat([-bias, bias]) / 2
    return {"weight": weight, "bias": bias}
