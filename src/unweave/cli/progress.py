"""Progress on stderr: a bar in a terminal or a notebook, plain lines in a log."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as RichProgress

from unweave.cli.terminal import STDERR

if TYPE_CHECKING:
    from unweave.training.loop import Callback, Progress

LOG_INTERVAL = 10  # most seconds between lines about one training, where stderr is a file or a pipe
LOG_PARTS, MIN_LOG_INTERVAL = 10, 1  # parts of a training with a line each, and the fewest seconds between two
BAR_WIDTH = 20  # characters


class Display(Protocol):
    """Something that shows one changing line."""

    def show(self, text: str, fraction: float | None = None) -> None:
        """Show a text and, if known, the fraction of the work that is done."""

    def close(self) -> None:
        """Remove what would stay on the screen."""


class NoDisplay:
    """Shows nothing."""

    def show(self, text: str, fraction: float | None = None) -> None:
        """Ignore the text."""

    def close(self) -> None:
        """Do nothing."""


class LogDisplay:
    """Prints messages at once, and the state of a training as plain lines, without control characters.

    A training has a line at its first report, at every tenth of its steps but at most one per second, at least every
    `LOG_INTERVAL` seconds, and at its end.
    """

    def __init__(self, console: Console) -> None:
        self.console, self.printed_at, self.printed_fraction = console, -math.inf, math.inf
        self.pending = ""  # the latest text, if it was not printed

    def show(self, text: str, fraction: float | None = None) -> None:
        """Print the text, unless it is about training and another line was printed just before."""
        if fraction is None or self.is_due(fraction):
            self.printed_at, self.printed_fraction = time.monotonic(), math.inf if fraction is None else fraction
            self.console.file.write(f"{text}\n")
            self.console.file.flush()
            self.pending = ""
        else:
            self.pending = text

    def is_due(self, fraction: float) -> bool:
        """Return whether the state of a training is to be printed."""
        elapsed = time.monotonic() - self.printed_at
        if fraction < self.printed_fraction or fraction >= 1 or elapsed >= LOG_INTERVAL:
            return True
        part, printed = (int(f * LOG_PARTS + 1e-9) for f in (fraction, self.printed_fraction))  # 3 * 0.1 > 0.3
        return part > printed and elapsed >= MIN_LOG_INTERVAL

    def close(self) -> None:
        """Print the last state of a training that ended early."""
        if self.pending:
            self.show(self.pending)


class TerminalDisplay:
    """Spinner, bar, text and elapsed time in the last line of a terminal, while a command runs."""

    def __init__(self, console: Console) -> None:
        text = TextColumn("{task.description}", markup=False)  # last, because a narrow terminal cuts it off
        columns = SpinnerColumn(), BarColumn(BAR_WIDTH), TimeElapsedColumn(), text
        self.bar = RichProgress(*columns, console=console, transient=True)
        self.task = self.bar.add_task("starting", total=None)
        self.bar.start()

    def show(self, text: str, fraction: float | None = None) -> None:
        """Replace the text and the bar."""
        total = None if fraction is None else 1
        self.bar.update(self.task, description=text, completed=fraction or 0, total=total)

    def close(self) -> None:
        """Remove the line."""
        self.bar.stop()


class InlineDisplay:
    """A bar of characters that overwrites its own line.

    Unlike `TerminalDisplay` it holds no cursor and no thread, so a training that is interrupted leaves nothing behind.
    """

    def __init__(self, console: Console) -> None:
        self.console = console

    def show(self, text: str, fraction: float | None = None) -> None:
        """Overwrite the line."""
        line = draw_bar(text, fraction)[: self.console.width - 1]
        self.console.file.write(f"\r{line.ljust(self.console.width - 1)}")
        self.console.file.flush()

    def close(self) -> None:
        """Leave the last state on the screen."""
        self.console.file.write("\n")


class NotebookDisplay:
    """A bar of characters below the cell of a notebook."""

    def __init__(self) -> None:
        self.handle: Any = None

    def show(self, text: str, fraction: float | None = None) -> None:
        """Replace the text and the bar."""
        from IPython.display import Pretty, display

        line = Pretty(draw_bar(text, fraction))
        if self.handle is None:
            self.handle = display(line, display_id=True)
        else:
            self.handle.update(line)

    def close(self) -> None:
        """Leave the last state below the cell."""


def draw_bar(text: str, fraction: float | None) -> str:
    """Return the text, behind a bar of characters if the fraction is known."""
    if fraction is None:
        return text
    filled = round(fraction * BAR_WIDTH)
    return "█" * filled + "░" * (BAR_WIDTH - filled) + " " + text


class ProgressLine:
    """The progress of a command: messages, and the state of a training.

    Example:
        >>> with show_progress(quiet=True) as progress:
        ...     progress.message("loading data")
    """

    def __init__(self, display: Display) -> None:
        self.display, self.latest = display, ""

    def message(self, text: str) -> None:
        """Show a text."""
        self.latest = text
        self.display.show(text)

    def training(self, progress: Progress) -> None:
        """Show how far the training is that the latest message announced: a callback of `fit` and `execute`."""
        title = self.latest.partition(";")[0].removesuffix(": training")
        self.display.show(progress.text(title), progress.step / progress.steps)


@contextmanager
def show_progress(*, quiet: bool = False) -> Iterator[ProgressLine]:
    """Show the progress of a command on stderr; nothing if quiet."""
    display: Display = NoDisplay()
    if not quiet:
        display = TerminalDisplay(STDERR) if is_live(STDERR) else LogDisplay(STDERR)
    try:
        yield ProgressLine(display)
    finally:
        display.close()


def in_notebook() -> bool:
    """Return whether this code runs in a Jupyter notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return type(shell).__name__ == "ZMQInteractiveShell"


def progress_bar(title: str = "training") -> Callback:
    """Return a callback that shows the progress of a training on stderr.

    It is a bar in a terminal or a notebook. Where stderr is a file or a pipe, it is a plain line for every tenth of the
    steps or every ten seconds, whichever comes first.

    Example:
        >>> import numpy as np, unweave
        >>> method = unweave.methods.BetaVAE(steps=2, layers=(4,))
        >>> method = method.fit(np.eye(8), callback=unweave.progress_bar("beta-vae"))
    """
    display: Display | None = None

    def show(progress: Progress) -> None:
        nonlocal display
        display = display or open_display(Console(stderr=True))
        display.show(progress.text(title), progress.step / progress.steps)
        if progress.step >= progress.steps:
            display.close()
            display = None

    return show


def open_display(console: Console) -> Display:
    """Return the display for a training in the user's own program."""
    if in_notebook():
        return NotebookDisplay()
    return InlineDisplay(console) if is_live(console) else LogDisplay(console)


def is_live(console: Console) -> bool:
    """Return whether lines can be overwritten. FORCE_COLOR makes a terminal of a pipe for rich, but not for us."""
    return console.is_terminal and console.file.isatty()
