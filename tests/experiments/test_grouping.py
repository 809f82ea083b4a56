"""Names of runs by the settings in which they differ."""

from unweave import sweep
from unweave.datasets import SquaresXY, SwissRoll
from unweave.experiments.grouping import data_labels, run_labels
from unweave.methods import PCA, BetaVAE


def labels(runs):
    return run_labels([run.recipe() for run in runs])


def test_a_single_run_is_named_by_its_method():
    assert labels(sweep("squares-xy", BetaVAE(steps=3), beta=4.0)) == ["beta-vae"]


def test_settings_of_one_method_are_not_compared_with_those_of_another():
    runs = [*sweep("squares-xy", BetaVAE(), beta=[1.0, 4.5], seed=[1]), *sweep("squares-xy", PCA(), seed=[2, 3])]
    assert labels(runs) == ["beta-vae (beta=1)", "beta-vae (beta=4.5)", "pca (seed=2)", "pca (seed=3)"]


def test_the_seed_comes_last():
    assert labels(sweep("squares-xy", BetaVAE(), steps=[3, 4], seed=[0, 1]))[1] == "beta-vae (steps=4, seed=0)"


def test_runs_on_several_datasets_name_them_and_their_settings():
    runs = [run for data in (SquaresXY(points=50), SquaresXY(points=60), SwissRoll()) for run in sweep(data, PCA())]
    expected = ["pca on squares-xy (data.points=50)", "pca on squares-xy (data.points=60)", "pca on swiss-roll"]
    assert labels(runs) == expected


def test_versions_of_a_users_file_differ_in_its_hash():
    recipes = [{"data": {"name": "d"}, "method": {"name": "mine", "source": 3 * c * 8}} for c in "ab"]
    assert run_labels(recipes) == ["mine (source=aaaaaaaa)", "mine (source=bbbbbbbb)"]


def test_a_run_names_the_settings_that_are_no_defaults():
    (run,) = sweep(SquaresXY(points=50), BetaVAE(), beta=8.0, seed=2)
    assert repr(run) == "<Run: beta-vae on squares-xy (seed=2, beta=8, data.points=50)>"


def test_datasets_of_one_title_are_named_by_their_settings():
    recipes = [data.recipe() for data in (SquaresXY(points=50), SquaresXY(points=60), SwissRoll())]
    assert data_labels(recipes) == ["squares-xy (points=50)", "squares-xy (points=60)", "swiss-roll"]
