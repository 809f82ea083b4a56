"""Flows on digits: claims about the spectrum, folders, and training that is not repeated."""

import dataclasses
import shutil

import numpy as np
import pytest

from unweave.data.conversion import as_data
from unweave.methods import SelfSupervisedGIN
from unweave.papers import flow_digits
from unweave.papers.gin import digits as gin
from unweave.papers.knees import refresh_knee
from unweave.papers.scripts import stored_results
from unweave.papers.self_supervised_gin import digits as self_supervised
from unweave.utils.storage import read_json

SETTINGS = {"steps": 4, "batch_size": 8, "conv_blocks": 1, "conv_widths": (4,), "width": 4}


def numbers_of(counts, widths):
    pairs = zip(counts, widths, strict=True)
    return [{"informative": n, "interval": [n, n + width], "settings": {"steps": 10}} for n, width in pairs]


@pytest.mark.parametrize(
    ("counts", "widths", "held"),
    [
        ([22, 20, 24], [0, 5, 30], [True, True]),
        ([16, 16, 15, 14, 17], [2, 4, 3, 6, 4], [True, False]),
        ([17, 16, 17], [5, 4, 5], [False, True]),
        ([28, 28, 27], [9, 9, 9], [False, False]),
    ],
)
def test_a_knee_is_sharp_in_most_seeds_and_within_a_quarter_of_the_papers_number(counts, widths, held):
    findings = flow_digits.knee_findings(numbers_of(counts, widths), 22)
    assert [claim.holds for claim in findings.claims] == held
    assert findings.numbers[0].ours == counts and findings.effort == f"{len(counts)} seeds, 10 steps"


def test_models_that_diverged_do_not_count_and_are_reported():
    diverged = {flow_digits.DIVERGED: 73, "settings": {"steps": 10}}
    findings = flow_digits.knee_findings([diverged, *numbers_of([22], [0])], 22)
    assert findings.numbers[0].ours == [22] and findings.effort == "2 seeds, 10 steps"
    assert flow_digits.knee_findings([diverged], 22).verdict() == "not reproduced"
    assert flow_digits.knee_cells(diverged, gin.SCORE, 3) == ["diverged at step 73", "", ""]


@pytest.mark.parametrize("script", [gin, self_supervised])
def test_other_steps_data_and_precisions_have_folders_of_their_own(script, tmp_path):
    options = script.Options(out=tmp_path)
    changes = ({}, {"steps": 60}, {"data": "emnist"}, {"precision": "tf32"})
    names = [script.folders(dataclasses.replace(options, **change)).name for change in changes]
    assert names == ["digits", "digits-60-steps", "emnist", "digits-tf32"]


def test_the_best_rate_is_chosen_by_augmented_test_digits():
    options = self_supervised.Options(out=stored_results() / "self_supervised_gin")
    assert self_supervised.best_rate(options) == 3e-4
    assert self_supervised.make_method(options, 2, 3e-2).recipe() == {
        **read_json(self_supervised.rate_folder(options, 3e-2) / "seed-0" / flow_digits.NUMBERS)["settings"], "seed": 2
    }  # fmt: skip


def test_knees_of_stored_spectra_are_those_of_this_version(tmp_path):
    stored = stored_results() / "gin" / "results" / "digits" / "seed-2"
    for name in (flow_digits.NUMBERS, flow_digits.SPECTRUM):
        shutil.copy(stored / name, tmp_path)
    before = read_json(tmp_path / flow_digits.NUMBERS)
    assert refresh_knee(tmp_path) == before
    assert before["interval"][0] <= before["informative"] <= before["interval"][1]
    flow_digits.update_numbers(tmp_path, informative=1, interval=[1, 1])
    assert refresh_knee(tmp_path) == before


def test_finished_models_are_not_trained_again(tmp_path, monkeypatch):
    x = np.random.default_rng(0).uniform(size=(16, 1, 8, 8)).astype(np.float32)
    data, places = as_data(x), [tmp_path / "lr-1" / "seed-0", tmp_path / "lr-2" / "seed-0"]

    def make():
        return [SelfSupervisedGIN(copies=4, lr=lr, **SETTINGS) for lr in (1e-3, 2e-3)]

    flow_digits.train_together(make(), places, data, None)
    for place in places:
        names = {"numbers.json", "spectrum.csv", "history.csv", "model"}
        assert {path.name for path in place.iterdir()} == names
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == []
    before = self_supervised.untrained_spectrum(SelfSupervisedGIN.load(places[0] / "model"), data)
    assert before.shape == (64,) and (np.diff(before) <= 0).all()
    monkeypatch.setattr(flow_digits, "fit_pack", None)
    flow_digits.train_together(make(), places, data, None)
    again = [SelfSupervisedGIN(copies=4, lr=3e-3, **SETTINGS)]
    with pytest.raises(TypeError):
        flow_digits.train_together(again, places[:1], data, None)
