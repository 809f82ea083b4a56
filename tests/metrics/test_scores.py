"""Known answers for the scores beside the field's classics, and what is built upon all of them."""

import json
import pickle
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.model_selection import GridSearchCV

import unweave
from unweave import InputError, catalog
from unweave.datasets import DSprites, GaussianMixture, SquaresXY
from unweave.experiments.run import Run, read_run
from unweave.experiments.selection import agreement, trust_scores
from unweave.methods import GIN, IVAE, PCA, BetaVAE, LinearICA
from unweave.metrics import (
    average_accuracy,
    beta_vae_score,
    dci,
    factor_vae_score,
    infomec,
    mig,
    model_centrality,
    prepared,
    score_many,
    translation_difficulty,
    udr,
    unsupervised,
    worst_group_accuracy,
)
from unweave.metrics.udr import one_to_one_score
from unweave.metrics.uncertainty import plus_minus

RNG = np.random.default_rng(0)
GRID = np.stack(np.meshgrid(*3 * [np.arange(4.0)], indexing="ij"), -1).reshape(-1, 3).repeat(30, 0)  # (1920, 3)
CODES = GRID + 0.05 * RNG.normal(size=GRID.shape)


def turned(z, degrees=45.0):
    a = np.deg2rad(degrees)
    return z[:, :2] @ np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])


# DCI's estimators -----------------------------------------------------------------------------------------------


def test_the_estimators_of_dci_give_one_code_different_numbers():
    """An axis-aligned code with noise: L1-penalized regression sees one code per factor, forests spread importance."""
    rng = np.random.default_rng(0)
    c = rng.uniform(-1, 1, (1500, 3))
    z = np.column_stack([c + 0.3 * rng.normal(size=c.shape), rng.normal(size=(1500, 3))])
    lasso, forest, trees = (dci(c, z, estimator=e) for e in ("lasso", "rf", "trees"))
    assert lasso.disentanglement > 0.9
    assert forest.disentanglement < lasso.disentanglement - 0.1
    assert abs(trees.disentanglement - forest.disentanglement) > 0.05
    assert lasso.informativeness == pytest.approx(1 / (1 + 0.09 * 3), abs=0.04), "R^2 of the best linear prediction"


def test_depths_of_forests_are_one_for_all_one_for_each_or_chosen():
    shallow = dci(GRID[::4], CODES[::4], estimator="rf", depth=1)
    assert dci(GRID[::4], CODES[::4], estimator="rf", depth=(1, 1, 1)) == shallow
    chosen = dci(GRID[::4], CODES[::4], estimator="rf", depth="cv")
    assert chosen.informativeness > 0.99 > 0.9 > shallow.informativeness
    with pytest.raises(InputError, match=r"names 2 depths for 3 factors"):
        dci(GRID, CODES, estimator="rf", depth=(1, 1))
    with pytest.raises(InputError, match="is for estimator='rf'"):
        dci(GRID, CODES, depth=3)


# InfoMEC --------------------------------------------------------------------------------------------------------


def test_infomec_of_perfect_doubled_and_mixed_codes():
    perfect = infomec(GRID, CODES)
    assert perfect.modularity > 0.97
    assert perfect.compactness > 0.97
    assert perfect.explicitness > 0.99, "softmax of linear functions separates levels on a line"
    assert infomec(GRID, np.sin(7 * CODES)).explicitness < 0.7
    twice = infomec(GRID, np.column_stack([CODES, CODES + 1e-3 * RNG.normal(size=CODES.shape)]))
    assert twice.modularity > 0.97
    # Two of six codes share a factor evenly: (1/2 - 1/6) / (1 - 1/6) = 0.4.
    assert twice.compactness == pytest.approx(0.4, abs=0.02)
    assert infomec(GRID[:, :2], turned(CODES)).modularity < 0.1


def test_infomec_leaves_out_codes_that_hardly_move_but_not_from_explicitness():
    faint = np.column_stack([CODES, 0.01 * CODES[:, :1]])
    assert infomec(GRID, faint)[::2] == infomec(GRID, CODES)[::2]
    assert infomec(GRID, faint, prune=0).compactness < infomec(GRID, CODES).compactness - 0.1
    assert infomec(GRID, CODES * [1, 1, 0.01]).explicitness > 0.99


