"""Pages: their code runs and prints what they show, lines are short, links and names lead somewhere."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from unweave import catalog
from unweave.cli.main import main

ROOT = Path(__file__).parent.parent
SITE = [path for path in sorted((ROOT / "docs").rglob("*.md")) if "_build" not in path.parts]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "CODE_OF_CONDUCT.md")),
    *SITE,
    *sorted((ROOT / "src" / "unweave" / "papers").rglob("README.md")),
]
MAX_LINE = 100
BLOCK = re.compile(r"^```(python|sh|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
STATED = re.compile(r"^ *print\(.*\)  # (.+)$", re.MULTILINE)


def page_name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def blocks(path: Path) -> list[tuple[str, str]]:
    """(language, text) of the blocks of a page that are run, or show what the block before them prints."""
    return BLOCK.findall(path.read_text(encoding="utf-8"))


def run_command(line: str, capsys: Any) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(shlex.split(line)[1:])
    assert not stopped.value.code, f"{line}: {capsys.readouterr().err}"


def run_block(language: str, text: str, names: dict[str, Any], capsys: Any) -> str:
    """Run a block, and return what it prints."""
    capsys.readouterr()
    if language == "python":
        exec(compile(text, "page", "exec"), names)
    else:
        for line in text.replace("\\\n", " ").splitlines():
            if line.strip() and not line.startswith("#"):
                run_command(line.partition("  #")[0], capsys)
    printed = capsys.readouterr()
    return printed.out + printed.err


def is_near(stated: str, printed: str) -> bool:
    """Whether two texts agree: numbers within 0.08, everything else to the letter."""
    number = r"-?\d+\.\d+|-?\d+"
    same_words = re.sub(number, "#", stated) == re.sub(number, "#", printed)
    pairs = zip(re.findall(number, stated), re.findall(number, printed), strict=same_words)
    return same_words and all(float(a) == pytest.approx(float(b), abs=0.08) for a, b in pairs)


def normalized(line: str) -> str:
    return " ".join(line.split())


def unprinted(text: str, printed: str) -> Iterator[str]:
    """Yield the lines of a shown output that were not printed; spaces may differ, `...` stands for anything."""
    lines = [normalized(line) for line in printed.splitlines()]
    for line in map(normalized, text.splitlines()):
        start, dots, _ = line.partition("...")
        if line and not any(is_near(line, each) or (dots and each.startswith(start)) for each in lines):
            yield line


@pytest.mark.parametrize("path", [path for path in [ROOT / "README.md", *SITE] if blocks(path)], ids=page_name)
def test_pages_run_and_print_what_they_show(path, tmp_path, monkeypatch, capsys):
    """Python blocks and commands of a page are run in order, in one folder; a block ```text is what was printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(sys, "path", [*sys.path])
    names: dict[str, Any] = {"__name__": "page"}
    printed = ""
    for language, text in blocks(path):
        if language == "text":
            assert not list(unprinted(text, printed)), printed
            continue
        printed = run_block(language, text, names, capsys)
        for stated in STATED.findall(text) if language == "python" else ():
            assert any(is_near(stated, line) for line in printed.splitlines()), f"{stated} is not in: {printed}"


def test_shown_output_is_compared():
    assert list(unprinted("mcc: 0.90\nother", "mcc: 0.95\n")) == ["other"]
    assert list(unprinted("mcc: 0.50", "mcc: 0.95\n")) == ["mcc: 0.50"]
    assert not list(unprinted("table of 3 ...", "  table of 3   rows\n"))


@pytest.mark.parametrize("path", PAGES, ids=page_name)
def test_lines_of_pages_are_short(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    long = [f"{number}: {len(line)} characters" for number, line in enumerate(lines, 1) if len(line) > MAX_LINE]
    assert not long


def test_the_front_page_is_short_and_starts_with_the_two_commands():
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 150
    assert {"make demo", "make test"} <= {line[:9] for line in lines[:30]}


def test_counts_of_the_landing_page_are_those_of_the_catalog():
    text = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    counts = [len(kind()) for kind in (catalog.methods, catalog.datasets, catalog.metrics)]
    assert "{} methods, {} datasets and {} metrics".format(*counts) in text


@pytest.mark.parametrize("path", PAGES, ids=page_name)
def test_links_of_pages_lead_somewhere(path):
    """Pages of the gallery and of the API reference are made by the build, whose links `make check` follows."""
    text = re.sub(r"`[^`]*`", "", path.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        made = "gallery/" in target or "generated/" in target
        if not re.match(r"https?:|mailto:", target) and not (path in SITE and made):
            assert (path.parent / target).exists() or (path.parent / f"{target}.md").exists(), target


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


def test_broken_links_of_a_site_are_found(tmp_path):
    (tmp_path / "index.html").write_text('<html><a href="a.html#top"></a><a href="a.html#no"></a><img src="x.png">')
    (tmp_path / "a.html").write_text(
        '<html><h1 id="top"></h1><a href="https://elsewhere.org">o</a><a href="#top">up</a>'
    )
    command = [sys.executable, str(ROOT / "docs" / "check_links.py"), str(tmp_path)]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 1
    assert checked.stdout.splitlines()[:2] == [
        "index.html: a.html#no: no such anchor",
        "index.html: x.png: no such file",
    ]
    (tmp_path / "index.html").write_text('<html><a href="a.html#top"></a>')
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
