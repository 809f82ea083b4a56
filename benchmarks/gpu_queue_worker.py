"""Runs one command of the queue: python -m benchmarks.gpu_queue_worker STATE FLAG STEPS COMMAND [FLAGS].

The file FLAG exists while the command scores, and does not use the GPU. STEPS is 0, or the number of steps of a smoke
test. It also has narrow networks, small batches and few test observations; all else is as it will be.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.gpu_jobs import parse_command
from unweave.cli.paper import TerminalOutput
from unweave.cli.progress import ProgressLine, show_progress
from unweave.experiments.run import Run
from unweave.papers.swap_contrast import palettes, scoring
from unweave.training import strategies
from unweave.training.loop import Progress

SMOKE_IMAGES, SMOKE_DIGITS = 1_000, 100  # of the test sets; digits are seen on every background and at every angle
SMOKE_WIDTH, SMOKE_BATCH = 4, 16
MIN_SECONDS_TO_COMPILE = 15  # others train while a command compiles, so it pays for shorter runs than it does alone
LAYERS = ("widths", "hidden", "layers", "critic", "discriminator_widths", "discriminator_hidden")


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


def main(state: Path, flag: Path, steps: int, command: str, *more: str) -> None:
    """Run the script of a command; results go below `state`, in the folder of the paper."""
    folder = command.partition(".")[0]
    script, options = parse_command(command, *more, "--out", str(state / folder))
    if steps:
        shorten_runs(script, steps)
    strategies.MIN_SECONDS_TO_COMPILE = strategies.MIN_SECONDS_IF_CACHED = MIN_SECONDS_TO_COMPILE
    with show_progress() as line:
        output = QueueOutput(line, flag)
        script.main(options, output)
    output.print_all()


def shorten_runs(script: Any, steps: int) -> None:
    """Let the methods of a script train for so many steps only, narrow networks, and score them on few observations."""
    palettes.MAX_TEST_DIGITS, scoring.MAX_TEST_IMAGES = SMOKE_DIGITS, SMOKE_IMAGES
    if not hasattr(script, "list_runs"):  # trains one model after the other
        script.methods = partial(list_short_methods, script.methods, steps)
        return
    script.execute = partial(script.execute, evaluated=SMOKE_IMAGES)
    list_runs = script.list_runs

    def list_short_runs(*args: Any) -> dict[Any, Run]:
        runs: dict[Any, Run] = list_runs(*args)
        for run in runs.values():
            shorten(run.method, steps)
        return {head: Run(run.data, run.method) for head, run in runs.items()}  # whose keys are those of short runs

    script.list_runs = list_short_runs


def list_short_methods(methods: Any, steps: int, *args: Any) -> dict[str, Any]:
    """Return the methods of a script with few steps and narrow networks."""
    every: dict[str, Any] = methods(*args)
    for method in every.values():
        shorten(method, steps)
    return every


def shorten(method: Any, steps: int) -> None:
    """Reduce steps, sizes of layers and the batch of a method."""
    settings = method.get_params(deep=False)
    narrow: dict[str, Any] = {name: (SMOKE_WIDTH,) * len(settings[name]) for name in LAYERS if settings.get(name)}
    narrow |= {"translator": SMOKE_WIDTH} if "translator" in settings else {}
    method.set_params(steps=min(steps, method.steps), batch_size=min(SMOKE_BATCH, method.batch_size), **narrow)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
