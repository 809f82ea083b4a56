"""How commands speak: tables and JSON on stdout; progress, warnings and errors on stderr."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from .errors import InputError

OUT, ERR = Console(), Console(stderr=True)


def say(text: str) -> None:
    """A line for the reader, wrapped by the terminal and not by us, so that it can be copied."""
    OUT.print(text, highlight=False, markup=False, soft_wrap=True)


def say_json(value: Any) -> None:
    """A result for a script."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False, default=str) + "\n")


def say_table(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str = "", *, numbers: bool = False) -> None:
    """A table; with `numbers`, all columns but the first are set right."""
    table = Table(title=title or None, title_justify="left")
    for i, column in enumerate(columns):
        # Names stay in one piece, as far as half of the terminal holds them; text gives way.
        least = min(max((len(row[0]) for row in rows), default=0), OUT.width // 2) if i == 0 else None
        table.add_column(column, justify="right" if numbers and i else "left", overflow="fold", min_width=least)
    for row in rows:
        table.add_row(*row)
    OUT.print(table, highlight=False, markup=False)


def warn(message: Warning | str, *_: Any, **__: Any) -> None:
    """In place of `warnings.showwarning`: one line, without our source code."""
    ERR.print(f"unweave: warning: {one_line(message)}", highlight=False, markup=False, soft_wrap=True)


def stop(text: str, code: int) -> NoReturn:
    """The last line of a command that failed."""
    ERR.print(f"unweave: {one_line(text)}", highlight=False, markup=False, soft_wrap=True)
    sys.exit(code)


def one_line(text: object) -> str:
    """Without line breaks."""
    return " ".join(str(text).split())


def summary(thing: Any) -> str:
    """The first line of a docstring."""
    return (thing.__doc__ or "").strip().split("\n")[0].strip()


def parsed(options: Any, **settings: Any) -> Any:
    """`tyro.cli`, whose errors, drawn as boxes of many lines, become one line like all others."""
    import tyro

    with contextlib.redirect_stderr(io.StringIO()) as box:
        try:
            return tyro.cli(options, **settings)
        except SystemExit as stopped:
            if not stopped.code:
                raise
    lines = [line.strip("╭╮╰╯│─ ") for line in box.getvalue().splitlines()]
    raise InputError(" ".join(line for line in lines[1:] if line))


@contextmanager
def progress(*, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """A line that says what is being done and for how long; plain lines where stderr is not a terminal."""
    if quiet:
        yield lambda text: None
    elif not ERR.is_terminal:
        yield lambda text: ERR.print(text, highlight=False, markup=False, soft_wrap=True)
    else:
        columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
        with Progress(*columns, console=ERR, transient=True) as bar:
            task = bar.add_task("starting", total=None)
            yield lambda text: bar.update(task, description=text)
