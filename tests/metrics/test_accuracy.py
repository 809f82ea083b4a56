"""Average and worst-group accuracy."""

import numpy as np
import pandas as pd
import pytest

from unweave import InputError
from unweave.metrics import (
    average_accuracy,
    worst_group_accuracy,
)


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