def test_infomec_divides_by_the_entropy_of_the_classes_that_it_measured():
    """A monotone map of a continuous factor changes no class, so no information."""
    c = np.random.default_rng(1).normal(size=(1500, 2))
    z = np.column_stack([c[:, 0] + c[:, 1], c[:, 0] - c[:, 1]])
    bent = np.column_stack([c[:, 0], np.exp(2 * c[:, 1])])
    assert infomec(bent, z).modularity == pytest.approx(infomec(c, z).modularity, abs=1e-9)
    # A factor of two equally likely values that a code tells entirely: information over entropy is one.
    coin = np.repeat([[0.0, 0], [0, 1], [1, 0], [1, 1]], 200, 0)
    assert infomec(coin, coin + 0.01 * RNG.normal(size=coin.shape)).compactness > 0.97
    assert infomec(GRID, np.ones((len(GRID), 2))) == (0, 0, 0)


def test_infomec_explains_the_variance_of_continuous_factors():
    c = np.random.default_rng(1).normal(size=(2000, 2))
    z = c + np.random.default_rng(2).normal(size=c.shape)
    assert infomec(c, z).explicitness == pytest.approx(0.5, abs=0.04)


# Scores that need no labels -------------------------------------------------------------------------------------


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_total_correlation_of_gaussians_has_a_closed_form(rho):
    z = np.random.default_rng(0).multivariate_normal([0, 0], [[1, rho], [rho, 1]], 40_000) * [5, 0.1]
    exact = -0.5 * np.log(1 - rho**2)
    found = unsupervised(None, z)
    assert found.total_correlation == pytest.approx(exact, abs=0.01)
    assert found.mutual_information == pytest.approx(exact, abs=0.06), "for two codes they are the same, but for bins"


def test_codes_that_determine_each_other_and_dead_ones():
    z = np.random.default_rng(0).normal(size=(500, 1))
    assert unsupervised(None, np.hstack([z, -z])).total_correlation == np.inf
    both = np.random.default_rng(1).normal(size=(500, 2))
    assert unsupervised(None, np.column_stack([both, both.sum(1)])).total_correlation == np.inf
    assert unsupervised(None, np.hstack([z, np.ones_like(z)])) == (0, 0)


# Accuracy -------------------------------------------------------------------------------------------------------


def test_the_worst_group_decides():
    y = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    color = np.array([0, 0, 0, 1, 0, 1, 1, 1])
    guess = np.array([0, 0, 0, 1, 0, 1, 1, 1])  # goes by color
    assert average_accuracy(y, guess) == pytest.approx(6 / 8)
    assert worst_group_accuracy(y, guess) == pytest.approx(3 / 4)
    assert worst_group_accuracy(y, guess, np.stack([y, color], 1)) == 0
    assert worst_group_accuracy(y, guess, color) == pytest.approx(3 / 4)
    assert worst_group_accuracy(["a", "b"], ["a", "b"], ["x", "y"]) == 1
    mixed = pd.DataFrame({"y": y, "color": ["red", "red", "red", None, "red", None, None, None]})
    assert worst_group_accuracy(y, guess, mixed) == 0
    with pytest.raises(InputError, match="argmax"):
        average_accuracy(y, np.eye(2)[guess])
    with pytest.raises(InputError, match="7 rows of groups and 8 labels"):
        worst_group_accuracy(y, guess, color[1:])


# Selection without labels ---------------------------------------------------------------------------------------


def test_relative_strength_by_hand():
    assert one_to_one_score(np.eye(3)) == 1
    assert one_to_one_score(np.ones((3, 3))) == pytest.approx(1 / 3)
    assert one_to_one_score(np.array([[1.0, 1, 0], [1, 1, 0], [0, 0, 1]])) == pytest.approx(2 / 3)
    assert one_to_one_score(np.zeros((2, 2))) == 0


def test_a_run_scores_its_median_over_the_others():
    """Two runs that agree and three of noise: the median over four others is one of noise, the mean would not be."""
    rng = np.random.default_rng(0)
    c = rng.normal(size=(2000, 2))
    found = udr([c, c, *(rng.normal(size=(2000, 2)) for _ in range(3))])
    assert found[:2].max() < 0.1
    most = udr([c, c, c, rng.normal(size=(2000, 2))])
    assert most[:3].min() > 0.97


