"""Settings at the ends of their ranges are accepted, and those just beyond are refused with a reason."""

from typing import Any, get_args

import numpy as np
import pandas as pd
import pytest

from tests.helpers import METHODS, X, small_method
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
from unweave.methods.flows.families import FAMILIES, FamilyName
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
    (SwapContrast, CODES | {"nuisance_dim": 1}, "up to 2 factors, and 1 code for them: expected nuisance_dim=2"),
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
    assert prepare(cls, settings).get_params().items() >= settings.items()


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


# Defaults: a run is found again by its settings, so another default would silently be another experiment -------------

TRAINING = {"seed": 0, "steps": 5_000, "batch_size": 64, "lr": 5e-4, "lr_schedule": "constant", "weight_average": 0.0}
NETWORK = {"network": "auto", "widths": (32, 32, 64, 64), "hidden": (256,), "layers": (256, 256), "encoder": None}
VAE = TRAINING | NETWORK | {"latent_dim": 10, "likelihood": "auto", "decoder": None}
FLOW = {
    "restarts": 1, "latent_dim": "auto", "seed": 0, "steps": 4_000, "batch_size": 500, "lr": 0.0, "precision": "single",
    "lr_decay_after": 0.625, "noise": 0.01, "standardize": False, "heavy_tails": False, "network": "auto", "blocks": 0,
    "width": 0, "conv_blocks": 4, "conv_widths": (16, 32), "clamp": "soft", "volume": "mean",
}  # fmt: skip
CLASSIFIER = TRAINING | NETWORK | {"latent_dim": 64, "label": ""}
DEFAULTS = {
    "beta-vae": VAE | {"beta": 4.0},
    "ada-gvae": VAE | {"beta": 1.0, "changed": "uniform", "distance": "one-sided"},
    "ada-ml-vae": VAE | {"beta": 1.0, "changed": "uniform", "distance": "one-sided"},
    "annealed-vae": VAE | {"gamma": 1_000.0, "capacity": 25.0, "anneal": 1 / 3},
    "beta-tc-vae": VAE | {"beta": 6.0, "estimator": "weighted"},
    "dip-vae": VAE | {"variant": "ii", "off_diagonal": 10.0, "diagonal": 10.0},
    "factor-vae": VAE | {"gamma": 10.0, "critic_lr": 1e-4, "critic": (1_000,) * 6, "feature_dim": 1},
    "ivae": VAE | {"beta": 1.0, "noise_variance": 0.1, "label": "", "prior_hidden": (50,)},
    "gin": FLOW | {"label": "", "family": "normal", "statistics": "batch", "label_weight": 0.0, "label_dim": 0},
    "self-supervised-gin": FLOW | {"batch_size": 100, "augment": (), "copies": 10, "spread": 1.0},
    "cnn-classifier": CLASSIFIER,
    "vae-classifier": CLASSIFIER | {"beta": 1.0, "generative": 0.01},
    "cai": CLASSIFIER | {"nuisances": (), "strength": 0.03, "discriminator": (64,)},
    "cvib": CLASSIFIER | {"nuisances": (), "beta": 1e-3, "strength": 0.01},
    "uai": CLASSIFIER | {"alpha": 100.0, "beta": 0.1, "gamma": 1.0, "dropout": 0.4, "disentanglers": (64,)},
    "vfae": CLASSIFIER
    | {"nuisances": (), "upper_dim": 16, "generative": 0.01, "mmd": 1.0, "random_features": 500, "upper": (64,)},
    "swap-contrast": VAE | {
        "latent_dim": "auto", "label": "", "predictive_dim": "auto", "nuisance_dim": "auto", "nuisances": (),
        "changed": 0, "divergence": "kl", "scheme": "alternate", "refit_classifier": True, "alpha": 1.0, "beta": 300.0,
        "gamma": 1.0, "prediction": 300.0, "generative": 1.0, "kl_warmup": 0.0, "per_number": False, "temperature": 0.1,
        "classifier_lr": 0.01, "swap_warmup": 0.5, "difficulty_warmup": 0.5,
    },
    "infogan-cr": VAE | {
        "latent_dim": 5, "lr": 1e-3, "hidden": (128,), "noise_dim": 5, "info": 0.05, "contrast": 2.0,
        "contrast_after": 0.6, "gap": 1.9, "gap_stages": 10,
    },
    "intervention-autoencoder": VAE | {
        "latent_dim": "auto", "lr": 1e-4, "hidden": (128,), "features": "auto", "feature_dim": 1, "lambda_in": 0.25,
        "lambda_adv": 10.0, "lambda_diff": 1.0, "diff_after": 0.5, "adversary": "non-saturating", "diff_mode": "data",
        "inner_steps": 3, "inner_lr": 1e-3, "weight_lr": 1e-5, "discriminator_hidden": (128,),
        "discriminator_widths": (), "discriminator_slope": 0.0, "discriminator_norm": "none", "gradient_penalty": 0.0,
        "reweight": True, "translator": 128,
    },
}  # fmt: skip


