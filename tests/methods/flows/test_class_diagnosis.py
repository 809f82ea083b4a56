"""The diagnosis of classes in sentences."""

import numpy as np
import torch

from tests.helpers import FLOW_SETTINGS
from unweave.methods import GIN
from unweave.methods.flows.class_diagnosis import (
    describe_class_count,
    describe_classes,
    describe_gaps,
    describe_omitted,
    describe_outlook,
    describe_rank,
    describe_splits,
    find_gaps,
    shorten,
)


def diagnosis_of(names, means, deviations):
    """The findings on classes with these means and deviations along two codes."""
    method = GIN()
    method.class_names_, method.has_soft_labels_, method.terms_ = names, False, ["loss", "alone"]
    method.history_ = torch.zeros(1, 3)
    method.informative_, method.n_informative_, method.order_ = [0, 1], 2, torch.arange(4)
    method.means_, method.deviations_ = torch.tensor(means), torch.tensor(deviations)
    return " ".join(method.diagnose())


def test_too_few_classes_a_gap_and_a_split_variable_are_reported():
    few_classes = diagnosis_of(["a", "b", "c"], [[0.0, 0], [1, 1], [0, 2]], [[1.0, 1], [1, 1], [1, 1]])
    assert "3 classes guarantee 1 variable" in few_classes and "split" not in few_classes
    gap = diagnosis_of(list("abcde"), [[0.0, 0], [1, 0], [30, 0], [31, 0], [1, 0]], [[1.0, 1]] * 5)
    assert "between classes 'b' and 'c' along code 1" in gap or "between classes 'e' and 'c' along code 1" in gap
    assert "along code 2" not in gap
    split = diagnosis_of(list("abcde"), [[0.0, 0]] * 5, [[1, 0.01], [1, 0.02], [0.01, 1], [0.02, 1], [1, 0.1]])
    assert "No class varies along both code 1 and code 2" in split


def test_long_lists_of_sentences_are_shortened():
    assert shorten(["x"] * 3) == ["x"] * 3 and shorten(["x"] * 9)[-1] == "(And 6 more of this kind.)"


def test_gaps_between_classes_are_reported_before_training():
    rng = np.random.default_rng(0)
    u = np.arange(600) % 3
    x = rng.standard_normal((600, 4)) + np.array([0.0, 1.0, 2.0])[u, None]
    assert "Classes overlap along each of the first 4 principal directions." in GIN(**FLOW_SETTINGS).outlook(x, u)
    x[u == 2] += 20
    apart = [text for text in GIN(**FLOW_SETTINGS).outlook(x, u) if "Nothing lies between" in text]
    assert len(apart) == 1 and "'2'" in apart[0] and "principal direction 1 " in apart[0]


def test_gaps_are_where_no_class_reaches():
    means, names = torch.tensor([0.0, 10.0, 5.0]), ["a", "b", "c"]
    assert find_gaps(means, torch.tensor([1.0, 1.0, 1.0]), names) == []  # 3 deviations and no more
    assert find_gaps(means, torch.tensor([1.0, 0.5, 1.0]), names) == [("c", "b")]
    assert find_gaps(means, torch.tensor([20.0, 0.5, 1.0]), names) == []  # the first class reaches over all others
    for scale in (1e-3, 1e3):  # the unit of a code does not matter
        assert find_gaps(scale * means, scale * torch.tensor([1.0, 1.0, 1.0]), names) == []
        assert find_gaps(scale * means, scale * torch.tensor([1.0, 0.5, 1.0]), names) == [("c", "b")]


def test_numbers_of_classes_and_ranks_are_compared_with_the_theorem():
    assert describe_class_count(2, 5) == "5 classes are enough for 2 informative variables (2 n + 1 = 5)."
    assert describe_class_count(2, 4) == (
        "4 classes guarantee 1 variable (2 n + 1 conditions for n), and 2 were found: outside the theorem, which is "
        "sufficient and not necessary."
    )
    assert "guarantee 2 variables" in describe_class_count(3, 6) and "in 4 of 4 independent ways." in describe_rank(
        2, 4
    )
    assert describe_rank(1, 1) == (
        "Probabilities vary the coefficients of 1 informative variable in 1 of 2 independent ways: fewer than the "
        "theorem requires."
    )
    assert describe_omitted(0.009) == []
    assert describe_omitted(0.01) == [
        "1% of the observations did not count, being alone with their class in a batch: raise batch_size, or leave "
        "rare classes out."
    ]


def test_a_split_is_a_pair_along_which_no_class_varies_both_ways():
    exclusive = torch.tensor([[1.0, 0.19, 1], [0.19, 1, 1]])
    assert describe_splits(exclusive) == [
        "No class varies along both code 1 and code 2: one variable is split in two; more observations, or another "
        "start (restarts=10), can join it."
    ]
    assert describe_splits(torch.tensor([[1.0, 0.2], [0.19, 1]])) == [], "a fifth of the other is variation"
    assert describe_splits(torch.tensor([[1.0, 0.1], [1, 0.1]])) == [], "the second code is idle in all classes"
    assert len(describe_splits(torch.tensor([[1.0, 0.1, 0.1], [0.1, 1, 0.1], [0.1, 0.1, 1]]))) == 0
    assert ["code 2 and code 3" in t for t in describe_splits(torch.tensor([[1.0, 1, 0.1], [1, 0.1, 1]]))] == [True]


def test_gaps_along_codes_are_named_from_one():
    means, deviations = torch.tensor([[0.0, 0], [0, 9]]), torch.ones(2, 2)
    assert describe_gaps(means, deviations, ["a", "b"]) == [
        "Nothing lies between classes 'a' and 'b' along code 2: the data do not determine how these classes "
        "align there."
    ]
    texts = describe_classes(["a", "b"], (means, deviations), None, 0.5)
    assert [text.split()[0] for text in texts] == ["2", "Nothing", "50%"]
    assert "in 3 of 4 independent ways" in describe_classes(["a", "b"], (means, deviations), 3, 0.0)[0]
    assert describe_classes(["a", "b"], (means, deviations), 3, 0.0)[0].startswith(
        "Probabilities vary the coefficients"
    )


def test_the_outlook_counts_classes_and_looks_along_ten_directions():
    rng = np.random.default_rng(0)
    x, r = torch.from_numpy(rng.normal(size=(90, 12))), torch.eye(3)[np.arange(90) % 3]
    assert describe_outlook(x, r, ["a", "b", "c"]) == [
        "3 classes guarantee 1 informative variable (2 n + 1 conditions for n).",
        "Classes overlap along each of the first 10 principal directions.",
    ]
    x[r[:, 2] > 0, 3] += 30
    _, gap = describe_outlook(x, r, ["a", "b", "c"])
    assert gap.endswith("along principal direction 1 of the observations: the data do not determine the flow there.")
    rare = torch.cat([r, torch.zeros(90, 1)], 1)
    rare[0] = torch.tensor([0.0, 0, 0, 1])  # one observation has no deviation
    assert len(describe_outlook(x, rare, ["a", "b", "c", "d"])) == 2
    assert "4 classes guarantee 1 informative variable " in describe_outlook(x, rare, ["a", "b", "c", "d"])[0]
    rare[1] = rare[0]  # two have one
    x[:2, 5] += torch.tensor([90.0, 91])
    assert any("'d'" in text for text in describe_outlook(x, rare, ["a", "b", "c", "d"]))
