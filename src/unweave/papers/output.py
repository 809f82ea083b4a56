"""Output of a paper's script while it runs: texts, tables and progress. Silent unless a caller passes an output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from unweave.training.loop import Progress


class TextTable(NamedTuple):
    """A table of texts, for the terminal and for a README."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    key_columns: int = 1
    """Number of leading columns that identify a row."""


class Output(Protocol):
    """Receives what a script reports."""

    def text(self, text: str) -> None:
        """Show a line."""

    def table(self, table: TextTable) -> None:
        """Show a table."""

    def progress(self, text: str) -> None:
        """Show what is being done at the moment."""

    def training(self, progress: Progress) -> None:
        """Show how far a training is: a callback of `unweave.execute` and `Method.fit`."""


class SilentOutput:
    """Ignores everything."""

    def text(self, text: str) -> None:
        """Ignore a line."""

    def table(self, table: TextTable) -> None:
        """Ignore a table."""

    def progress(self, text: str) -> None:
        """Ignore a message."""

    def training(self, progress: Progress) -> None:
        """Ignore the progress of a training."""


SILENT = SilentOutput()
