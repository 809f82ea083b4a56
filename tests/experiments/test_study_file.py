"""Study files."""

import pytest

from unweave import InputError
from unweave.experiments.study_file import read_study

STUDY = '''"""Does it survive?

In every way."""
import unweave
from unweave.datasets import SwissRoll
from unweave.methods import PCA, BetaVAE

data = SwissRoll(points=200)
small = BetaVAE(steps=700, layers=(8,), batch_size=8)
runs = [
    *unweave.sweep(data, PCA(latent_dim=2), seed=range(32)),
    *unweave.sweep(data, small, latent_dim=[2, 3], seed=range(4)),
]
metrics = ["mcc"]
evaluated = 200
'''


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("runs = []", "defines no `runs`"),
        ("x = 1", "defines no `runs`"),
        ("runs = [1, 2]", "defines no `runs`"),
        ("import unweave.nowhere", "cannot be run: ModuleNotFoundError"),
        (STUDY + "import sys; sys.exit()", r"ends the program by sys.exit\(None\)"),
        ("raise SystemExit('bye')", r"ends the program by sys.exit\('bye'\)"),
        (STUDY + "metrics = 'mcc'", "a list of names"),
        (STUDY + "evaluated = 1.5", "number of observations"),
        (STUDY + "budget = -1", "expected seconds"),
    ],
)
def test_a_file_that_is_no_study_says_why(tmp_path, text, message):
    (tmp_path / "s.py").write_text(text)
    with pytest.raises(InputError, match=message):
        read_study(tmp_path / "s.py")
    with pytest.raises(InputError, match="no Python file"):
        read_study(tmp_path)