def test_centrality_is_a_mean_of_both_ways_round():
    rng = np.random.default_rng(0)
    c = rng.uniform(-1, 1, (1500, 2))
    poor = c[:, :1]  # knows one factor: as truth it is easily told, as code it cannot tell two
    whole, part = model_centrality([c, poor])
    assert whole == part, "with two runs, each is compared with the other only"
    one = factor_vae_score(c, poor).accuracy
    other = factor_vae_score(poor, c).accuracy
    assert whole == pytest.approx((one + other) / 2, abs=0.03)
    assert one < other - 0.2


@pytest.mark.parametrize("score", [udr, lambda z: udr(z, similarity="lasso"), model_centrality])
def test_runs_that_agree_are_trusted_more_than_runs_that_each_mix_in_their_own_way(score):
    rng = np.random.default_rng(0)
    c = rng.uniform(-1, 1, (1500, 4))
    good = [c[:, ::sign] * [s, 1, 1, 2] + 0.02 * rng.normal(size=c.shape) for sign in (1, -1) for s in (-3, 1)]
    mixed = [np.hstack([turned(c[:, order[:2]]), turned(c[:, order[2:]])]) for order in ([0, 1, 2, 3], [0, 2, 1, 3])]
    found = score([*good, *mixed])
    assert found.shape == (6,)
    assert found[:4].min() > found[4:].max() + 0.05


def test_selection_looks_at_informative_codes_only():
    c = np.random.default_rng(0).normal(size=(800, 1))
    runs = [np.hstack([c, RNG.normal(size=(800, 4))]) for _ in range(3)]
    mask = [True, False, False, False, False]
    assert udr(runs).max() < 0.4
    assert udr(runs, informative=3 * [mask]).min() > 0.99
    with pytest.raises(InputError, match="two at least"):
        udr([c])
    with pytest.raises(InputError, match="same observations"):
        model_centrality([c, c[1:]])
    with pytest.raises(InputError, match="one mask per run"):
        udr(runs, informative=[mask])


# FactorVAE and BetaVAE scores from data and a method ------------------------------------------------------------


class Reader:
    """A method that reads the factors off the images of a moving square, or mixes them."""

    def __init__(self, mixing=None):
        self.mixing = np.eye(2) if mixing is None else mixing

    def transform(self, x):
        mass = x.reshape(len(x), *x.shape[-2:])
        total = mass.sum((1, 2))
        places = np.stack([(mass.sum(1) @ np.arange(mass.shape[2])), (mass.sum(2) @ np.arange(mass.shape[1]))], 1)
        return (places / total[:, None]) @ self.mixing


@pytest.mark.parametrize("score", [factor_vae_score, beta_vae_score])
def test_scores_from_data_and_a_method_draw_what_the_paper_draws(score):
    data = SquaresXY(points=600).load()
    few = {"votes": 200} if score is factor_vae_score else {"points": 200}
    good, bad = score(data, Reader(), **few), score(data, Reader(np.array([[1, 1], [1, -1]])), **few)
    good, bad = (s.accuracy if isinstance(s, tuple) else s for s in (good, bad))
    assert good > 0.98
    assert bad < 0.75
    with pytest.raises(InputError, match="fitted method"):
        score(data, np.ones((600, 2)))


def test_drawn_sets_share_exactly_the_factor_that_is_held_fixed():
    from torch import Generator

    from unweave.metrics.fixed_factor import sample_sets

    for data in (DSprites().load(), DSprites().load().freeze(5_000, Generator().manual_seed(1))):
        for j in range(1, len(data.factors)):
            c = data.labels(sample_sets(data, j, 20, 16, Generator().manual_seed(0)).flatten(0, 1)).reshape(20, 16, -1)
            assert (c[..., j] == c[:, :1, j]).all()
            others = [i for i in range(len(data.factors)) if i != j and data.factors[i].size > 1]
            assert all((c[..., i] != c[:, :1, i]).any() for i in others)


def test_dead_codes_take_no_part_when_drawing_either():
    data = SquaresXY(points=600).load()

    class Dead(Reader):
        def transform(self, x):
            return np.column_stack([super().transform(x) + 0.1 * RNG.normal(size=(len(x), 2)), np.full(len(x), 0.1)])

    assert factor_vae_score(data, Dead(), votes=200) == (1.0, 2)
    with pytest.raises(InputError, match="at least two"):
        factor_vae_score(data, Dead(), votes=1)
    assert factor_vae_score(data, Dead(), votes=3).active == 2


