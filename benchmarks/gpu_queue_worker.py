"""Runs one command of the queue: python -m benchmarks.gpu_queue_worker STATE FLAG COMMAND [FLAGS].

The file FLAG exists while the command scores, and does not use the GPU.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from benchmarks.gpu_jobs import parse_command
from unweave.cli.paper import TerminalOutput
from unweave.cli.progress import ProgressLine, show_progress
from unweave.training.loop import Progress


class QueueOutput(TerminalOutput):
    """Shows progress, and says to the queue whether the command scores."""

    def __init__(self, line: ProgressLine, flag: Path) -> None:
        super().__init__(line)
        self.flag = flag

    def progress(self, text: str) -> None:
        """Show what is being done."""
        super().progress(text)
        if "scoring" in text:
            self.flag.touch()
        elif "training" in text or "loading" in text:
            self.flag.unlink(missing_ok=True)

    def training(self, progress: Progress) -> None:
        """Show how far a training is."""
        super().training(progress)
        self.flag.unlink(missing_ok=True)


def main(state: Path, flag: Path, command: str, more: str = "") -> None:
    """Run the script of a command; results go below `state`, in the folder of the paper."""
    folder = command.partition(".")[0]
    script, options = parse_command(command, *shlex.split(more), "--out", str(state / folder))
    with show_progress() as line:
        output = QueueOutput(line, flag)
        script.main(options, output)
    output.print_all()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
