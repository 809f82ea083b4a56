"""The diagnosis of classes in sentences."""

import numpy as np
import torch

from tests.helpers import FLOW_SETTINGS
from unweave.methods import GIN
from unweave.methods.flows.class_diagnosis import find_gaps, shorten


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
