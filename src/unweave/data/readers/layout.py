"""Layout of a text table: separator, decimal sign, and whether the first line holds names or values."""

from __future__ import annotations

import csv
import re
import warnings
from pathlib import Path
from typing import Any

from unweave.utils.errors import InputError, list_names
from unweave.utils.tables import restore_text

NUMBER = re.compile(r"[-+]?(\d+[.,]?\d*|\.\d+)([eE][-+]?\d+)?|nan|inf", re.IGNORECASE)
MAX_LINES, MAX_CELLS = 50, 200_000  # that are examined; a table of genes has 100,000 columns
MAX_LINE_LENGTH = 2**28  # characters; without a line break before, a file is no table


def first_lines(path: Path) -> list[str]:
    """Return the first lines of a text table that are not blank."""
    lines: list[str] = []
    with path.open(encoding="utf-8-sig") as file:
        while len(lines) < MAX_LINES and (line := file.readline(MAX_LINE_LENGTH)):
            if len(line) >= MAX_LINE_LENGTH:
                raise InputError(f"{path} has a line of more than {MAX_LINE_LENGTH:,} characters: it is no table")
            if line.strip():
                lines.append(line.rstrip("\r\n"))
            if len(lines) > 1 and len(lines) * lines[0].count(",") > MAX_CELLS:
                break
    return lines


def detect_layout(path: Path, lines: list[str]) -> dict[str, Any]:
    """Return the arguments of `pandas.read_csv` that fit the first lines: separator, decimal sign and header."""
    if not lines:
        raise InputError(f"{path} cannot be read as a table: it is empty")
    separator = next((s for s in "\t;" if s in lines[0]), ",")
    head, *body = ([cell.strip().strip('"') for cell in line.split(separator)] for line in lines)
    comma = separator != "," and any(re.fullmatch(r"-?\d+,\d+", cell) for row in (head, *body) for cell in row)
    quoted = any('"' in line for line in lines)  # a separator inside quotes does not count
    if body and len(body[0]) > len(head) and not quoted:
        raise InputError(f"{path} names {len(head)} columns, and its first row has {len(body[0])} values")
    header = None if _is_data(head, body) else 0
    if header == 0:
        names = [restore_text(name.strip()) for name in next(csv.reader([lines[0]], delimiter=separator))]
        _check_names(path, names)
        _warn_of_values(path, head, body)
    return {"sep": separator, "decimal": "," if comma else ".", "header": header}


def _check_names(path: Path, names: list[str]) -> None:
    """Raise an error for a name of two columns."""
    seen: set[str] = set()
    for name in filter(None, names):
        if name in seen:
            raise InputError(f"{path} has several columns named {name!r}: rename one")
        seen.add(name)


def _is_data(head: list[str], body: list[list[str]]) -> bool:
    """Return whether the first line holds values, not names.

    Numbers and texts are values if a text occurs again in its column. Whole numbers are names if they count (1, 2, 3)
    or if the values below are fractions.
    """
    is_number = [_is_number(cell) for cell in head]
    if not all(is_number):
        return any(is_number) and _has_repeated_text(head, body)
    if not all(cell.isdigit() for cell in head) or len(set(head)) < len(head):
        return True
    numbers = [int(cell) for cell in head]
    counting = len(numbers) > 1 and numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    return not counting and all(cell.lstrip("-").isdigit() for row in body for cell in row)


def _has_repeated_text(head: list[str], body: list[list[str]]) -> bool:
    """Return whether a text of the first line occurs again in its column."""
    repeated = (cell for row in body for cell, first in zip(row, head, strict=False) if cell == first)
    return any(cell and not _is_number(cell) for cell in repeated)


def _warn_of_values(path: Path, head: list[str], body: list[list[str]]) -> None:
    """Warn if the first line, which is taken as names, may be a row of values."""
    numbers = sum(map(_is_number, head))
    is_index = head[0] == "" and numbers == len(head) - 1  # as pandas writes numbered columns with their rows
    if (numbers and not is_index) or _has_repeated_text(head, body):
        text = f"the first line of {path} ({list_names(head)}) is taken as the names of the columns"
        warnings.warn(f"{text}, and not as data; if it is data, write a line of names above it", stacklevel=5)


def _is_number(text: str) -> bool:
    """Return whether a cell holds a number; a decimal comma is allowed."""
    return bool(NUMBER.fullmatch(text))
