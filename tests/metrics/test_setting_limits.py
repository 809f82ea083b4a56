"""Metrics at the ends of what they take: the last that is scored, the first that is refused; and their defaults."""

import inspect
import sys
import warnings
from typing import get_args, get_type_hints

import numpy as np
import pytest
import torch
from sklearn.exceptions import ConvergenceWarning

from unweave import InputError, catalog, explain, metrics
from unweave.data.conversion import as_data
from unweave.methods import PCA
from unweave.metrics.contract import Scorer, Truth, as_matrix, validate_pair, validate_rows, variants
from unweave.metrics.dci import DCI, code_importances
from unweave.metrics.factor_vae_score import scale_codes
from unweave.metrics.factors import expand_angles, group_columns, train_test_rows
from unweave.metrics.local_isometry import PreparedInputs
from unweave.metrics.uncertainty import chance_level, interval, rows_of
from unweave.utils.validation import matches_hint

RNG = np.random.default_rng(0)
C = RNG.integers(0, 3, (60, 2))
Z = C + 0.1 * RNG.normal(size=(60, 2))
METHOD = PCA(latent_dim=2).fit(Z @ RNG.normal(size=(2, 4)))
CODES = METHOD.transform(Z @ RNG.normal(size=(2, 4)))
ANGLES = metrics.prepared(np.arange(0.0, 360, 36), kinds=("circular", 360))

ACCEPTED = [
    (metrics.irs, C, Z, {"quantile": 1.0}),
    (metrics.irs, C, Z, {"quantile": 0.01}),
    (metrics.infomec, C[:20], Z[:20], {"neighbors": 10}),
    (metrics.factor_vae_score, C, Z, {"votes": 2}),
    (metrics.beta_vae_score, C, Z, {"points": 20, "pairs": 1}),
    (metrics.translation_difficulty, METHOD, CODES[:4], {"pairs": 1, "observations": 2, "steps": 0}),
    (metrics.local_isometry, Z, Z, {"closest": 1.0}),
    (metrics.unsupervised, None, Z[:3], {}),
    (metrics.angle_error, ANGLES, ANGLES.c, {}),
    (metrics.average_accuracy, [1], [1], {}),
]
REFUSED = [
    *((metrics.irs, C, Z, {"quantile": q}, "expected more than 0, at most 1") for q in (0, 1.01)),
    (metrics.infomec, C[:19], Z[:19], {"neighbors": 10}, "19 samples are too few to estimate .* from 10 neighbors"),
    (metrics.infomec, C[:, :1], Z, {}, "there is only one"),
    (metrics.modularity, C[:, :1], Z, {}, "there is only one"),
    (metrics.beta_vae_score, C[:, :1], Z, {}, "there is only one"),
    (metrics.factor_vae_score, C, Z, {"votes": 1}, "so at least two"),
    (metrics.translation_difficulty, METHOD, CODES, {"pairs": 0}, "at least one pair"),
    (metrics.translation_difficulty, METHOD, CODES, {"observations": 1}, "two observations"),
    (metrics.translation_difficulty, METHOD, CODES, {"steps": -1}, "no negative steps"),
    (metrics.translation_difficulty, METHOD, CODES, {"translator": "cubic"}, "expected 'network' or 'linear'"),
    (metrics.translation_difficulty, METHOD, CODES[:3], {}, "3 rows of codes: a translator needs two"),
    (metrics.translation_difficulty, METHOD, CODES, {"features": [[0, 1]]}, "one feature only"),
    *((metrics.local_isometry, Z, Z, {"closest": v}, "between 0 and 1") for v in (0, 1.01)),
    (metrics.unsupervised, None, Z[:2], {}, "2 samples: a score needs at least three"),
    (metrics.angle_error, metrics.prepared(ANGLES.c[:9], kinds=("circular", 360)), ANGLES.c[:9], {}, "9 samples"),
    (metrics.angle_error, C, Z, {}, "no factor is circular"),
    (metrics.mcc, C, Z, {"correlation": "kendall"}, "expected 'pearson' or 'spearman'"),
    (metrics.mcc, C, Z, {"only_circular": True}, "no factor is circular"),
    (metrics.dci, C, Z, {"depth": 2}, "depth=2 is for estimator='rf', and this is 'trees'"),
    (metrics.dci, C, Z, {"estimator": "rf", "depth": (1, 2, 3)}, "names 3 depths for 2 factors"),
    (metrics.dci, C, Z, {"estimator": "oak"}, "expected 'trees', 'rf', 'lasso', 'gbt'"),
    (metrics.sap, C, Z, {"predictor": "oak"}, "expected 'svm', 'logistic', 'r2' or 'mixed'"),
    (metrics.sap, C, Z, {"predictor": ("svm",)}, "1 predictor for 2 factors"),
    (metrics.sap, C, Z, {"predictor": "r2", "features": [[0, 1]]}, "correlates single codes"),
    (metrics.sap, Z, Z, {"predictor": "svm"}, "continuous and has no classes"),
    (metrics.average_accuracy, [0, 1], [[0.1, 0.9], [1, 0]], {}, "take the argmax first"),
    (metrics.average_accuracy, [0, 1], [0], {}, r"expected \(n,\) both"),
    (metrics.average_accuracy, [], [], {}, r"expected \(n,\) both"),
    (metrics.average_accuracy, [[0], [1]], [[0], [1]], {}, r"expected \(n,\) both"),
    (metrics.worst_group_accuracy, [0, 1], [0, 1], {"groups": [0]}, "1 row of groups and 2 labels"),
]


