"""Accuracies of a classifier on unseen nuisances, the probe of its codes, and what its decoder explains."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.metrics import r2_score

from unweave.catalog import load
from unweave.data.core import Factor, split_rows
from unweave.datasets import Unseen
from unweave.datasets.colored import Painted
from unweave.experiments.run import read_run
from unweave.methods import SwapContrast, VAEClassifier
from unweave.metrics import average_accuracy, nuisance_probe, worst_group_accuracy
from unweave.papers.swap_contrast.palettes import all_test_points

LABEL = {"shapes3d": "shape", "mpi3d": "shape"}  # of digits it is the first factor
NEW_FACTOR = {"shapes3d": "object", "mpi3d": "color"}  # has values in the test set that training lacks
MAX_TEST_IMAGES = 90_000  # of digits, unless all are taken
MAX_PROBE_IMAGES = 20_000  # of the test set, half to train the probe


class Scoring(NamedTuple):
    """What is computed of a run, and from which data."""

    train: Unseen
    """Recipe of its training set, which also names its test set."""
    all_digits: bool = False
    """Every test digit in a random color, instead of some in every color."""
    probe: bool = True
    """Probe the codes for nuisances."""
    refit: bool = False
    """Refit the classifier on the frozen codes first."""


def score_run(folder: Path, scoring: Scoring) -> list[dict[str, float]]:
    """Compute accuracies and the probe of a run: over all of the test set, and at each of its angles."""
    method = load(folder)
    if scoring.refit:
        method.set_params(refit_classifier=True).after_training(scoring.train.load())
    c, factors, z = encode_test_set(folder, method, scoring)
    names, of = [f.name for f in factors], scoring.train.of
    label = names.index(LABEL.get(of, names[0]))
    nuisances = [j for j, f in enumerate(factors) if j != label and not f.noise]
    predicted, y = predict_from_codes(method, z), c[:, label]
    # All nuisances of 3DShapes and MPI3D make more groups than there are observations: there, only the new one.
    group = c[:, nuisances if "mnist" in of else [names.index(NEW_FACTOR[of])]]
    angle = c[:, names.index("angle")].astype(int) if "angle" in names else np.zeros(len(y), int)
    overall = {"explained": explained_variance(method, scoring.train)}
    if scoring.probe:
        sample = np.random.default_rng(0).permutation(len(y))[:MAX_PROBE_IMAGES]
        probe = nuisance_probe(c[sample][:, nuisances], method.select_predictive(torch.from_numpy(z)).numpy()[sample])
        overall = {"probe": probe.accuracy, "chance": probe.chance} | overall
    scores = []
    for at in [-1, *(np.unique(angle) if "angle" in names else ())]:
        rows = (angle == at) | (at < 0)
        each = {
            "angle": np.nan if at < 0 else float(factors[names.index("angle")].values[at]),
            "average": average_accuracy(y[rows], predicted[rows]),
            "worst": worst_group_accuracy(y[rows], predicted[rows], group[rows]),
            "worst of class": worst_group_accuracy(y[rows], predicted[rows], np.c_[y, group][rows]),
        }
        scores.append(each | (overall if at < 0 else {}))
    return scores


def encode_test_set(folder: Path, method: Any, scoring: Scoring) -> tuple[np.ndarray, tuple[Factor, ...], np.ndarray]:
    """Return factors and codes of the test set; digits in every color, or all digits in random ones."""
    if "mnist" not in scoring.train.of:
        done = read_run(folder)
        return done.truth, done.factors, done.codes
    data = replace(scoring.train, part="test").load()
    assert isinstance(data, Painted)
    step = max(1, len(data.gray) * prod(map(len, data.allowed)) // MAX_TEST_IMAGES)
    points = torch.cartesian_prod(torch.arange(0, len(data.gray), step), *data.allowed)
    points = all_test_points(data) if scoring.all_digits else points
    z = [method.transform(data.render(part)) for part in split_rows(points, 10_000)]
    return data.labels(points).numpy(), data.factors, np.concatenate(z)


def explained_variance(method: Any, train: Unseen) -> float:
    """Compute the share of the variance of training images in reconstructions; NaN without a decoder."""
    if not isinstance(method, SwapContrast | VAEClassifier):
        return np.nan
    x = train.load().draw(1_000, torch.Generator().manual_seed(0)).x
    reconstructed = method.inverse_transform(method.transform(x))
    return float(r2_score(x.flatten(1), reconstructed.reshape(len(x), -1), multioutput="variance_weighted"))


def predict_from_codes(method: Any, codes: np.ndarray) -> np.ndarray:
    """Return the predicted level of the label, (n,)."""
    with torch.no_grad():
        logits = method.net_.classifier(method.select_predictive(torch.from_numpy(codes).float()))
    return np.asarray(method.levels_)[logits.argmax(1).numpy()].astype(float)