def test_votes_and_points_for_testing_were_not_trained_on():
    """Many codes of noise and few votes: a rule that was tested on its own votes would look far better than chance."""
    rng = np.random.default_rng(0)
    c, z = rng.integers(0, 4, (4000, 4)), rng.normal(size=(4000, 60))
    assert np.mean([factor_vae_score(c, z, votes=120, seed=s).accuracy for s in range(8)]) < 0.36
    assert np.mean([beta_vae_score(c, z, points=120, seed=s) for s in range(4)]) < 0.36


# Many codes, names, scorers -------------------------------------------------------------------------------------


def test_many_codes_score_as_each_alone():
    codes = {str(s): GRID[::4] + s * RNG.normal(size=GRID[::4].shape) for s in (0.05, 0.5)}
    few = catalog.find_metrics(["mig", "sap", "irs", "mcc"])
    table = score_many(GRID[::4], codes, metrics=few, n_jobs=2)
    assert table.columns.tolist() == ["mig", "sap[svm]", "sap[r2]", "irs[q99]", "irs[q100]", "mcc"]
    for name, z in codes.items():
        assert table.loc[name, "mig"] == mig(GRID[::4], z)
    truth = prepared(GRID[::4])
    assert prepared(truth) is truth
    assert mig(truth, codes["0.5"]) == mig(GRID[::4], codes["0.5"])
    with pytest.raises(InputError, match="480 rows of factors and 479 rows of codes"):
        mig(truth, codes["0.5"][1:])


def test_a_variant_has_a_name_and_an_unknown_one_is_guessed_at():
    assert list(catalog.find_metrics(["dci[gbt]", "sap"])) == ["dci[gbt]", "sap[svm]", "sap[r2]"]
    assert "dci[gbt]" not in catalog.find_metrics(["dci"], every=True)
    with pytest.raises(InputError, match=r"no variant of dci named 'gbd'; did you mean 'gbt'"):
        catalog.find_metrics(["dci[gbd]"])


def test_grid_search_chooses_by_our_scores():
    c = np.random.default_rng(0).uniform(-1, 1, (400, 2))
    x = np.column_stack([c, 0.1 * RNG.normal(size=(400, 3))])
    scoring = {"mcc": unweave.scorer("mcc"), "d": unweave.scorer("dci[trees].disentanglement")}
    search = GridSearchCV(PCA(), {"latent_dim": [1, 2]}, scoring=scoring, refit="mcc", cv=2).fit(x, c)
    assert search.best_params_ == {"latent_dim": 2}
    assert search.cv_results_["mean_test_d"].min() >= 0
    fitted = LinearICA(latent_dim=2).fit(x)
    assert unweave.scorer("unsupervised.total_correlation")(fitted, x) == pytest.approx(0, abs=0.05)
    assert unweave.scorer("local-isometry")(fitted, x) > 0.6
    again = pickle.loads(pickle.dumps(scoring["d"]))
    assert again(fitted, x, c) == scoring["d"](fitted, x, c)


def test_scorers_say_what_they_lack():
    fitted = PCA(latent_dim=2).fit(CODES)
    with pytest.raises(InputError, match="pass them as y"):
        unweave.scorer("mcc")(fitted, CODES)
    with pytest.raises(InputError, match=r"no part of .* named ''.*completeness"):
        unweave.scorer("dci[lasso]")(fitted, CODES, GRID)
    with pytest.raises(InputError, match=r"sap stands for sap\[svm\], sap\[r2\]"):
        unweave.scorer("sap")
    with pytest.raises(InputError, match="it takes runs"):
        unweave.scorer("udr")


# Explanations ---------------------------------------------------------------------------------------------------


def findings(codes, names=("a", "b", "c")):
    return " ".join(unweave.explain(GRID, codes, names=names).findings)


def test_an_explanation_names_what_is_wrong():
    assert findings(CODES) == "Every factor has a code of its own, and every code one factor."
    noise = RNG.normal(size=(len(GRID), 1))
    assert "Code 4 never changes: dead." in findings(np.hstack([CODES, 0 * noise]))
    assert "Code 4 changes, and tells of no factor." in findings(np.hstack([CODES, noise]))
    assert "Codes 2 and 4 say the same, both of b: duplicates." in findings(np.hstack([CODES, -CODES[:, 1:2]]))
    assert "No code tells of c" in findings(CODES[:, :2])
    mixed = findings(np.hstack([turned(CODES), CODES[:, 2:]]))
    assert "a is split: code" in mixed
    assert "Code 1 is mixed: it tells of" in mixed
    assert "c is split" not in mixed


