"""Pages: the tutorial runs, lines are short, links and names lead somewhere."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from unweave.cli.main import main

TUTORIAL = (Path(__file__).parent.parent / "docs" / "tutorial.md").read_text(encoding="utf-8")
PRINTED = re.compile(r"^print\(.*\)  # (\S+)$", re.MULTILINE)


def test_the_tutorial_runs_and_prints_what_it_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", TUTORIAL, re.DOTALL)
    printed = []
    names = {"print": printed.append}
    for block in blocks:
        exec(block, names)
    numbers = [float(value) for value in printed if not isinstance(value, str)]
    assert numbers == pytest.approx([float(text) for text in PRINTED.findall(TUTORIAL)], abs=0.08) and len(numbers) == 9
    texts = [value for value in printed if isinstance(value, str)]
    assert any(text.startswith("across is split") for text in texts) and "local isometry" in texts[-1]


def test_examples_of_own_networks_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parent.parent / "docs" / "methods.md").read_text(encoding="utf-8")
    page = page[page.index("## Your own encoder and decoder") :]
    printed = []
    names = {"print": lambda value: printed.append(str(value))}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(block, names)
    assert printed == re.findall(r"^print\(.*\)  # (.*)$", page, re.MULTILINE)
    assert len(printed) == 2


def test_the_examples_of_data_larger_than_memory_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")
    section = page.split("## Larger than memory")[1].split("\n## ")[0]
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", section, re.DOTALL):
        exec(block, names)
    assert names["codes"].shape == (500, 2) and len(names["data"]) == 500
    assert capsys.readouterr().out == "['y']\n"


def test_the_page_on_own_data_runs(tmp_path, monkeypatch, capsys):
    """Python blocks and commands in order; what the page shows of the output is printed."""
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "your-data.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    for language, block in re.findall(r"```(python|sh)\n(.*?)```", page, re.DOTALL):
        if language == "python":
            exec(block, names)
            continue
        for line in block.replace("\\\n", "").splitlines():
            with pytest.raises(SystemExit) as stopped:
                main(shlex.split(line)[1:])
            assert not stopped.value.code, capsys.readouterr().err
    printed = capsys.readouterr().out
    (shown,) = re.findall(r"^```\n(factors.csv:.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert all(line in printed for line in shown.splitlines())
    assert all(text in printed for text in re.findall(r"^print\(.*\)  # (.*)$", page, re.MULTILINE))
    assert "accuracy" in printed and "angle-error" in printed


ROOT = Path(__file__).parent.parent
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "src" / "unweave" / "papers").rglob("README.md")),
]
MAX_LINE = 100


def page_name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", PAGES, ids=page_name)
def test_lines_of_pages_are_short(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    long = [f"{number}: {len(line)} characters" for number, line in enumerate(lines, 1) if len(line) > MAX_LINE]
    assert not long


@pytest.mark.parametrize("path", PAGES, ids=page_name)
def test_links_of_pages_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)#]+)", path.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (path.parent / target).exists(), target


@pytest.mark.parametrize("path", [path for path in PAGES if path.name != "CHANGELOG.md"], ids=page_name)
def test_python_files_that_pages_name_exist(path):
    folders = [ROOT, ROOT / "src" / "unweave", path.parent]
    for name in re.findall(r"(?<=[` ])[\w/]+/\w+\.py\b", path.read_text(encoding="utf-8")):
        assert any((folder / name).is_file() for folder in folders), name


def test_commands_about_papers_name_items():
    from unweave.papers.registry import items

    names = set(items())
    for path in [*PAGES, *sorted((ROOT / "src" / "unweave" / "papers").rglob("*.py"))]:
        for name in re.findall(r"unweave paper run ([a-z][\w-]*/[\w-]+)", path.read_text(encoding="utf-8")):
            assert name in names, f"{page_name(path)}: {name}"
