"""What a type checker sees: typed examples, typed public names."""

import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
PACKAGES = ("unweave", "unweave.methods", "unweave.datasets", "unweave.metrics")
FIT = "unweave.methods.BetaVAE(beta=4).fit(np.zeros((10, 4)))"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return mypy's report on the examples and on a file that reveals the type of every public name.

    Errors in the package itself are left out, as for a user who has installed it.
    """
    pytest.importorskip("mypy")
    names = [f"{package}.{name}" for package in PACKAGES for name in import_module(package).__all__]
    lines = ["import numpy as np", *(f"import {package}" for package in PACKAGES), f"reveal_type({FIT})  # fit"]
    lines += ["reveal_type(unweave.methods.PCA().fit_transform(np.zeros((10, 4))))"]
    lines += [f"reveal_type({name})  # {name}" for name in names]
    user_file = tmp_path_factory.mktemp("typing") / "user_file.py"
    user_file.write_text("\n".join(lines) + "\n")
    flags = ["--strict", "--follow-imports", "silent", "--ignore-missing-imports", "--config-file", ""]
    command = [sys.executable, "-m", "mypy", *flags, "--cache-dir", str(ROOT / ".mypy_cache" / "users")]
    environment = os.environ | {"MYPYPATH": str(ROOT / "src")}
    arguments = [str(path) for path in (*EXAMPLES, user_file)]
    result = subprocess.run(
        [*command, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode in (0, 1), result.stderr  # 1: errors in the checked files
    return result.stdout


def revealed(report: str) -> dict[str, str]:
    """Return the revealed types by the comment of their line."""
    lines = re.findall(r'user_file\.py:(\d+): note: Revealed type is "(.*)"', report)
    names = [
        "fit",
        "fit_transform",
        *(f"{package}.{name}" for package in PACKAGES for name in import_module(package).__all__),
    ]
    first = len(PACKAGES) + 2
    return {names[int(number) - first]: text for number, text in lines}


def test_examples_are_typed_strictly(report):
    assert "error:" not in report, report


def test_fit_returns_the_type_of_the_method(report):
    assert revealed(report)["fit"].endswith("BetaVAE")


def test_no_public_name_is_untyped(report):
    types = revealed(report)
    assert len(types) > 80
    assert not [name for name, text in types.items() if text == "Any"]


def test_codes_are_arrays(report):
    assert revealed(report)["fit_transform"].startswith("numpy.ndarray")