def test_an_explanation_holds_both_matrices():
    found = unweave.explain(GRID, CODES)
    assert found.names == ["factor 1", "factor 2", "factor 3"]
    np.testing.assert_allclose(found.information, np.eye(3), atol=0.02)
    np.testing.assert_allclose(found.importance, np.eye(3), atol=0.02)
    with pytest.raises(InputError, match="2 names for 3 factors"):
        unweave.explain(GRID, CODES, names=["a", "b"])


def test_explain_on_the_command_line(tmp_path, monkeypatch, capsys):
    from unweave.cli.main import main

    monkeypatch.chdir(tmp_path)
    np.save("z.npy", np.hstack([CODES, 0 * CODES[:, :1]]))
    pd.DataFrame(GRID.astype(int), columns=["size", "hue", "angle"]).to_csv("f.csv", index=False)
    with pytest.raises(SystemExit) as done:
        main(["explain", "z.npy", "--factors", "f.csv", "--out", "why.png", "--json"])
    assert done.value.code == 0
    found = json.loads(capsys.readouterr().out)
    assert found["findings"] == ["Code 4 never changes: dead."]
    assert np.array(found["information"]).shape == (3, 4)
    assert (tmp_path / "why.png").read_bytes().startswith(b"\x89PNG")
    for args, expected in (
        (["explain", "z.npy"], "give --factors FILE"),
        (["explain", "z.npy", "--factors", "f.csv", "--out", "x.txt"], "written as .svg, .png or .pdf"),
        (["select"], "name run folders"),
    ):
        with pytest.raises(SystemExit) as done:
            main(args)
        assert done.value.code == 2
        assert expected in capsys.readouterr().err


def test_select_ranks_runs_by_agreement(tmp_path, capsys):
    from unweave.cli.main import main

    runs = unweave.sweep(SquaresXY(points=400), LinearICA(), seed=range(2))
    unweave.execute(runs, tmp_path / "runs", metrics=())
    with pytest.raises(SystemExit) as done:
        main(["select", str(tmp_path / "runs"), "--json"])
    assert done.value.code == 0
    table = json.loads(capsys.readouterr().out)["runs"]
    assert [row["method"] for row in table] == ["linear-ica", "linear-ica"]
    assert table[0]["udr"] >= table[1]["udr"] > 0.8
    unweave.execute(unweave.sweep(SquaresXY(points=300), LinearICA()), tmp_path / "runs", metrics=())
    with pytest.raises(SystemExit):
        main(["select", str(tmp_path / "runs")])
    assert "different observations" in capsys.readouterr().err


def test_a_metric_of_ones_own_works_in_other_processes_and_half_precision_is_read(tmp_path):
    (tmp_path / "mine.py").write_text(
        "import unweave\n\n@unweave.metric(paper='mine')\ndef my_score(factors, codes):\n"
        '    """Mine."""\n    return float(len(codes))\n'
    )
    own = catalog.find_metrics([f"{tmp_path}/mine.py:my_score"])
    assert list(own) == ["my-score"]
    table = score_many(GRID[::96], {"a": CODES[::96], "b": CODES[::96]}, metrics=own, n_jobs=2)
    assert table["my-score"].tolist() == [20, 20]
    half = torch.from_numpy(CODES).bfloat16()
    assert mig(GRID, half) == mig(GRID, half.float())


def test_the_interval_of_repeated_runs_is_students():
    assert plus_minus([1.0, 2.0, 3.0]) == "2.000 +- 2.484"  # t(0.975, 2) = 4.3027, over the root of 3
    assert plus_minus([0.5]) == "0.500"


@pytest.fixture(scope="module")
def spread(tmp_path_factory):
    """Two linear runs, and two networks, one of which is held back by its strength."""
    folder = tmp_path_factory.mktemp("spread")
    data = SquaresXY(points=300)
    every = [*unweave.sweep(data, LinearICA(), seed=[0]), *unweave.sweep(data, PCA(), seed=[0])]
    every += unweave.sweep(data, BetaVAE(steps=60, widths=(4, 4), hidden=(16,), latent_dim=2), beta=[1.0, 200.0])
    unweave.execute(every, folder, metrics=["mcc"])
    return [read_run(folder / run.key) for run in every]


