"""What trained networks report about themselves."""

import re
import warnings

import numpy as np
import pandas as pd

from unweave.methods import BetaVAE, CNNClassifier, FactorVAE


def test_a_collapsed_posterior_is_reported():
    x = np.random.default_rng(0).normal(size=(200, 5))
    small = {"steps": 400, "layers": (16,), "latent_dim": 2, "lr": 0.01}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        collapsed = BetaVAE(beta=1e4, **small).fit(x)
    assert "posterior has collapsed" in " ".join(collapsed.diagnosis_)
    assert not getattr(BetaVAE(beta=0.01, **small).fit(x), "diagnosis_", [])
    assert not getattr(FactorVAE(gamma=0.0, critic=(8,), **small).fit(x * 10), "diagnosis_", [])


def test_a_classifier_reports_its_labels_and_its_accuracy():
    x = np.random.default_rng(0).normal(size=(300, 4))
    y = pd.DataFrame({"sign": np.where(x[:, 0] > 0, "plus", "minus"), "other": np.arange(300) % 2})
    classifier = CNNClassifier(steps=300, layers=(16,), lr=0.01).fit(x, y)
    share = float(re.search(r"Training accuracy for 'sign': ([\d.]+)%.*2 classes", classifier.diagnosis_[-1])[1])
    assert share > 95
    assert abs(share / 100 - classifier.score(x, y)) < 0.03
