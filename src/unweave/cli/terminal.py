"""How commands speak: tables and JSON on stdout; progress, warnings and errors on stderr."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import textwrap
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NoReturn, TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from unweave.utils.errors import InputError, unknown

T = TypeVar("T")
WIDE = 200  # columns of a file or a pipe, which no window cuts off
SHORT = 24  # letters of a cell that is a number, with what belongs to it, and not a text
STDOUT = Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else WIDE)
STDERR = Console(stderr=True)


def print_text(text: str) -> None:
    """A line for the reader, wrapped by the terminal and not by us, so that it can be copied."""
    STDOUT.print(text, highlight=False, markup=False, soft_wrap=True)


def print_json(value: Any) -> None:
    """A result for a script."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False, default=str) + "\n")


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], title: str = "", *, numbers: bool = False
) -> None:
    """A table; with `numbers`, all columns but the first are set right. Where a terminal is too narrow for numbers in
    one piece, a paragraph for each row.
    """
    # Names stay in one piece, where half of the terminal holds them; text gives way.
    whole = max((len(row[0]) for row in rows), default=0) <= STDOUT.width // 2
    widths: list[int | None] = [None] * len(columns)
    if all(len(cell) <= SHORT for row in rows for cell in row[1:]):
        found = _widths(columns, rows, whole=whole)
        if found is None:
            return _say_rows(columns, rows, title)
        widths = [*found]
    table = Table(title=title or None, title_justify="left")
    for i, (column, width) in enumerate(zip(columns, widths, strict=True)):
        align: Any = "right" if numbers and i else "left"
        table.add_column(column, justify=align, overflow="fold", no_wrap=whole and not i, width=width)
    for row in rows:
        table.add_row(*row)
    return STDOUT.print(table, highlight=False, markup=False)


def _widths(columns: Sequence[str], rows: Sequence[Sequence[str]], *, whole: bool) -> list[int] | None:
    """Letters for every column that keep words in one piece, and more where the terminal has them; None if it has not
    enough.
    """
    full = [max(map(len, cells)) for cells in zip(columns, *rows, strict=True)]
    widths = [max(map(len, " ".join(cells).split()), default=1) for cells in zip(columns, *rows, strict=True)]
    widths[:1] = full[:1] if whole else widths[:1]
    room = STDOUT.width - 3 * len(columns) - 1
    while sum(widths) < room and widths != full:
        i = max(range(len(full)), key=lambda i: full[i] - widths[i])
        widths[i] += 1
    return widths if sum(widths) <= room else None


def _say_rows(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str) -> None:
    """A table as text."""
    if title:
        print_text(title)
    for first, *others in rows:
        said = [f"{column}: {cell}" for column, cell in zip(columns[1:], others, strict=True) if cell]
        together = "; ".join(part.replace(" ", "\xa0") for part in said)
        print_text(first)
        print_text(textwrap.indent(textwrap.fill(together, STDOUT.width - 2).replace("\xa0", " "), "  "))


def print_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """In place of `warnings.showwarning`: one line, without our source code."""
    STDERR.print(f"unweave: warning: {one_line(message)}", highlight=False, markup=False, soft_wrap=True)


def exit_with_message(text: str, code: int) -> NoReturn:
    """The last line of a command that failed."""
    STDERR.print(f"unweave: {one_line(text)}", highlight=False, markup=False, soft_wrap=True)
    sys.exit(code)


def launch(main: Callable[[Any], None], options: Any) -> None:
    """A study as a program: what its user can mend is said in a line, as the command `unweave` does."""
    warnings.showwarning = print_warning
    try:
        main(plausible(parse_options(options)))
    except KeyboardInterrupt:
        exit_with_message("stopped; run it again to go on: what is done is kept", 130)
    except (InputError, OSError, MemoryError) as error:
        exit_for_error(error)


def plausible(options: T) -> T:
    """The options of a study, if they are such that it can be run."""
    for name, least in (("seeds", 1), ("steps", 0)):
        if getattr(options, name, least) < least:
            raise InputError(f"--{name} {getattr(options, name)}: expected {least} at least")
    return options


def exit_for_error(error: Exception) -> NoReturn:
    """The same for what the user can mend."""
    no_room = isinstance(error, MemoryError)
    exit_with_message("not enough memory; use fewer or smaller observations" if no_room else str(error), 2)


def one_line(text: object) -> str:
    """Without line breaks."""
    return " ".join(str(text).split())


def first_line(thing: Any) -> str:
    """The first line of a docstring."""
    return (thing.__doc__ or "").strip().split("\n")[0].strip()


def run_action(command: str, about: str, actions: Mapping[str, Callable[[list[str]], None]], args: list[str]) -> None:
    """Hand over to the action of a command that was asked for; without one, say which there are."""
    if not args or args[0] in ("-h", "--help"):
        print_text(about)
        for name, action in actions.items():
            print_text(f"  {name:8}{first_line(action)}")
        print_text(f"\n`{command} ACTION --help` explains an action.")
    elif args[0] not in actions:
        raise unknown(f"action of {command}", args[0], actions)
    else:
        actions[args[0]](args[1:])


def parse_options(options: Any, **settings: Any) -> Any:
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


Line = Callable[[str, float | None], None]
"""Shows a text and, where it is known, the share that is done."""
SECONDS_BETWEEN = 10  # between lines about the same thing, where stderr is not a terminal
_shown: ContextVar[Line | None] = ContextVar("shown", default=None)  # by the progress that is on the screen


@contextmanager
def progress(*, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """A line that says what is being done and for how long; plain lines where stderr is not a terminal."""
    with _line(quiet=quiet) as line:
        token = _shown.set(line)
        try:
            yield lambda text: line(text, None)
        finally:
            _shown.reset(token)


@contextmanager
def bar(title: str) -> Iterator[Callable[[Any], None]]:
    """A bar for training: in the progress that is on the screen, or, in a terminal, one of its own."""
    line = _shown.get()
    if line is not None:
        yield lambda p: line(p.text(title), p.step / p.steps)
        return
    with _line(quiet=not STDERR.is_terminal) as own:
        yield lambda p: own(p.text(title), p.step / p.steps)


@contextmanager
def _line(*, quiet: bool) -> Iterator[Line]:
    if quiet:
        yield lambda text, share: None
    elif not STDERR.is_terminal:
        yield _Plain()
    else:
        columns = SpinnerColumn(), BarColumn(20), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
        with Progress(*columns, console=STDERR, transient=True) as shown:
            task = shown.add_task("starting", total=None)
            yield lambda text, share: shown.update(
                task, description=text, completed=share or 0, total=None if share is None else 1
            )


class _Plain:
    """Lines for a log: all that stand for themselves, and now and then one about long work."""

    def __init__(self) -> None:
        self.last = time.monotonic()

    def __call__(self, text: str, share: float | None) -> None:
        now = time.monotonic()
        if share is not None and now - self.last < SECONDS_BETWEEN:
            return
        self.last = now
        STDERR.print(text, highlight=False, markup=False, soft_wrap=True)