@pytest.mark.parametrize("by", ["udr", "model-centrality", "translation-difficulty", "isometry", "likelihood"])
def test_every_criterion_says_how_much_to_trust_a_run(spread, by):
    trust = trust_scores(spread, by)
    known = np.isfinite(trust)
    assert trust.shape == (4,) and known.tolist() == ([False, False, True, True] if by == "likelihood" else [True] * 4)
    if by == "likelihood":
        for run, value in zip(spread[2:], trust[2:], strict=True):
            end = pd.read_parquet(run.folder / "history.parquet").tail(6).mean()
            assert value == pytest.approx(-(end["rec"] + end["kl"]))
    if by == "isometry":
        assert trust[0] == pytest.approx(np.corrcoef(spread[0].pairs.T)[0, 1])
    if by == "translation-difficulty":
        assert trust[0] == -translation_difficulty(unweave.load(spread[0].folder), spread[0].codes).relative


def test_likelihoods_are_in_nats_per_observation_whatever_they_are_computed_in(tmp_path):
    data, small = GaussianMixture(points=400), {"steps": 60, "batch_size": 100}
    flows = [GIN(**small, lr=1e-4, standardize=own) for own in (False, True)]
    vaes = [IVAE(**small, noise_variance=s, layers=(8,), latent_dim=2) for s in (0.1, 10.0)]
    runs = [Run(data, method) for method in (*flows, *vaes)]
    unweave.execute(runs, tmp_path, metrics=[])
    found = [read_run(tmp_path / run.key) for run in runs]
    trust = trust_scores(found, "likelihood")
    ends = [pd.read_parquet(run.folder / "history.parquet").tail(6).mean() for run in found]
    x = data.load().collect(400, torch.Generator()).x
    scale = float(x.double().std(0).log().sum())  # what standardizing does to a density
    assert abs(scale) > 2
    assert trust[:2] == pytest.approx([-ends[0]["nats"], -ends[1]["nats"] - scale], abs=0.02)
    # Batches are judged by statistics of their own, which flatters them by less than a missing scale would.
    assert trust[:2] == pytest.approx([unweave.load(run.folder).log_likelihood_ for run in found[:2]], abs=1.0)
    for end, value, s in zip(ends[2:], trust[2:], (0.1, 10.0), strict=True):
        assert value == pytest.approx(-(end["rec"] + end["kl"] + 5 * np.log(2 * np.pi * s)))


def test_runs_agree_by_the_codes_that_have_not_collapsed():
    generator = np.random.default_rng(0)
    z = generator.normal(size=(500, 2))
    env = {"data": {"sha256": "", "title": ""}}
    runs = [SimpleNamespace(env=env, codes=np.c_[z, 0.01 * generator.normal(size=(500, 8))]) for _ in range(3)]
    assert trust_scores(runs, "udr").min() > 0.85 and trust_scores(runs, "model-centrality").min() > 0.95


def test_agreement_with_labels_is_spearmans(spread):
    mcc = np.array([run.scores["mcc"] for run in spread])
    assert agreement(spread, mcc)["mcc"] == pytest.approx(1) and agreement(spread, -mcc)["mcc"] == pytest.approx(-1)
    assert agreement(spread[:2], mcc[:2]) == {}  # of two nothing can be said
    assert agreement(spread, np.array([np.nan, *mcc[1:]]))["mcc"] == pytest.approx(1)


def test_a_criterion_that_no_run_has_is_named(spread):
    with pytest.raises(InputError, match="no run here has a likelihood: it needs a flow"):
        trust_scores(spread[:2], "likelihood")


def test_select_by_says_how_well_it_agrees(spread, capsys):
    from unweave.cli.main import main

    with pytest.raises(SystemExit) as done:
        main(["select", str(spread[0].folder.parent), "--by", "isometry", "likelihood", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert done.value.code == 0 and list(found["agreement"]) == ["isometry", "likelihood"]
    assert set(found["agreement"]["isometry"]) == {"mcc"} and len(found["runs"]) == 4
    order = [row["isometry"] for row in found["runs"]]
    assert order == sorted(order, reverse=True)
