"""Options from dataclasses, errors in one line, and tables in terminals of any width."""

import errno
import io
from dataclasses import dataclass

import pytest
from rich.console import Console

from unweave import InputError
from unweave.cli import terminal
from unweave.cli.terminal import (
    docstring_summary,
    exit_for_error,
    exit_with_message,
    join_box,
    parse_options,
    run_action,
)


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


@dataclass
class Options:
    """Two numbers."""

    count: int = 1
    """Number of runs."""
    rate: float = 0.5
    budget: float | None = None


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--count", "two"], "--count: 'two' is not an integer. Expected: --count INT"),
        (["--rate", "fast"], "--rate: 'fast' is not a number. Expected: --rate FLOAT"),
        (["--budget", "a"], "--budget: 'a' is no {None}|FLOAT. Expected: --budget {None}|FLOAT"),
        (["--cuont", "2"], "Unrecognized options: --cuont, 2. Perhaps you meant: --count INT Number of runs"),
        (["--count", "1" * 20], "--count 11111111111111111111: expected an integer of at most 18 digits"),
        (["--count"], "Missing value for argument '--count'"),
    ],
)
def test_wrong_options_give_one_line(args, message):
    with pytest.raises(InputError) as error:
        parse_options(Options, prog="unweave test", args=args)
    text = str(error.value)
    assert text.startswith(message) and "\n" not in text and ("For all options, " in text or "18 digits" in text)
    assert "─" not in text and "│" not in text


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(errno.ENOSPC, "No space left on device"),
         "unweave: No space left on device; free disk space and repeat the command"),
        (FileNotFoundError(errno.ENOENT, "No such file or directory", "a.csv"),
         "unweave: No such file or directory: 'a.csv'"),
        (MemoryError(), "unweave: not enough memory; use fewer or smaller observations"),
    ],
)  # fmt: skip
def test_errors_of_the_system_say_what_to_do(error, message, capsys):
    with pytest.raises(SystemExit) as end:
        exit_for_error(error)
    assert end.value.code == 2 and " ".join(capsys.readouterr().err.split()) == message


def test_the_box_of_a_terminal_without_unicode_is_one_line_as_well():
    lines = (
        "+- Parsing error ---+",
        "| Unrecognized: a   |",
        "| ----------------- |",
        "| For all, see help |",
        "+---+",
    )
    assert join_box("\n".join(lines)) == "Unrecognized: a. For all, see help"


def test_long_arguments_do_not_hide_the_error(capsys):
    with pytest.raises(SystemExit):
        exit_with_message(f"cannot write {'x' * 5_000}.csv: {'y ' * 5_000}: name too long", 2)
    text = "".join(capsys.readouterr().err.splitlines())
    assert text.startswith("unweave: cannot write xxx") and text.endswith("name too long") and len(text) < 2_200


def test_actions_are_listed_and_dispatched(capsys):
    calls = []

    def start(args):
        """Start it."""
        calls.append(args)

    run_action("unweave test", "usage", {"start": start}, ["start", "-x"])
    assert calls == [["-x"]] and docstring_summary(start) == "Start it."
    run_action("unweave test", "usage", {"start": start}, [])
    assert "start   Start it." in capsys.readouterr().out
    with pytest.raises(InputError, match="did you mean 'start'"):
        run_action("unweave test", "usage", {"start": start}, ["strat"])  # codespell:ignore
