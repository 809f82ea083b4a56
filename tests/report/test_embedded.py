"""Explorers of runs for a report."""

import json
import re

import numpy as np
import pytest

from unweave import InputError, Run, execute, write_report
from unweave.datasets import SquaresXY
from unweave.experiments.run import read_run
from unweave.methods import PCA, BetaVAE
from unweave.report import embedded
from unweave.report.embedded import embed_explorers, explorer_of_run


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Return a run on data of the catalog, and one on a user's own array."""
    folder = tmp_path_factory.mktemp("runs")
    data = SquaresXY(points=300, size=16, side=6)
    execute([Run(data, PCA(latent_dim=2)), Run(data, BetaVAE(latent_dim=2, steps=3))], folder, metrics=())
    found = [read_run(path) for path in sorted(folder.iterdir()) if (path / "run.json").is_file()]
    return {run.recipe["method"]["name"]: run for run in found}


def payload_of(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])


def test_the_explorer_of_a_run_shows_its_data_and_codes(runs):
    payload = payload_of(explorer_of_run(runs["pca"], "PCA"))
    assert payload["count"] == 300 and len(payload["facts"]) == 2
    assert payload["path"] == str(runs["pca"].folder) and payload["decoderData"] is not None


def test_large_decoders_are_evaluated_beforehand(runs, monkeypatch):
    assert payload_of(explorer_of_run(runs["beta-vae"], "VAE"))["grid"] is None
    monkeypatch.setattr(embedded, "MAX_DECODER_BYTES", 1000)
    payload = payload_of(explorer_of_run(runs["beta-vae"], "VAE"))
    assert payload["decoderData"] is None and payload["grid"]["count"] > 300


def test_an_explorer_shows_fewer_observations_before_it_is_too_large(runs, monkeypatch):
    whole = explorer_of_run(runs["pca"], "PCA")
    monkeypatch.setattr(embedded, "OBSERVATIONS", (300, 50))
    assert payload_of(explorer_of_run(runs["pca"], "PCA", len(whole) - 1))["count"] == 50
    with pytest.raises(InputError, match="too large"):
        explorer_of_run(runs["pca"], "PCA", 1000)


def test_runs_whose_data_are_unknown_have_no_explorer(runs, tmp_path):
    np.savez(tmp_path / "own.npz", x=np.random.default_rng(0).random((60, 4)))
    from unweave.catalog import dataset

    execute([Run(dataset(str(tmp_path / "own.npz")), PCA(latent_dim=2))], tmp_path / "runs", metrics=())
    (folder,) = [path for path in (tmp_path / "runs").iterdir() if (path / "run.json").is_file()]
    with pytest.raises(InputError, match="does not say where its data are"):
        explorer_of_run(read_run(folder), "own")
    messages: list[str] = []
    page = write_report([folder], tmp_path / "report.html", messages.append).read_text()
    assert f"unweave explore {folder} DATA" in page and "data-explorer=" not in page
    assert any("no explorer in the report" in text for text in messages)


def test_explorers_share_a_budget(runs, monkeypatch):
    sections = [
        {"id": f"s{i}", "label": run.recipe["method"]["name"], "seed": 0, "key": run.recipe["key"], "explorer": None}
        for i, run in enumerate(runs.values())
    ]
    by_key = {run.recipe["key"]: run for run in runs.values()}
    embed_explorers(sections, by_key, lambda text: None)
    sizes = [len(section["explorer"]["html"]) for section in sections]
    assert [section["explorer"]["id"] for section in sections] == ["s0-explorer", "s1-explorer"]
    monkeypatch.setattr(embedded, "MAX_TOTAL_BYTES", sum(sizes) - 1)
    monkeypatch.setattr(embedded, "OBSERVATIONS", (1_000,))
    again = [section | {"explorer": None} for section in sections]
    embed_explorers(again, by_key, lambda text: None)
    assert [section["explorer"] is None for section in again] == [False, True], "the best method comes first"
