"""Progress of commands and trainings on stderr."""

import io
import os
import subprocess
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

import unweave
from unweave.cli import progress
from unweave.cli.progress import InlineDisplay, LogDisplay, NotebookDisplay, draw_bar, show_progress
from unweave.methods import BetaVAE
from unweave.training.loop import Progress


def at_step(step):
    return Progress(step, 100, {"loss": [2.0, 4.0]}, 10.0, "loop")


@pytest.fixture
def clock(monkeypatch):
    """A clock that a test sets."""
    now = SimpleNamespace(seconds=0.0)
    monkeypatch.setattr(progress.time, "monotonic", lambda: now.seconds)
    return now


def logged(clock, steps_and_seconds):
    """Return the lines that a log gets of a training with 100 steps."""
    page = io.StringIO()
    display = LogDisplay(Console(file=page, width=200))
    display.show("loading data")
    for step, seconds in steps_and_seconds:
        clock.seconds = seconds
        display.show(f"step {step}", step / 100)
    display.close()
    return page.getvalue().splitlines()


def test_a_log_of_a_fast_training_has_its_first_and_its_last_step(clock):
    lines = logged(clock, [(step, step / 1_000) for step in range(1, 101)])
    assert lines == ["loading data", "step 1", "step 100"]


def test_a_log_has_a_line_for_every_tenth_of_a_training(clock):
    lines = logged(clock, [(step, step / 2) for step in range(1, 101)])
    assert lines[1:] == [f"step {step}" for step in (1, *range(10, 101, 10))]


def test_a_log_of_a_slow_training_has_a_line_every_ten_seconds(clock):
    lines = logged(clock, [(step, 4 * step) for step in range(1, 15)])
    assert lines[1:] == ["step 1", "step 4", "step 7", "step 10", "step 13", "step 14"]


def test_a_log_begins_again_with_the_next_training(clock):
    lines = logged(clock, [(50, 0.0), (100, 0.0), (50, 0.0), (60, 0.0), (100, 0.0)])
    assert lines[1:] == ["step 50", "step 100", "step 50", "step 100"]


def test_a_piped_program_shows_plain_lines_as_they_come():
    """FORCE_COLOR makes rich take any file for a terminal, in which a bar overwrites its line."""
    code = "import types, unweave\nshow = unweave.progress_bar('[my :x: model]')\n"
    code += "for step in (1, 3): show(types.SimpleNamespace(step=step, steps=3, text=lambda title: f'{title}: {step}'))"
    env = os.environ | {"FORCE_COLOR": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True)
    assert done.stderr == "[my :x: model]: 1\n[my :x: model]: 3\n"


def test_the_training_of_a_command_is_named_by_its_latest_message(monkeypatch):
    page = io.StringIO()
    monkeypatch.setattr(progress, "STDERR", Console(file=page, width=200))
    with show_progress() as line:
        line.message("pca on squares-xy: training; evaluated on 60 observations")
        line.training(at_step(100))
    assert page.getvalue().splitlines()[1].startswith("pca on squares-xy: step 100 of 100, loss 3, 10 steps/s")


def test_quiet_progress_prints_nothing(capsys):
    with show_progress(quiet=True) as line:
        line.message("loading data")
        line.training(at_step(100))
    assert capsys.readouterr() == ("", "")


def test_a_bar_overwrites_its_line_in_a_terminal():
    page = io.StringIO()
    display = InlineDisplay(Console(file=page, width=40))
    display.show("x" * 100, 0.25)
    display.show("done", 1.0)
    display.close()
    first, second = page.getvalue().split("\r")[1:]
    assert first.startswith("█" * 5 + "░" * 15 + " xxx") and len(first) == 39
    assert second.rstrip() == "█" * 20 + " done" and second.endswith("\n")


def test_a_bar_is_updated_in_a_notebook(monkeypatch):
    shown = []
    handle = SimpleNamespace(update=shown.append)
    module = ModuleType("IPython.display")
    module.Pretty = str
    module.display = lambda line, display_id: (shown.append(line), handle)[1]
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    display = NotebookDisplay()
    display.show("start", 0.0)
    display.show("end", 1.0)
    display.close()
    assert shown == [draw_bar("start", 0.0), draw_bar("end", 1.0)]


@pytest.mark.parametrize("fits", [1, 2])
def test_a_progress_bar_is_a_callback_of_fit(fits, capsys):
    method = BetaVAE(steps=3, layers=(4,), latent_dim=2)
    callback = unweave.progress_bar("my model")
    for _ in range(fits):
        method.fit(np.random.default_rng(0).normal(size=(20, 3)), callback=callback)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == fits and lines[-1].startswith("my model: step 3 of 3, loss")