@pytest.mark.parametrize(("score", "truth", "codes", "settings"), ACCEPTED)
def test_the_ends_of_ranges_are_scored(score, truth, codes, settings):
    value = score(truth, codes, **settings)
    assert np.isfinite(value).all()


@pytest.mark.parametrize(("score", "truth", "codes", "settings", "message"), REFUSED)
def test_what_is_beyond_is_refused(score, truth, codes, settings, message):
    with pytest.raises(InputError, match=message):
        score(truth, codes, **settings)


@pytest.mark.parametrize(
    ("codes", "settings", "message"),
    [
        ([Z], {}, "1 run: a comparison needs two at least"),
        ([Z, Z[:50]], {}, "runs with 60, 50 rows of codes"),
        ([Z, Z], {"informative": [[True, True]]}, "expected one mask per run"),
        ([Z, Z], {"informative": [[True], [True]]}, "with one entry per code"),
        ([Z, Z], {"similarity": "kendall"}, "expected 'spearman' or 'lasso'"),
    ],
)
def test_runs_that_cannot_be_compared_are_refused(codes, settings, message):
    with pytest.raises(InputError, match=message):
        metrics.udr(codes, **settings)


def test_rows_match_and_are_three_at_least():
    validate_rows(np.ones((3, 3)), np.ones((3, 9)), "factors")
    for c, z, message in (
        ((3, 1), (4, 2), "3 rows of factors and 4 rows of codes: expected the same"),
        ((3, 9), (9, 2), r"3 rows of factors and 9 rows of codes: expected|are its axes swapped"),
        ((2, 1), (2, 2), "2 samples: a score needs at least three"),
        ((3, 4), (3, 5), "more columns than samples in both"),
    ):
        with pytest.raises(InputError, match=message):
            validate_rows(np.ones(c), np.ones(z), "factors")
    for c, z in (((5, 1), (2, 5)), ((2, 5), (5, 1))):
        with pytest.raises(InputError, match="are its axes swapped"):
            validate_rows(np.ones(c), np.ones(z), "factors")
    with pytest.raises(InputError, match="factor 1 is constant"):
        validate_pair([[0, 5], [1, 5], [2, 5]], Z[:3])
    validate_pair([[0, 5], [1, 5], [2, 5]], Z[:3], what="inputs")


def test_matrices_are_made_of_everything_with_numbers():
    for array in (torch.ones(3, 2, requires_grad=True), torch.ones(3, 2, dtype=torch.bfloat16), [[True, True]] * 3,
                  np.ones((3, 2), np.float16), np.ones((3, 2), np.uint8)):  # fmt: skip
        assert as_matrix(array, "codes").tolist() == [[1.0, 1.0]] * 3
    assert as_matrix([1, 2], "codes").shape == (2, 1) and as_matrix(np.ones((3, 2, 2)), "inputs").shape == (3, 4)
    for array, message in ((np.ones((3, 2, 2)), r"shape \(3, 2, 2\): expected"), (np.ones((0, 2)), "expected"),
                           (np.ones((3, 0)), "expected"), (np.ones(3) * 1j, "hold complex128"), (["a"], "hold <U1"),
                           (np.array([[np.nan]]), "NaN")):  # fmt: skip
        with pytest.raises(InputError, match=message):
            as_matrix(array, "codes")


