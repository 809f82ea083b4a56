"""Command-line options from dataclasses, and commands with several actions."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable, Mapping
from typing import Any

from unweave.cli.terminal import print_text
from unweave.utils.errors import InputError, unknown

PYTHON_MESSAGES = {  # of int() and float(), which tyro passes on
    r"invalid literal for int\(\) with base 10: ('.*?')": r"\1 is not an integer",
    r"could not convert string to float: ('.*?')": r"\1 is not a number",
    "Argument helptext:": "Expected:",
    "For full helptext, (run|see)": r"For all options, \1",
}


def parse_options(options: Any, **settings: Any) -> Any:
    """Parse arguments into a dataclass by `tyro.cli`; turn its errors, boxes of many lines, into one line."""
    import tyro

    with contextlib.redirect_stderr(io.StringIO()) as box:
        try:
            return tyro.cli(options, **settings)
        except SystemExit as stopped:
            if not stopped.code:  # --help
                raise
    raise InputError(join_box(box.getvalue()))


def join_box(text: str) -> str:
    """Return the sections of a box that tyro draws around an error as sentences in one line."""
    lines = [line.strip("╭╮╰╯│ ") for line in text.splitlines()[1:]]  # without the title
    sections: list[list[str]] = [[]]
    for line in lines:
        if line.strip("─"):
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
