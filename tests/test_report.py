"""The page: what it says, and that it stands alone."""

import re

import numpy as np
import pytest

from unweave import InputError, Run, catalog, write_report
from unweave.datasets import GaussianMixture, SquaresXY
from unweave.files import OwnData
from unweave.methods import PCA, HessianICA, LinearICA
from unweave.perform import perform
from unweave.report import summary
from unweave.run import read_run

SCORERS = {name: catalog.find(catalog.metrics, name) for name in ("mcc", "local-isometry")}
DATA = SquaresXY(points=300, size=16, side=6)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    methods = [PCA(), LinearICA(), LinearICA(seed=1), HessianICA()]
    for i, method in enumerate(methods):
        perform(Run(DATA, method), folder / str(i), SCORERS)
    return folder


def test_the_page_needs_nothing_else(runs, tmp_path):
    page = write_report([runs], tmp_path / "report.html").read_text()
    assert not re.findall(r'(?:src|href)="(?!data:)', page)
    assert "<script" not in page
    assert "http" not in re.sub(r"data:image[^\"]*", "", page)


def test_the_page_holds_the_table_the_figures_and_the_provenance(runs, tmp_path):
    page = write_report([runs], tmp_path / "report.html").read_text()
    done = [read_run(runs / str(i)) for i in range(4)]
    for run in done:
        assert f"{run.scores['mcc']:.3f}" in page
        assert run.recipe["key"] in page
        assert run.env["data"]["sha256"][:12] in page
    assert page.count("<figure>") == 12
    assert "linear-ica (seed=1)" in page, "runs of one method are told apart by what differs"
    assert page.index("<td>hessian-ica") < page.index("<td>pca"), "the best comes first"


def test_the_same_runs_give_the_same_page(runs, tmp_path):
    first, second = (write_report([runs], tmp_path / name).read_text() for name in ("a.html", "b.html"))
    assert first == second


def test_the_summary_says_who_won_and_what_that_means(runs):
    text = summary([read_run(runs / str(i)) for i in range(4)])
    best = read_run(runs / "3").scores["mcc"]
    assert text.startswith(
        f"hessian-ica recovers the factors x and y (MCC {best:.3f}; 1 is perfect). Others: linear-ica"
    )
    assert "does not recover" in summary([read_run(runs / "0")])


def test_data_without_factors_with_classes_and_with_one_code(tmp_path):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).uniform(size=(50, 3)))
    perform(Run(OwnData(path=tmp_path / "x.npy"), PCA(latent_dim=1)), tmp_path / "r" / "1", SCORERS)
    perform(Run(GaussianMixture(points=100), PCA(latent_dim=3)), tmp_path / "r" / "2", SCORERS)
    page = write_report([tmp_path / "r"], tmp_path / "p.html").read_text()
    assert "No factors are known. pca keeps near distances best" in page
    assert "known factors: cluster, z1, z2" in page


def test_names_from_files_cannot_inject_markup(tmp_path):
    path = tmp_path / "<b>x<script>.csv"
    path.write_text("a,b,<i>f\n" + "\n".join(f"{i},{i * i},{i % 3}" for i in range(20)))
    perform(Run(OwnData(path=path, factors=("<i>f",)), PCA(latent_dim=1)), tmp_path / "r", SCORERS)
    page = write_report([tmp_path / "r"], tmp_path / "p.html").read_text()
    assert "<script>" not in page
    assert "<i>f" not in page


def test_a_page_that_cannot_be_written_is_refused(runs, tmp_path):
    with pytest.raises(InputError, match="is a folder"):
        write_report([runs], tmp_path)