def test_rows_to_train_on_are_two_at_least_and_one_is_left_to_test_on():
    fit, test = train_test_rows(3, 0.6, None)
    assert fit.tolist() == [0, 1] and test.tolist() == [2]
    fit, test = train_test_rows(90, 2 / 3, 0)
    assert sorted([*fit, *test]) == list(range(90)) and len(fit) == 60 and fit.tolist() != list(range(60))
    for n, share, message in (
        (3, 0.3, "too few"),
        (3, 0.9, "too few"),
        (9, 0.0, "expected a share"),
        (9, 1.0, "train=1.0"),
    ):
        with pytest.raises(InputError, match=message):
            train_test_rows(n, share, 0)


def test_every_code_is_in_one_feature():
    assert [group.tolist() for group in group_columns(None, Z)] == [[0], [1]]
    assert [group.tolist() for group in group_columns([[1, 0]], Z)] == [[1, 0]]
    for features in ([[0]], [[0], [1], [1]], [[0, 1], []], [[0], [2]]):
        with pytest.raises(InputError, match="expected every code from 0 to 1 in one of them"):
            group_columns(features, Z)
    with pytest.raises(ValueError, match=r"zip\(\)"):
        metrics.prepared(C, [True])
    with pytest.raises(ValueError, match=r"zip\(\)"):
        expand_angles(Z, (360,))


def test_intervals_need_two_resamples_and_take_rows_of_everything():
    assert interval(metrics.mig, C, Z, repeats=2)[""][0] <= metrics.mig(C, Z) <= interval(metrics.mig, C, Z)[""][1]
    with pytest.raises(InputError, match="bootstrap=1: an interval needs at least two"):
        interval(metrics.mig, C, Z, repeats=1)
    rows = np.array([2, 0])
    assert rows_of(None, rows) is None and rows_of(METHOD, rows) is METHOD
    for truth in (torch.arange(3.0, requires_grad=True), [0, 1, 2], metrics.prepared(np.arange(3))):
        assert np.asarray(rows_of(truth, rows)).ravel().tolist() == [2, 0]


def test_what_no_estimator_can_be_scored_by_is_refused():
    with pytest.raises(InputError, match="does not score one estimator's codes: it takes runs"):
        Scorer(metrics.udr)
    with pytest.raises(InputError, match=r"part of dci.*pass 'dci.disentanglement'"):
        Scorer(metrics.dci, "purity")
    with pytest.raises(InputError, match="needs the true factors"):
        Scorer(metrics.mcc)(METHOD, np.ones((5, 4)))
    assert DCI._fields == ("disentanglement", "completeness", "informativeness")


# Defaults -------------------------------------------------------------------------------------------------------------

DEFAULTS = {
    "angle_error": {"seed": 0},
    "average_accuracy": {"groups": None},
    "beta_vae_score": {"points": 1_000, "pairs": 64, "seed": 0},
    "dci": {"estimator": "trees", "depth": None, "features": None, "train": 2 / 3, "seed": 0},
    "explicitness": {"train": 2 / 3, "seed": 0},
    "factor_vae_score": {"votes": 1_000, "batch": 64, "prune": 0.05, "seed": 0},
    "infomec": {"prune": 1 / 20, "neighbors": 10, "seed": 0},
    "irs": {"quantile": 0.99},
    "local_isometry": {"closest": 0.05, "points": 3_000, "seed": 0},
    "mcc": {"correlation": "pearson", "only_circular": False},
    "mig": {"bins": 20},
    "model_centrality": {"votes": "auto", "seed": 0},
    "modularity": {"bins": 20},
    "nuisance_probe": {"train": 0.5, "seed": 0},
    "sap": {"predictor": "svm", "standardize": True, "features": None, "train": 2 / 3, "seed": 0},
    "translation_difficulty": {
        "features": None, "translator": "linear", "pairs": 2, "observations": 256, "steps": 300, "seed": 0,
    },
    "udr": {"similarity": "spearman", "informative": ()},
    "unsupervised": {"bins": 20},
    "worst_group_accuracy": {"groups": None},
}  # fmt: skip
SLOW = {"dci": ("rf", "rf-cv", "gbt"), "translation_difficulty": ("network",)}
DEFAULT_VARIANTS = {"dci": ["dci[trees]"], "sap": ["sap[svm]", "sap[r2]"], "irs": ["irs[q99]", "irs[q100]"],
                    "translation_difficulty": ["translation-difficulty[linear]"]}  # fmt: skip
