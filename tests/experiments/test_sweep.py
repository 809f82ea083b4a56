"""Sweeps, run keys and study files."""

from pathlib import Path

import numpy as np
import pytest

import unweave
from unweave import InputError, OwnData, Run
from unweave.catalog import run_metrics
from unweave.datasets import FlatSheet
from unweave.experiments.study import execute, sweep
from unweave.experiments.study_file import read_study
from unweave.methods import PCA, BetaVAE, HessianICA
from unweave.utils.validation import normalize_numbers


def test_integers_and_equal_floats_give_the_same_run_key():
    one, other = (Run(FlatSheet(points=50), BetaVAE(beta=beta)) for beta in (4, 4.0))
    assert one.key == other.key and repr(one.recipe()["method"]["beta"]) == "4.0"
    assert one.method.recipe() == other.method.recipe()
    assert Run(FlatSheet(points=50), BetaVAE(beta=4.5)).key != one.key
    assert isinstance(one.recipe()["method"]["latent_dim"], int)
    assert Run(FlatSheet(points=50), BetaVAE(beta=np.int64(4))).key == one.key
    assert normalize_numbers(HessianICA, {"smooth": 2, "landmarks": 5}) == {"smooth": 2.0, "landmarks": 5}
    assert isinstance(normalize_numbers(HessianICA, {"smooth": 2})["smooth"], float)


def test_a_sweep_takes_names_and_single_values():
    runs = sweep("flat-sheet", "pca", latent_dim=1, seed=[0, 1])
    assert [(run.method.latent_dim, run.method.seed) for run in runs] == [(1, 0), (1, 1)]
    assert [run.method.network for run in sweep("flat-sheet", "beta-vae", network="mlp")] == ["mlp"]
    with pytest.raises(InputError, match="did you mean 'pca'"):
        sweep("flat-sheet", "pcaa")


def test_a_study_file_may_import_modules_of_its_folder(tmp_path):
    beside = "from unweave.methods import PCA\n\nMINE = PCA(latent_dim=1)\n"
    (tmp_path / "beside_the_study.py").write_text(beside)
    code = (
        "import unweave\nfrom beside_the_study import MINE\n\nruns = unweave.sweep('flat-sheet', MINE, seed=range(2))\n"
    )
    (tmp_path / "mine.py").write_text(code)
    assert len(read_study(tmp_path / "mine.py").runs) == 2


def test_metrics_that_no_run_can_have_are_refused_before_training(tmp_path):
    with pytest.raises(InputError, match=r"classifier's predictions.*unweave\.metrics\.average_accuracy"):
        run_metrics(["average-accuracy"])
    with pytest.raises(InputError, match="unweave select"):
        execute([Run(FlatSheet(points=50), PCA(latent_dim=1))], tmp_path, metrics=["udr"])
    assert not list(tmp_path.iterdir())


@pytest.mark.filterwarnings("ignore:local-isometry was not computed")
def test_a_model_of_fewer_rows_than_codes_is_written_and_reported(tmp_path):
    np.save(tmp_path / "few.npy", np.random.default_rng(0).normal(size=(4, 30)))
    run = Run(OwnData(path=tmp_path / "few.npy"), BetaVAE(steps=2, latent_dim=10, layers=(8,), batch_size=4))
    assert len(execute([run], tmp_path / "runs", metrics=["local-isometry"])) == 1
    unweave.write_report([tmp_path / "runs"], tmp_path / "page.html")
    assert "beta-vae" in (tmp_path / "page.html").read_text()


def test_the_dataset_of_the_documentation_is_recovered(tmp_path):
    path = Path(__file__).parents[2] / "examples" / "my_data.py"
    run = sweep(f"{path}:TwoPeaks", "hessian-ica", latent_dim=2)[0]
    assert execute([run], tmp_path, metrics=["mcc"])["mcc"].item() > 0.99
