"""Records of failed runs."""

from pathlib import Path

import pytest

import unweave
from unweave import Method, execute
from unweave.datasets import SwissRoll
from unweave.experiments.failures import read_failures
from unweave.experiments.study import run_states
from unweave.methods import PCA

DATA = SwissRoll(points=100)


def runs(n=2, **settings):
    return unweave.sweep(DATA, PCA(latent_dim=2, **settings), seed=range(n))


class Faulty(Method):
    """Fails while a file is there."""

    paper = "none"

    trap: str = ""
    """the file"""

    def learn(self, data):
        if Path(self.trap).exists():
            raise RuntimeError("a trap")

    def encode(self, x):
        return x[:, : self.latent_dim]


def test_a_failure_is_recorded_and_repeated_on_request(tmp_path):
    trap = tmp_path / "trap"
    trap.touch()
    bad, good = unweave.Run(DATA, Faulty(latent_dim=2, trap=str(trap))), runs(2)
    with pytest.warns(RuntimeWarning, match="faulty on swiss-roll .* failed: RuntimeError: a trap"):
        assert len(execute([bad, *good], tmp_path / "out", metrics=["mcc"])) == 2
    assert run_states([bad, *good], tmp_path / "out") == {bad.key: "failed", **{run.key: "done" for run in good}}
    (about,) = read_failures(tmp_path / "out", [bad.key])
    assert about["error"] == "RuntimeError: a trap" and "in learn" in about["traceback"]
    trap.unlink()
    said = []
    assert len(execute([bad, *good], tmp_path / "out", metrics=["mcc"], notify=said.append)) == 2  # not by itself
    assert any("2 of 3 done, 1 failed" in text for text in said)
    assert len(execute([bad, *good], tmp_path / "out", metrics=["mcc"], retry=True)) == 3
    assert not list((tmp_path / "out").glob(".failed/*"))