WORST = {"explicitness": 0.5, "beta_vae_score": None, "angle_error": None}
LOW_IS_BEST = ("angle_error", "nuisance_probe", "translation_difficulty", "unsupervised")
NUMBERS = ("ordinal", "circular", "real")
EVERY = ("nominal", *NUMBERS)
KINDS = {
    "mcc": {"": NUMBERS, "spearman": NUMBERS, "circular": ("circular",)}, "angle_error": {"": ("circular",)},
    "dci": {"lasso": NUMBERS}, "sap": {"r2": NUMBERS},
}  # fmt: skip
TRUTHS = {
    "local_isometry": "inputs", "translation_difficulty": "decoder", "unsupervised": "nothing", "udr": "runs",
    "model_centrality": "runs", "nuisance_probe": "labels", "average_accuracy": "labels",
    "worst_group_accuracy": "labels",
}  # fmt: skip


@pytest.mark.parametrize("name", DEFAULTS)
def test_defaults_and_facts_are_those_of_the_papers_and_the_reference_libraries(name):
    function = getattr(metrics, name)
    parameters = inspect.signature(function).parameters.values()
    assert {p.name: p.default for p in parameters if p.default is not p.empty} == DEFAULTS[name]
    facts = function.facts
    assert facts.best == (0.0 if name in LOW_IS_BEST else 1.0) and facts.slow == SLOW.get(name, ())
    assert facts.worst == WORST.get(name, 0.0) and facts.truth == TRUTHS.get(name, "factors")
    assert facts.truth in get_args(Truth) and facts.variant_kinds == KINDS.get(name, {})
    assert facts.kinds == next(iter(KINDS.get(name, {"": EVERY}).values()), EVERY) or name in ("dci", "sap")
    assert list(variants(function)) == DEFAULT_VARIANTS.get(name, [name.replace("_", "-")])
    hints = get_type_hints(function)
    for settings in facts.variants.values():
        assert all(matches_hint(value, hints[setting]) for setting, value in settings.items()), "such a setting exists"


def test_every_metric_is_listed_here():
    assert {metric.__name__ for metric in catalog.metrics().values()} == DEFAULTS.keys()


def test_metrics_of_every_kind_score_an_estimator_and_larger_is_better():
    x = Z @ RNG.normal(size=(2, 4))
    z = METHOD.transform(x)
    assert Scorer(metrics.mcc)(METHOD, x, C) == metrics.mcc(C, z)
    assert Scorer(metrics.dci, "completeness")(METHOD, x, C) == metrics.dci(C, z).completeness
    assert Scorer(metrics.unsupervised, "mutual_information")(METHOD, x) == -metrics.unsupervised(None, z)[1]
    assert (
        Scorer(metrics.translation_difficulty, "relative")(METHOD, x) == -metrics.translation_difficulty(METHOD, z)[2]
    )
    assert Scorer(metrics.local_isometry)(METHOD, x) == metrics.local_isometry(x, z)
    scaled = PCA(latent_dim=2).fit(as_data(x * [1, 10, 100, 1000]))
    assert -1 <= Scorer(metrics.local_isometry)(scaled, x * [1, 10, 100, 1000]) <= 1


@pytest.mark.parametrize(
    ("module", "model", "score"),
    [
        (metrics.explicitness, "LogisticRegression", lambda: metrics.explicitness(C, Z)),
        (metrics.infomec, "LogisticRegression", lambda: metrics.infomec(C, Z)),
        (metrics.beta_vae_score, "LogisticRegression", lambda: metrics.beta_vae_score(C, Z, points=30, pairs=2)),
        (metrics.sap, "LinearSVC", lambda: metrics.sap(C, Z)),
        (metrics.dci, "Lasso", lambda: metrics.dci(C, Z, estimator="lasso")),
        (metrics.nuisance_probe, "MLPClassifier", lambda: metrics.nuisance_probe(C, Z)),
    ],
)
def test_models_that_have_not_converged_are_no_news(module, model, score, monkeypatch, recwarn):
    """The last iterations change little, and users could not change them."""
    real = getattr(sys.modules[module.__module__], model)

    class Impatient(real):
        def fit(self, x, y):
            warnings.warn("not converged", ConvergenceWarning, stacklevel=1)
            return super().fit(x, y)

    monkeypatch.setattr(sys.modules[module.__module__], model, Impatient)
    score()
    assert not [w for w in recwarn if issubclass(w.category, ConvergenceWarning)]