@pytest.mark.parametrize("name", DEFAULTS)
def test_defaults_stay_what_recorded_runs_have(name):
    method = METHODS[name]()
    assert {setting: getattr(method, setting) for setting in DEFAULTS[name]} == DEFAULTS[name]
    assert method.name == name


FORMER = {
    "beta-tc-vae": {"observed_": "n_observations_"},
    "cnn-classifier": {"width_": "n_factors_", "learned_": "train_accuracy_", "likelihood": ""},
    "cai": {
        "width_": "n_factors_", "learned_": "train_accuracy_", "known": "nuisances", "columns_": "nuisance_columns_",
        "sizes_": "nuisance_sizes_", "seen_": "nuisance_levels_", "likelihood": "",
    },
    "vfae": {
        "width_": "n_factors_", "learned_": "train_accuracy_", "known": "nuisances", "columns_": "nuisance_columns_",
        "sizes_": "nuisance_sizes_", "seen_": "nuisance_levels_", "waves": "random_features",
    },
    "ivae": {"spread": "noise_variance", "shares_": "class_shares_"},
    "gin": {
        "standardise": "standardize", "still_": "n_constant_", "lasting_": "data_notes_", "middle_": "output_means_",
        "names_": "class_names_", "soft_": "has_soft_labels_", "column_": "label_column_", "shares_": "class_shares_",
        "merit_": "log_likelihood_",
    },
    "self-supervised-gin": {
        "standardise": "standardize", "still_": "n_constant_", "lasting_": "data_notes_", "middle_": "output_means_",
        "within_": "set_deviations_",
    },
    "swap-contrast": {
        "width_": "n_factors_", "learned_": "train_accuracy_", "known": "nuisances", "settle": "refit_classifier",
        "warm_amount": "swap_warmup", "warm_difficulty": "difficulty_warmup", "pairs_": "changing_factors_",
        "most_": "max_changed_",
    },
    "intervention-autoencoder": {
        "judges": "discriminator_hidden", "judge_widths": "discriminator_widths",
        "judge_slope": "discriminator_slope", "reweigh": "reweight", "through": "diff_mode",
    },
}  # fmt: skip
ALIASES = {"ada-ml-vae": "ada-mlvae", "beta-tc-vae": "beta-tcvae", "dip-vae": "dipvae", "infogan-cr": "info-gancr"}
NEEDS = {
    "ada-gvae": "pairs", "ada-ml-vae": "pairs", "ivae": "labels", "gin": "labels", "swap-contrast": "labels",
    "self-supervised-gin": "augmentations", "cai": "labels", "cvib": "labels", "uai": "labels", "vfae": "labels",
    "cnn-classifier": "labels", "vae-classifier": "labels",
}  # fmt: skip
KL_WEIGHTS = {"beta-vae": "beta", "ada-gvae": "beta", "ada-ml-vae": "beta"}


@pytest.mark.parametrize("name", DEFAULTS)
def test_defaults_of_classes_are_what_saved_models_were_written_with(name):
    cls = METHODS[name]
    assert name not in FORMER or dict(cls.renamed) == FORMER[name]
    assert cls.aliases == ((ALIASES[name],) if name in ALIASES else ())
    assert cls.needs == NEEDS.get(name, "nothing") and cls.paper
    assert name not in KL_WEIGHTS or cls.kl_weight == KL_WEIGHTS[name]


def test_families_are_those_that_can_be_named():
    assert get_args(FamilyName) == tuple(FAMILIES)


# Names of terms are the columns of recorded histories -----------------------------------------------------------------

TERMS = {
    "beta-vae": "rec kl", "ada-gvae": "rec kl", "ada-ml-vae": "rec kl", "annealed-vae": "rec kl gap",
    "beta-tc-vae": "rec kl tc", "dip-vae": "rec kl dip", "factor-vae": "rec kl tc critic", "ivae": "rec kl",
    "gin": "nats alone", "self-supervised-gin": "nats", "cnn-classifier": "ce", "vae-classifier": "ce rec kl",
    "cai": "ce nuisance", "cvib": "ce kl rec", "uai": "ce rec guess", "vfae": "ce bound mmd",
    "swap-contrast": "rec kl ce zp sup dis", "infogan-cr": "fool info contrast discriminator",
    "intervention-autoencoder": "rec in adv critic diff",
}  # fmt: skip
OPTIMIZERS = {"factor-vae": "critic.", "swap-contrast": "classifier.", "intervention-autoencoder": "weight."}


@pytest.mark.parametrize("name", TERMS)
def test_terms_of_losses_keep_their_names_and_parts_their_optimizers(name):
    flow = {"blocks": 1} if name.endswith("gin") else {}
    labels = {"label": "kind"} if "label" in METHODS[name].__dataclass_fields__ else {}
    codes = {"latent_dim": 4} if name == "swap-contrast" else {}
    method = small_method(name, **{"steps": 1, "batch_size": 60} | flow | labels | codes).fit(DATA)
    assert method.terms_ == ["loss", *TERMS[name].split()]
    assert [*method.optimizers()] == ["", *OPTIMIZERS.get(name, "").split()]
