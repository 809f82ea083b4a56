"""The command `unweave`: find the subcommand, run it, and turn errors into one line and an exit code."""

from __future__ import annotations

import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from typing import NoReturn

from unweave import __version__
from unweave.cli.advise import recommend
from unweave.cli.cache import cache
from unweave.cli.data import data
from unweave.cli.demo import demo
from unweave.cli.describe import describe_run
from unweave.cli.draw import draw
from unweave.cli.encode import encode, predict
from unweave.cli.explain import explain_scores
from unweave.cli.explore import explore_run
from unweave.cli.fit import fit
from unweave.cli.list import list_catalog
from unweave.cli.paper import paper
from unweave.cli.report import report
from unweave.cli.score import score
from unweave.cli.select import select
from unweave.cli.study import study
from unweave.cli.terminal import docstring_summary, exit_for_error, exit_with_message, print_text, print_warning
from unweave.utils.errors import unknown

# torch, scikit-learn and pandas take seconds to import, so each command imports them only when it runs.

COMMANDS: dict[str, Callable[[list[str]], None]] = {
    "demo": demo, "advise": recommend, "fit": fit, "encode": encode, "predict": predict, "draw": draw,
    "explore": explore_run, "describe": describe_run,
    "score": score, "explain": explain_scores, "select": select,
    "study": study, "paper": paper, "report": report, "list": list_catalog, "data": data, "cache": cache,
}  # fmt: skip
TRAINING_COMMANDS = ("fit", "study", "paper")  # these write checkpoints
INTERNAL_ERROR, INTERRUPTED, TERMINATED = 1, 130, 143  # exit codes


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run a command and exit: 0 after success, 2 after an error of the user, 1 after an internal error."""
    args = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in args
    args = [arg for arg in args if arg != "--debug"]
    for name in ("SIGTERM", "SIGHUP"):  # unwinds, so that partial folders are removed; `nohup` ignores SIGHUP
        if hasattr(signal, name) and signal.getsignal(getattr(signal, name)) is signal.SIG_DFL:
            signal.signal(getattr(signal, name), lambda *_: sys.exit(TERMINATED))
    warnings.showwarning = print_warning
    try:
        dispatch(args)
    except BrokenPipeError:  # the reader of a pipe, such as `head`, has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except KeyboardInterrupt:
        is_training = bool(args) and args[0] in TRAINING_COMMANDS
        hint = " Run the command again to continue from the last checkpoint." if is_training else ""
        exit_with_message(f"Stopped. No partial results were left behind.{hint}", INTERRUPTED)
    except (ValueError, OSError, MemoryError) as error:
        if debug:
            traceback.print_exc()
        exit_for_error(error)
    except Exception as error:
        if debug:
            traceback.print_exc()
        from unweave.utils.files import is_out_of_memory

        if is_out_of_memory(error):
            exit_for_error(MemoryError())
        cause = f"{type(error).__name__}: {error}"
        exit_with_message(f"Internal error ({cause}). Please report it with the traceback (`--debug`).", INTERNAL_ERROR)
    sys.exit(0)


def dispatch(args: list[str]) -> None:
    """Run the command that the first argument names."""
    if not args or args[0] in ("-h", "--help", "help"):
        print_help()
    elif args[0] in ("-V", "--version", "version"):
        print_text(f"unweave {__version__}")
    elif args[0] not in COMMANDS:
        raise unknown("command", args[0], COMMANDS)
    else:
        COMMANDS[args[0]](args[1:])


def print_help() -> None:
    """Print the commands, one line each."""
    print_text("Unweave finds the independent factors behind data and measures how well they were recovered.\n")
    print_text("usage: unweave COMMAND ...\n")
    for name, command in COMMANDS.items():
        print_text(f"  {name:9}{docstring_summary(command)}")
    print_text("\nStart with `unweave demo`, then try `unweave advise my.csv` on your own data.")
    print_text("`unweave COMMAND --help` explains a command. `--debug` shows the traceback of an error.")
