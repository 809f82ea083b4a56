"""Tables in terminals of any width."""

import io

import pytest
from rich.console import Console

from unweave.cli import terminal


@pytest.mark.parametrize("first", ["a" * 30, "b" * 70])
def test_tables_are_no_wider_than_the_terminal(first, monkeypatch):
    page = io.StringIO()
    monkeypatch.setattr(terminal, "STDOUT", Console(file=page, width=80))
    terminal.print_table(["name", "one", "two"], [[first, "words and words " * 9, "more of them " * 9]])
    lines = page.getvalue().splitlines()
    assert all(len(line) <= 80 and line[-1] in "┓┃┩│┘" for line in lines)
    assert any(first in line for line in lines) == (len(first) < 40)


@pytest.mark.parametrize("width", [50, 90, 200])
def test_numbers_are_never_broken(width, monkeypatch):
    page = io.StringIO()
    monkeypatch.setattr(terminal, "STDOUT", Console(file=page, width=width))
    rows = [[f"method {i}, beta = 4", *(f"0.{i}{j}5 +- 0.1{j}3 (0.50)" for j in range(5))] for i in range(2)]
    terminal.print_table(["method", *"abcde"], rows, "scores", numbers=True)
    text = page.getvalue()
    assert all(len(line) <= width for line in text.splitlines()) and "scores" in text and "method 1" in text
    for row in rows:
        for cell in row[1:]:
            assert all(word in text for word in cell.split())
    assert ("┃" in text) == (width > 50) and ("b: 0.015" in text) == (width == 50)
