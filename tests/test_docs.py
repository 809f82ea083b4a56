"""The tutorial does what it says."""

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parent.parent / "docs" / "tutorial.md").read_text()
TOLD = re.compile(r"^print\(.*\)  # (\S+)$", re.MULTILINE)


def test_the_tutorial_runs_and_prints_what_it_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    printed = []
    names = {"print": printed.append}
    for block in blocks:
        exec(block, names)
    numbers = [float(value) for value in printed if not isinstance(value, str)]
    assert numbers == pytest.approx([float(text) for text in TOLD.findall(PAGE)], abs=0.08) and len(numbers) == 9
    texts = [value for value in printed if isinstance(value, str)]
    assert any(text.startswith("across is split") for text in texts) and "local isometry" in texts[-1]
