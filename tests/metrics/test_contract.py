"""What every metric must do; a new metric is tested by being in the catalog."""

import numpy as np
import pytest
import torch

import unweave
from unweave import InputError, catalog

# Every variant of every metric that looks at one run's codes, but for those of circular factors (test_circular.py).
METRICS = {
    name: variant
    for name, variant in catalog.find_metrics(catalog.metrics(), every=True).items()
    if variant.facts.truth in ("factors", "inputs") and variant.facts.kinds != ("circular",)
}
GUESSING = ("sap[svm]", "sap[svm-raw]", "sap[logistic]")  # accuracies: even the second-best code guesses right at times


def number(value):
    """A score, or the first field of one that has several."""
    return value[0] if isinstance(value, tuple) else value


N = 3000


@pytest.fixture
def factors(metric):
    """Continuous, or, for metrics that predict classes, of five levels."""
    c = np.random.default_rng(0).uniform(-1, 1, (N, 3))
    return np.round(2 * c) if metric.__name__ in GUESSING else c


LEVELS = np.random.default_rng(0).integers(0, [3, 4], (200, 2)).astype(float)


@pytest.fixture(scope="module")
def levels():
    """Discrete factors: three, four and five values."""
    return np.random.default_rng(0).integers(0, [3, 4, 5], (N, 3)).astype(float)


@pytest.fixture(params=METRICS)
def metric(request):
    return METRICS[request.param]


@pytest.mark.parametrize("truth", ["factors", "levels"])
def test_a_perfect_code_is_best_and_a_constant_one_worst(metric, truth, request):
    c = request.getfixturevalue(truth)
    if metric.facts.truth == "inputs" and truth == "levels":
        pytest.skip("distances on a coarse grid take a handful of values")
    jitter = 1e-3 * np.random.default_rng(1).normal(size=c.shape)
    perfect = number(metric(c, c + jitter))
    least = 0.6 if metric.__name__ in GUESSING else 0.94  # with accuracies 1 is out of reach
    least = 0.5 if metric.__name__ == "sap[svm-raw]" else least  # codes of small numbers are penalized
    assert least < perfect <= metric.facts.best + 1e-6
    constant = number(metric(c, np.ones((N, 3))))
    if metric.facts.worst is None:  # a score that guesses: one of three factors
        assert constant == pytest.approx(1 / 3, abs=0.08)
    else:
        assert constant == pytest.approx(metric.facts.worst, abs=0.05)


def test_noise_scores_less_than_a_perfect_code(metric, factors):
    noise = np.random.default_rng(1).normal(size=(N, 3))
    margin = 0.05 if metric.__name__ in GUESSING else 0.1
    # Lasso may pick one code for a factor that none predicts, which then looks pure: there, informativeness tells.
    part = -1 if metric.__name__ == "dci[lasso]" else 0
    scores = [metric(factors, codes) for codes in (noise, factors)]
    bad, good = (score[part] if isinstance(score, tuple) else score for score in scores)
    assert bad < good - margin


def test_order_sign_and_scale_of_codes_do_not_matter(metric, factors):
    codes = factors + 0.3 * np.random.default_rng(2).normal(size=factors.shape)
    # IRS weighs each code by how far it moves, InfoMEC and the FactorVAE score drop codes that move little: by
    # definition only a common scale leaves them alone.
    scale = [-10, 10, 10] if metric.__name__.startswith(("irs", "infomec", "factor-vae")) else [-1, 10, 0.1]
    shift: list[int] = [5, 0, -3]
    if metric.__name__ == "sap[svm-raw]":  # the penalty of a support vector machine depends on both
        scale, shift = [-1, 1, 1], [0, 0, 0]
    other = codes[:, [2, 0, 1]] * scale + shift
    # Trees break ties by the order of columns; everything else is equal to rounding.
    tolerance = 2e-3 if metric.__name__.startswith(("dci", "infomec")) else 1e-6
    assert number(metric(factors, other)) == pytest.approx(number(metric(factors, codes)), abs=tolerance)


# Scores that look only at the order of a code's values, or at trees of thresholds, do not mind a monotone map of it.
MONOTONE = ("mcc[spearman]", "dci[trees]")


def test_a_monotone_map_of_codes_changes_nothing_where_the_definition_says_so(metric, factors):
    codes = factors + 0.3 * np.random.default_rng(2).normal(size=factors.shape)
    before, after = (number(metric(factors, z)) for z in (codes, np.exp(2 * codes)))
    if metric.__name__ in MONOTONE:
        assert after == pytest.approx(before, abs=2e-3)
    else:
        assert after != before


def test_arrays_tensors_and_lists_are_the_same_to_it(metric, factors):
    small = factors[:300]
    expected = metric(small, small**3)
    assert metric(torch.from_numpy(small), torch.from_numpy(small**3)) == expected
    assert metric(small.tolist(), (small**3).tolist()) == expected