def test_codes_are_pruned_by_their_deviation():
    z = np.array([[1.0, 0.1, 5, 0.04], [-1, -0.1, 5, -0.04]])
    np.testing.assert_allclose(scale_codes(z, 0.05), [[1, 1], [-1, -1]])
    np.testing.assert_allclose(scale_codes(z, 0.0), [[1, 1, 1], [-1, -1, -1]])
    assert scale_codes(z, 1.0).shape == (2, 1), "the largest is never pruned"
    assert scale_codes(np.ones((3, 2)), 0.05).shape == (3, 0)


TEXT = np.array(["a"] * 60)
ONLY_FACTORS = [name for name in DEFAULTS if TRUTHS.get(name, "factors") == "factors"]


@pytest.mark.parametrize("name", [*ONLY_FACTORS, "nuisance_probe"])
def test_what_holds_no_numbers_is_named(name):
    score = getattr(metrics, name)
    with pytest.raises(InputError, match=r"^factors hold <U1, not numbers"):
        score(TEXT, Z)
    for truth in (C, metrics.prepared(C)):
        with pytest.raises(InputError, match=r"^codes hold <U1, not numbers"):
            score(truth, TEXT)
        with pytest.raises(InputError, match=r"^60 rows of factors and 59 rows of codes: expected the same"):
            score(truth, Z[1:])


def test_what_holds_no_numbers_is_named_by_the_other_metrics_too():
    for score, what in (
        (lambda: metrics.local_isometry(TEXT, Z), "inputs"),
        (lambda: metrics.local_isometry(Z, TEXT), "codes"),
        (lambda: metrics.unsupervised(None, TEXT), "codes"),
        (lambda: metrics.udr([Z, TEXT]), "codes"),
        (lambda: metrics.model_centrality([Z, TEXT]), "codes"),
        (lambda: metrics.translation_difficulty(METHOD, TEXT), "codes"),
        (lambda: chance_level(metrics.mcc, C, TEXT), "codes"),
        (lambda: interval(metrics.mcc, C, TEXT), "codes"),
        (lambda: metrics.score_all(C, TEXT), "codes"),
        (lambda: metrics.score_many(C, {"a": TEXT}), "codes"),
    ):
        with pytest.raises(InputError, match=rf"^{what} hold <U1, not numbers"):
            score()
    with pytest.raises(InputError, match=r"^60 rows of inputs and 59 rows of codes"):
        metrics.local_isometry(Z, Z[1:])
    with pytest.raises(InputError, match=r"^60 rows of inputs and 59 rows of codes"):
        metrics.local_isometry(np.array(Z).view(PreparedInputs), Z[1:])


def test_defaults_of_tables_are_all_metrics_of_such_factors_but_the_slow_ones():
    table = metrics.score_all(C, Z)
    dci = [f"dci[{name}].{part}" for name in ("trees", "lasso") for part in DCI._fields]
    infomec = [f"infomec.{part}" for part in ("modularity", "explicitness", "compactness")]
    every = {
        *dci, *infomec, "beta-vae-score", "explicitness", "factor-vae-score.accuracy", "factor-vae-score.active",
        "irs[q99]", "irs[q100]", "mcc", "mcc[spearman]", "mig", "modularity", "sap[svm]", "sap[svm-raw]",
        "sap[logistic]", "sap[r2]", "sap[mixed]",
    }  # fmt: skip
    assert set(table.index) == every
    assert table.columns.tolist() == ["value", "best"] and table.loc["mig", "best"] == 1
    many = metrics.score_many(C, {"a": Z, "b": Z[:, ::-1]}, n_jobs=1)
    assert set(many.columns) == every and many.best_scores["mig"] == 1.0
    assert "factor-vae-score.active" not in many.best_scores and many.index.tolist() == ["a", "b"]
    with pytest.warns(UserWarning, match="was not computed"):
        angles = metrics.score_all(metrics.prepared(np.arange(0.0, 360, 3), kinds=("circular", 360)), np.arange(120.0))
    assert {"angle-error", "mcc[circular]"} <= set(angles.index)


def test_explanations_show_importances_of_trees():
    found = explain(C, Z, seed=3)
    expected, _ = code_importances(metrics.prepared(C), Z, estimator="trees", depth=None, train=2 / 3, seed=3)
    np.testing.assert_allclose(found.importance, expected.T)
    assert found.names == ["factor 1", "factor 2"]
