"""Output of commands: text, tables and JSON on stdout; warnings and errors on stderr."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from collections.abc import Sequence
from typing import Any, NoReturn

from rich.console import Console
from rich.table import Table

PIPE_WIDTH = 200  # columns of a table that is written to a file or a pipe
MAX_NUMBER_LENGTH = 24  # characters of a cell that holds a number and its interval; longer cells are text
USER_ERROR = 2  # exit code
STDOUT = Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else PIPE_WIDTH)
STDERR = Console(stderr=True)


def print_text(text: str) -> None:
    """Print a text without line breaks of our own, so that it can be copied from the terminal."""
    STDOUT.print(text, highlight=False, markup=False, soft_wrap=True)


def print_json(value: Any) -> None:
    """Print a result for a script."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False, default=str) + "\n")


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], title: str = "", *, numbers: bool = False
) -> None:
    """Print a table; with `numbers`, all columns but the first are aligned to the right.

    Numbers are never broken: where the terminal is too narrow for them, print one paragraph per row.
    """
    # Keep names unbroken if half of the terminal has room for them; longer ones and texts wrap.
    short_names = max((len(row[0]) for row in rows), default=0) <= STDOUT.width // 2
    widths: Sequence[int | None] | None = [None] * len(columns)
    if all(len(cell) <= MAX_NUMBER_LENGTH for row in rows for cell in row[1:]):
        widths = _fit_widths(columns, rows, short_names=short_names)
    if widths is None:
        return _print_paragraphs(columns, rows, title)
    if title:
        STDOUT.print(title, style="italic", highlight=False, markup=False, soft_wrap=True)
    table = Table()
    for i, (column, width) in enumerate(zip(columns, widths, strict=True)):
        align: Any = "right" if numbers and i else "left"
        table.add_column(column, justify=align, overflow="fold", no_wrap=short_names and not i, width=width)
    for row in rows:
        table.add_row(*row)
    return STDOUT.print(table, highlight=False, markup=False)


def _fit_widths(columns: Sequence[str], rows: Sequence[Sequence[str]], *, short_names: bool) -> list[int] | None:
    """Return column widths that break no word and fill the terminal; None if it is too narrow."""
    full = [max(map(len, cells)) for cells in zip(columns, *rows, strict=True)]
    widths = [max(map(len, " ".join(cells).split()), default=1) for cells in zip(columns, *rows, strict=True)]
    widths[:1] = full[:1] if short_names else widths[:1]
    available = STDOUT.width - 3 * len(columns) - 1  # without borders and padding
    while sum(widths) < available and widths != full:
        i = max(range(len(full)), key=lambda i: full[i] - widths[i])
        widths[i] += 1
    return widths if sum(widths) <= available else None


def _print_paragraphs(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str) -> None:
    """Print a table as one paragraph per row."""
    if title:
        print_text(title)
    for name, *others in rows:
        cells = [f"{column}: {cell}" for column, cell in zip(columns[1:], others, strict=True) if cell]
        text = "; ".join(cell.replace(" ", "\xa0") for cell in cells)  # do not break within a cell
        print_text(name)
        print_text(textwrap.indent(textwrap.fill(text, STDOUT.width - 2).replace("\xa0", " "), "  "))


def print_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Print a warning as one line, without its source code; replaces `warnings.showwarning`."""
    STDERR.print(f"unweave: warning: {join_lines(message)}", highlight=False, markup=False, soft_wrap=True)


def exit_with_message(text: str, code: int) -> NoReturn:
    """Print one line on stderr and exit."""
    STDERR.print(f"unweave: {join_lines(text)}", highlight=False, markup=False, soft_wrap=True)
    sys.exit(code)


def exit_for_error(error: Exception) -> NoReturn:
    """Print an error that the user can correct, and exit."""
    out_of_memory = isinstance(error, MemoryError)
    text = "not enough memory; use fewer or smaller observations" if out_of_memory else str(error)
    exit_with_message(text, USER_ERROR)


def join_lines(text: object) -> str:
    """Return the text without line breaks."""
    return " ".join(str(text).split())