def test_a_dead_code_dimension_is_never_an_error_and_changes_nothing(metric, factors):
    value = number(metric(factors, np.column_stack([factors, np.full(N, 7.0)])))
    # Modularity is a mean over codes, and a code that knows nothing counts as zero: three of four are left.
    expected = number(metric(factors, factors)) * (0.75 if metric.__name__ == "modularity" else 1)
    assert value == pytest.approx(expected, abs=1e-3)


def test_more_codes_than_factors_and_fewer(metric, factors):
    noise = np.random.default_rng(3).normal(size=(N, 2))
    for codes in (np.column_stack([factors, noise]), factors[:, :1]):
        assert np.isfinite(number(metric(factors, codes)))


def part(value, name):
    return getattr(value, name) if name else number(value)


# Which parts of which scores punish a code that is turned by half a right angle, and one whose codes come twice. What
# is missing does not, by definition: a linear classifier undoes a rotation, near distances survive it, and that a
# factor has two codes is no fault for scores that look at one code at a time.
TURNED = {
    "mcc": "", "mcc[spearman]": "", "mig": "", "modularity": "", "sap[svm]": "", "sap[logistic]": "", "sap[r2]": "",
    "sap[svm-raw]": "", "sap[mixed]": "", "irs[q99]": "", "irs[q100]": "",
    "dci[trees]": "disentanglement", "dci[lasso]": "disentanglement",
    "infomec": "modularity", "beta-vae-score": "", "factor-vae-score": "",
}  # fmt: skip
DOUBLED = {
    "mig": "", "sap[svm]": "", "sap[logistic]": "", "sap[r2]": "", "dci[trees]": "completeness",
    "sap[svm-raw]": "", "sap[mixed]": "", "infomec": "compactness",
}  # fmt: skip


def test_a_turned_code_is_punished_where_the_definition_says_so(metric, factors):
    a = np.pi / 4
    # All three factors are mixed: by half a right angle in two planes.
    turn = np.array([[np.cos(a), -np.sin(a), 0], [np.sin(a), np.cos(a), 0], [0, 0, 1]])
    turn = turn @ np.array([[1, 0, 0], [0, np.cos(a), -np.sin(a)], [0, np.sin(a), np.cos(a)]])
    name = TURNED.get(metric.__name__)
    codes = factors + 0.05 * np.random.default_rng(5).normal(size=factors.shape)
    good, bad = (part(metric(factors, z), name or "") for z in (codes, codes @ turn))
    if name is None:
        assert bad == pytest.approx(good, abs=0.1)
    else:
        assert bad < good - 0.1


def test_a_doubled_code_is_punished_where_the_definition_says_so(metric, factors):
    rng = np.random.default_rng(5)
    codes = factors + 0.05 * rng.normal(size=factors.shape)
    name = DOUBLED.get(metric.__name__)
    twice = np.column_stack([codes, codes + 1e-3 * rng.normal(size=codes.shape)])
    good, bad = (part(metric(factors, z), name or "") for z in (codes, twice))
    if name is None:
        assert bad == pytest.approx(good, abs=0.1)
    else:
        assert bad < good - 0.1


def test_more_samples_move_the_score_towards_its_limit(metric):
    """The limit is taken from many samples; small subsets are further from it, on average, than larger ones."""
    rng = np.random.default_rng(6)
    shape = (12_000, 2)
    c = rng.uniform(size=shape) if metric.facts.truth == "inputs" else rng.integers(0, [3, 4], shape).astype(float)
    z = c @ np.array([[1, 0.4], [0, 1]]) + rng.uniform(-0.9, 0.9, c.shape)  # bounded: the largest deviation has a limit

    def far(n):
        subsets = [rng.choice(len(c), n, replace=False) for _ in range(8)]
        return np.mean([abs(number(metric(c[rows], z[rows])) - limit) for rows in subsets])

    limit = number(metric(c, z))
    assert far(2_000) < far(60) + 1e-12


def test_bad_input_is_refused_in_words(metric, factors):
    with pytest.raises(InputError, match=r"3,000 rows of .* and 2,999 rows of codes"):
        metric(factors, factors[:-1])
    with pytest.raises(InputError, match="axes swapped"):
        metric(factors, factors.T)
    with pytest.raises(InputError, match=r"codes contains NaN: first in row 4"):
        metric(factors, np.where(np.arange(N)[:, None] == 4, np.nan, factors))
    with pytest.raises(InputError, match="not numbers"):
        metric(factors, np.full((N, 2), "a"))
    with pytest.raises(InputError, match="at least three"):
        metric(factors[:2], factors[:2])


def test_it_carries_its_facts_and_lives_in_the_package(metric):
    assert metric.facts.paper
    assert getattr(unweave.metrics, metric.metric.__name__) is metric.metric
    scored = {name.partition(".")[0] for name in unweave.metrics.score_all(LEVELS, LEVELS).index}
    assert metric.__name__ in scored or metric.facts.truth == "inputs"
