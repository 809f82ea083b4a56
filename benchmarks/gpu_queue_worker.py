"""Runs one command of the queue: python -m benchmarks.gpu_queue_worker STATE COMMAND [FLAGS]."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from benchmarks.gpu_jobs import parse_command
from unweave.cli.paper import TerminalOutput
from unweave.cli.progress import show_progress


def main(state: Path, command: str, more: str = "") -> None:
    """Run the script of a command; results go below `state`, in the folder of the paper."""
    folder = command.partition(".")[0]
    script, options = parse_command(command, *shlex.split(more), "--out", str(state / folder))
    with show_progress() as line:
        output = TerminalOutput(line)
        script.main(options, output)
    output.print_all()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
