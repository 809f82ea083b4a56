"""Settings at the ends of their ranges are accepted, and those just beyond are refused with a reason."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.helpers import X
from unweave.data.conversion import as_data
from unweave.methods import (
    GIN,
    UAI,
    AnnealedVAE,
    BetaTCVAE,
    FactorVAE,
    InfoGANCR,
    InterventionAutoencoder,
    SelfSupervisedGIN,
    SwapContrast,
)
from unweave.methods.flows.labels import check_classes, check_label_loss
from unweave.utils.errors import InputError

FACTORS = pd.DataFrame({"kind": np.arange(200) % 3, "light": np.arange(200) // 3 % 4, "size": np.arange(200) // 12 % 5})
DATA = as_data(X, FACTORS)
CODES = {"predictive_dim": 3, "nuisance_dim": 2, "label": "kind"}

ACCEPTED = [
    (GIN, {"noise": 0.0, "lr": 0.0, "lr_decay_after": 0.0, "blocks": 0, "width": 0, "conv_blocks": 0}),
    (GIN, {"conv_widths": (), "latent_dim": 6, "batch_size": 6, "label_weight": 0.0, "label_dim": 6}),
    (GIN, {"conv_widths": (1,), "latent_dim": "all", "label_weight": 0.1, "label_dim": 0}),
    (SelfSupervisedGIN, {"copies": 2, "noise": 0.01}),
    (SwapContrast, CODES | {"swap_warmup": 0.0, "difficulty_warmup": 0.0, "kl_warmup": 0.0, "temperature": 1e-3}),
    (SwapContrast, CODES | {"swap_warmup": 1.0, "difficulty_warmup": 1.0, "kl_warmup": 1.0, "changed": 2}),
    (SwapContrast, CODES | {"predictive_dim": 1, "nuisance_dim": 1, "latent_dim": 2, "changed": 1}),
    (UAI, {"latent_dim": 2, "dropout": 0.0}),
    (BetaTCVAE, {"batch_size": 2}),
    (BetaTCVAE, {"batch_size": 200, "estimator": "stratified"}),
    (FactorVAE, {"feature_dim": 1, "latent_dim": 1, "batch_size": 2}),
    (FactorVAE, {"feature_dim": 2, "latent_dim": 4}),
    (AnnealedVAE, {"anneal": 1e-3}),
    (InfoGANCR, {"latent_dim": 2, "batch_size": 2, "contrast_after": 0.0, "gap": 0.0, "gap_stages": 1, "noise_dim": 0}),
    (InfoGANCR, {"contrast_after": 1.0, "gap": 1.99}),
    (
        InterventionAutoencoder,
        {"batch_size": 2, "inner_steps": 1, "diff_after": 0.0, "feature_dim": 1, "translator": 1},
    ),
    (InterventionAutoencoder, {"features": 2, "latent_dim": 2, "diff_after": 1.0}),
]
REFUSED = [
    *((GIN, {name: -0.1}, f"{name}=-0.1: expected 0 or more") for name in ("noise", "lr", "lr_decay_after")),
    *((GIN, {name: -1}, f"{name}=-1: expected 0 or more") for name in ("blocks", "width", "conv_blocks")),
    (GIN, {"conv_widths": (4, 0)}, "a layer needs at least one channel"),
    (GIN, {"latent_dim": 7}, "observations of 6 numbers have 6 codes"),
    (GIN, {"batch_size": 5}, "so at least 6"),
    (GIN, {"label_weight": -0.1}, "expected a weight of 0 or more, and 0 to 6 outputs"),
    (GIN, {"label_dim": 7}, "label_dim=7: expected a weight"),
    (GIN, {"label_dim": -1}, "label_dim=-1: expected a weight"),
    (SelfSupervisedGIN, {"copies": 1}, "needs at least two"),
    (SelfSupervisedGIN, {"noise": 0.0}, "all copies of an observation would be the same"),
    *(
        (SwapContrast, CODES | {name: value}, f"{name}={value}: expected a share")
        for name in ("swap_warmup", "difficulty_warmup", "kl_warmup")
        for value in (-0.1, 1.1)
    ),
    (SwapContrast, CODES | {"temperature": 0.0}, "expected a positive number"),
    (SwapContrast, CODES | {"changed": 3}, "2 factors may differ, not more"),
    (SwapContrast, CODES | {"changed": -1}, "2 factors may differ, not more"),
    (SwapContrast, CODES | {"nuisance_dim": 1}, "expected nuisance_dim=2 at least"),
    (SwapContrast, CODES | {"predictive_dim": 0}, "one code of each at least"),
    (SwapContrast, CODES | {"nuisance_dim": 0}, "one code of each at least"),
    (SwapContrast, CODES | {"latent_dim": 6}, "in latent_dim=6: expected one code of each"),
    (UAI, {"latent_dim": 1}, "expected two codes at least"),
    (UAI, {"dropout": 1.0}, "a share below 1"),
    (UAI, {"dropout": -0.1}, "a share below 1"),
    (BetaTCVAE, {"batch_size": 1}, "expected at least 2"),
    (BetaTCVAE, {"batch_size": 201, "estimator": "stratified"}, "batch_size=201 of 200 observations"),
    (FactorVAE, {"feature_dim": 0}, "expected a divisor of latent_dim"),
    (FactorVAE, {"feature_dim": 2, "latent_dim": 3}, "expected a divisor of latent_dim"),
    (FactorVAE, {"feature_dim": 2, "latent_dim": 2}, "expected at least two"),
    (FactorVAE, {"batch_size": 1}, "expected at least 2"),
    (AnnealedVAE, {"anneal": 0.0}, "a share of the steps above 0"),
    (InfoGANCR, {"latent_dim": 1}, "expected two"),
    (InfoGANCR, {"batch_size": 1}, "expected two"),
    *((InfoGANCR, {"contrast_after": v}, "from 0 to 1") for v in (-0.1, 1.1)),
    *((InfoGANCR, {"gap": v}, r"expected a gap in \[0, 2\)") for v in (-0.1, 2.0)),
    (InfoGANCR, {"gap_stages": 0}, "at least one stage"),
    (InfoGANCR, {"noise_dim": -1}, "no negative dimension"),
    (InterventionAutoencoder, {"batch_size": 1}, "another observation of the batch"),
    (InterventionAutoencoder, {"inner_steps": 0}, "expected at least 1"),
    *((InterventionAutoencoder, {"diff_after": v}, "from 0 to 1") for v in (-0.1, 1.1)),
    (InterventionAutoencoder, {"feature_dim": 0}, "feature_dim=0, translator=128: expected at least 1"),
    (InterventionAutoencoder, {"translator": 0}, "translator=0: expected at least 1"),
    (InterventionAutoencoder, {"features": 1}, "expected at least two"),
]


def prepare(cls: Any, settings: dict[str, Any]) -> Any:
    method = cls(**settings)
    method.validate_settings(DATA)
    method.prepare(DATA)
    return method


@pytest.mark.parametrize(("cls", "settings"), ACCEPTED)
def test_the_ends_of_ranges_are_accepted(cls, settings):
    prepare(cls, settings)


@pytest.mark.parametrize(("cls", "settings", "message"), REFUSED)
def test_what_is_beyond_is_refused(cls, settings, message):
    with pytest.raises(InputError, match=message):
        prepare(cls, settings)


def test_classes_and_label_losses_have_limits_too():
    check_classes(["a", "b"], np.array([2, 2]), 4)
    check_label_loss(0.0, 0, (3, 2), soft=True)
    check_label_loss(1.0, 6, (3, 2), soft=False)
    for names, counts, batch, message in (
        (["a"], [9], 9, r"one class only \('a'\)"),
        (["a", "b"], [9, 1], 9, "class 'b' has fewer than two observations"),
        (["a", "b"], [9, 9], 3, "two observations of each of 2 classes, so at least 4"),
    ):
        with pytest.raises(InputError, match=message):
            check_classes(names, np.array(counts), batch)
    with pytest.raises(InputError, match="the cross-entropy needs classes"):
        check_label_loss(0.1, 0, (3,), soft=True)
    with pytest.raises(InputError, match="0 to 6 outputs"):
        check_label_loss(0.0, 7, (3, 2), soft=True)
