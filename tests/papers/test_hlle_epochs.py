"""Networks of HLLE + ICA at the paper's budget: even interpolations, and claims on complete manifolds only."""

import numpy as np
import pandas as pd
import pytest

from unweave.datasets import SquaresXY
from unweave.papers.folders import Folders
from unweave.papers.hlle_ica import epochs

Z = np.random.default_rng(0).uniform(-1, 1, (50, 2))


class Decoder:
    """Decodes codes by a function, to images of 2 x 3 values."""

    def __init__(self, function):
        self.function = function

    def inverse_transform(self, z):
        return np.repeat(self.function(z), 3, axis=1).reshape(len(z), 2, 3)


def test_jump_of_a_linear_decoder_is_one():
    assert epochs.largest_jump(Decoder(lambda z: 2 * z), Z) == pytest.approx(1)


def test_jump_of_a_decoder_with_a_cliff_is_large():
    cliff = epochs.largest_jump(Decoder(lambda z: z + 20 * (z > 0)), Z)
    assert 5 < cliff <= epochs.LINE_STEPS


def test_a_collapsed_decoder_has_no_jump():
    assert np.isnan(epochs.largest_jump(Decoder(np.zeros_like), Z))


def test_runs_have_the_steps_of_their_epochs():
    usual = dict(epochs.list_runs(SquaresXY(points=50), 2, 100, seeds=3))
    long = dict(epochs.list_runs(SquaresXY(points=50), 2, 1_000, seeds=3))
    assert {run.method.steps for runs in usual.values() for run in runs} == {9_400}
    assert [run.method.seed for run in usual["irmae"]] == [0, 1, 2]
    assert {name: len(runs) for name, runs in long.items()} == {"hessian-autoencoder": 1, "autoencoder": 1}
    assert long["autoencoder"][0].method.batch_size == 32


def make_rows(**changes):
    """Return rows of one manifold on which all claims hold, and of another one that is not complete."""
    values = {name: {"mcc": 0.5, "error": 0.001, "jump": 1.5} for name in epochs.NETWORKS}
    values["hessian-autoencoder"] = {"mcc": 0.98, "error": 0.001, "jump": 1.1}
    values["autoencoder"]["jump"] = np.nan  # collapsed
    for name, value in changes.items():
        values["hessian-autoencoder"][name] = value
    rows = [{"manifold": "a", "method": name, "epochs": 100, "seed": 0} | row for name, row in values.items()]
    rows.append({"manifold": "a", "method": "hessian-autoencoder", "epochs": 1_000, "seed": 0}
                | values["hessian-autoencoder"])  # fmt: skip
    rows.append({"manifold": "b", "method": "autoencoder", "epochs": 100, "seed": 0, "mcc": 1.0, "error": 0.0})
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("part", "changes", "holds"),
    [
        ("figure-7", {}, [True, True, True]),
        ("figure-7", {"mcc": 0.8}, [False, True, True]),
        ("figure-7", {"error": 0.0012}, [True, True, False]),
        ("figure-8", {}, [True]),
        ("figure-8", {"jump": 1.6}, [False]),
    ],
)
def test_claims_on_complete_manifolds(tmp_path, part, changes, holds):
    place = Folders(tmp_path)
    place.create()
    make_rows(**changes).to_csv(place.results / epochs.TABLE_FILE, index=False)
    found = epochs.findings(place, part)
    assert [claim.holds for claim in found.claims] == holds
    assert found.missing and "judged on a;" in found.notes[0]


def test_no_claims_without_long_runs(tmp_path):
    place = Folders(tmp_path)
    place.create()
    make_rows().query("epochs == 100").to_csv(place.results / epochs.TABLE_FILE, index=False)
    assert not epochs.findings(place, "figure-7").claims
    assert epochs.findings(place, "figure-8").claims
