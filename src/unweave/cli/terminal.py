"""Options and output of commands: flags from dataclasses; text, tables and JSON on stdout; warnings and errors."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from rich.console import Console
from rich.table import Table

from unweave.utils.errors import InputError, first_line, kebab, unknown

if TYPE_CHECKING:
    from unweave.experiments.run import FinishedRun

PIPE_WIDTH = 200  # columns of a table that is written to a file or a pipe
MAX_NUMBER_LENGTH = 24  # characters of a cell that holds a number and its interval; longer cells are text
MAX_INTEGER = 10**18  # beyond it, sums and products leave 64 bits
MAX_WORD_LENGTH, MAX_LINE_LENGTH = 300, 2_000  # characters of an error; arguments may have any length
USER_ERROR = 2  # exit code
STDOUT = Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else PIPE_WIDTH)
STDERR = Console(stderr=True)
PYTHON_MESSAGES = {  # of int() and float(), which tyro passes on
    r"invalid literal for int\(\) with base 10: ('.*?')": r"\1 is not an integer",
    r"could not convert string to float: ('.*?')": r"\1 is not a number",
    "Argument helptext:": "Expected:",
    "For full helptext, (run|see)": r"For all options, \1",
    r"^Error parsing (--\S+): ": r"\1: ",
    r"no type matching (\S+) could be instantiated from \[(.*?)\]\. Got errors:.*?(?=\. Expected:|$)": r"\2 is no \1",
}


# Options --------------------------------------------------------------------------------------------------------------


def parse_options(options: Any, **settings: Any) -> Any:
    """Parse arguments into a dataclass by `tyro.cli`; turn its errors, boxes of many lines, into one line."""
    import tyro

    with contextlib.redirect_stderr(io.StringIO()) as box:
        try:
            parsed = tyro.cli(options, config=(tyro.conf.AvoidSubcommands,), **settings)  # modules are not flags
            chosen = parsed[0] if settings.get("return_unknown_args") else parsed
            for name, value in vars(chosen).items():
                if isinstance(value, int) and not -MAX_INTEGER < value < MAX_INTEGER:
                    raise InputError(f"--{kebab(name)} {value}: expected an integer of at most 18 digits")
            return parsed
        except SystemExit as stopped:
            if not stopped.code:  # --help
                raise
    raise InputError(join_box(box.getvalue()))


def join_box(text: str) -> str:
    """Return the sections of a box that tyro draws around an error as sentences in one line."""
    lines = [line.strip("╭╮╰╯│|+ ") for line in text.splitlines()[1:]]  # without the title; | and + are of ASCII
    sections: list[list[str]] = [[]]
    for line in lines:
        if line.strip("─-"):
            sections[-1].append(line)
        elif sections[-1]:  # a rule between two sections
            sections.append([])
    sentence = ". ".join(" ".join(section).rstrip(".") for section in sections if section)
    for pattern, replacement in PYTHON_MESSAGES.items():
        sentence = re.sub(pattern, replacement, sentence)
    return sentence


def run_action(command: str, usage: str, actions: Mapping[str, Callable[[list[str]], None]], args: list[str]) -> None:
    """Run the action that the first argument names; without one, print the usage and all actions."""
    if not args or args[0] in ("-h", "--help"):
        print_text(usage)
        for name, action in actions.items():
            print_text(f"  {name:8}{docstring_summary(action)}")
        print_text(f"\n`{command} ACTION --help` explains an action.")
    elif args[0] not in actions:
        raise unknown(f"action of {command}", args[0], actions)
    else:
        actions[args[0]](args[1:])


def docstring_summary(documented: Any) -> str:
    """Return the first line of a docstring."""
    return (documented.__doc__ or "").strip().split("\n")[0].strip()


# Output ---------------------------------------------------------------------------------------------------------------


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
    line = _shorten(" ".join(_shorten(word, MAX_WORD_LENGTH) for word in text.split()), MAX_LINE_LENGTH)
    STDERR.print(f"unweave: {line}", highlight=False, markup=False, soft_wrap=True)
    sys.exit(code)


def _shorten(text: str, length: int) -> str:
    """Return a text of at most this length, without its middle."""
    return text if len(text) <= length else f"{text[: length // 2]}...{text[3 - length // 2 :]}"


def exit_for_error(error: Exception) -> NoReturn:
    """Print an error that the user can correct, and exit."""
    from unweave.utils.atomic import is_disk_full

    text = str(error)
    if isinstance(error, MemoryError):
        text = "not enough memory; use fewer or smaller observations"
    elif isinstance(error, OSError):
        text = first_line(error)
        text += "; free disk space and repeat the command" if is_disk_full(error) and not error.filename else ""
    exit_with_message(text, USER_ERROR)


def join_lines(text: object) -> str:
    """Return the text without line breaks."""
    return " ".join(str(text).split())


# Run folders ----------------------------------------------------------------------------------------------------------


def runs_folder(path: Path) -> Path:
    """Return the default folder of a study file's runs; a folder is returned unchanged."""
    return Path("runs") / path.stem if path.suffix == ".py" else path


def is_run(path: Path) -> bool:
    """Return whether the path is a run folder; raise InputError for a folder that is something else."""
    has_recipe = (path / "run.json").is_file()
    if path.is_dir() and not has_recipe:
        raise InputError(f"{path} is not a run folder (it has no run.json)")
    return has_recipe


def print_runs(runs: Sequence[FinishedRun], title: str = "", *, as_json: bool = False) -> None:
    """Print one row per run: method, scores, seconds; as JSON also the folder, all settings and the diagnosis."""
    from unweave.experiments.run import records

    if as_json:
        pairs = zip(runs, records(runs), strict=True)
        return print_json([{"run": str(r.folder)} | row | {"diagnosis": list(r.diagnosis)} for r, row in pairs])
    columns = list(dict.fromkeys(column for run in runs for column in run.scores))
    rows = [
        [run.recipe["method"]["name"]]
        + [f"{run.scores[column]:.4f}" if column in run.scores else "" for column in columns]
        + [f"{run.env['seconds']:.1f}"]
        for run in runs
    ]
    return print_table(["method", *columns, "seconds"], rows, title, numbers=True)
