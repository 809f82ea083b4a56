"""The reference library's own values."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from unweave.metrics import dci, explicitness, irs, mig, modularity, sap

REFERENCE = Path(__file__).parents[1] / "reference"
ALL = Path(os.environ.get("UNWEAVE_DATA", "/nowhere")).parent / "oracle"  # all seven cases, where they are


def cases():
    folder = ALL if (ALL / "metric_reference.json").is_file() else REFERENCE
    values = json.loads((folder / "metric_reference.json").read_text())
    with np.load(folder / "metric_cases.npz", allow_pickle=False) as arrays:
        return {name: (arrays[f"{name}_f"], arrays[f"{name}_z"], values[name]) for name in values}


CASES = cases()


@pytest.mark.parametrize("name", CASES)
def test_scores_without_training_are_those_of_the_reference_library(name):
    f, z, expected = CASES[name]
    assert mig(f, z) == pytest.approx(expected["mig"], abs=1e-3)
    assert irs(f, z) == pytest.approx(expected["irs"], abs=1e-3)
    assert modularity(f, z) == pytest.approx(expected["modularity"], abs=1e-3)
    assert sap(f, z, predictor="r2") == pytest.approx(expected["sap_continuous"], abs=0.01)


@pytest.mark.parametrize("name", CASES)
def test_scores_with_training_are_those_of_the_reference_library(name):
    f, z, expected = CASES[name]
    assert sap(f, z, standardize=False, seed=None) == pytest.approx(expected["sap_discrete"], abs=0.01)
    value = explicitness(f, z, seed=None)
    if expected["explicitness_test"] is None:
        assert 0.5 < value <= 1, "a dead dimension stops the reference library, and not us"
    else:
        assert value == pytest.approx(expected["explicitness_test"], abs=0.01)


def test_the_fast_dci_ranks_the_cases_as_the_slow_one():
    found = {name: dci(f, z, seed=None) for name, (f, z, _) in CASES.items()}
    for part, column in (("disentanglement",) * 2, ("completeness",) * 2, ("informativeness", "informativeness_test")):
        ours = sorted(found, key=lambda name: getattr(found[name], part))
        theirs = sorted(found, key=lambda name: CASES[name][2][f"dci_{column}"])
        assert ours == theirs
