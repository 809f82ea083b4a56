"""Runs to attack: a study with two kinds of methods, its runs, a saved model, and their comparison byte by byte."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.torture.commands import Program, Runner

STUDY = '''"""Do runs survive?"""
import unweave
from unweave.datasets import SwissRoll
from unweave.methods import PCA, BetaVAE

data = SwissRoll(points=60)
vae = BetaVAE(steps={steps}, layers=(8,), batch_size=8, latent_dim=2)
runs = [*unweave.sweep(data, vae, seed=range(2)), *unweave.sweep(data, PCA(), latent_dim=[1, 2])]
metrics = ["mcc"]
'''
STEPS = 300
TABLE = "table.csv"
TIMES = ("seconds", "finished")  # in env.json: they differ between two equal runs


class Reference:
    """A folder with a finished study `runs`, its `study.py`, a saved `model` and a `table.csv` like its data."""

    def __init__(self, folder: Path, seconds: float) -> None:
        """Find the runs in the folder; `seconds` is how long the study takes."""
        self.seconds = seconds
        self.folder, self.out, self.model = folder, folder / "runs", folder / "model"
        self.keys = sorted(path.name for path in self.out.iterdir() if not path.name.startswith("."))
        self.network = next(key for key in self.keys if _method(self.out / key) == "beta-vae")

    def copy(self, folder: Path, *names: str) -> None:
        """Copy files and folders of the reference; all of them without names."""
        folder.mkdir(parents=True, exist_ok=True)
        for name in names or ("study.py", "runs", "model", TABLE):
            source = self.folder / name
            shutil.copytree(source, folder / name) if source.is_dir() else shutil.copy(source, folder / name)


def _method(folder: Path) -> str:
    return str(json.loads((folder / "run.json").read_text())["method"]["name"])


def difference(folder: Path, reference: Path) -> str:
    """Return how the runs in a folder differ from those of a reference, byte by byte but for times; "" if they do not.

    A manifest is right if it fits the files beside it, which `intact` checks.
    """
    ours, others = ({p.name for p in place.iterdir() if not p.name.startswith(".")} for place in (folder, reference))
    if ours != others:
        return f"runs {sorted(ours ^ others)} are in one of the two folders only"
    for key in sorted(ours):
        names = [{path.name for path in (place / key).iterdir()} for place in (folder, reference)]
        if names[0] != names[1]:
            return f"{key}: files {sorted(names[0] ^ names[1])} are in one of the two folders only"
        for name in sorted(names[0] - {"manifest.json"}):
            if _content(folder / key / name) != _content(reference / key / name):
                return f"{key}/{name} differs"
    return ""


def _content(path: Path) -> Any:
    if path.name != "env.json":
        return path.read_bytes()
    return {key: value for key, value in json.loads(path.read_text()).items() if key not in TIMES}


def intact(runner: Runner, out: Path) -> str:
    """Return what is wrong with the visible run folders below `out`, found by reading all of them; "" for nothing."""
    folders = [path for path in sorted(out.iterdir()) if not path.name.startswith(".")] if out.is_dir() else []
    return check(runner, lambda: [runner.program.read_run(folder) for folder in folders], out.parent)


def check(runner: Runner, task: Callable[[], object], folder: Path) -> str:
    """Return the error of a function that is called in another process, or ""."""
    ending = runner.call(task, folder).wait()
    return "" if ending.code == 0 else f"{ending.stderr.strip().splitlines()[-1:]}"


# Unweave --------------------------------------------------------------------------------------------------------------


def run_unweave(args: list[str]) -> object:
    """Run a command of unweave, which ends by SystemExit."""
    from unweave.cli.main import main

    return main(args)


def read_run_of_unweave(folder: Path) -> None:
    """Read a run folder, and raise an error if it is damaged."""
    import unweave
    from unweave.experiments.run import read_run

    run = read_run(folder)
    unweave.load(folder)
    if not (np.isfinite(run.codes).all() and np.isfinite(list(run.scores.values())).all()):
        raise ValueError(f"{folder.name}: codes or scores that are not finite")


def save_unweave_again(model: Path, folder: Path) -> None:
    """Save a copy of a saved model."""
    import unweave

    unweave.load(model).save(folder)


UNWEAVE = Program(run_unweave, read_run_of_unweave, save_unweave_again)


def make_reference(folder: Path, steps: int = STEPS) -> Reference:
    """Run the study, save a model, and write a table."""
    runner = Runner(UNWEAVE)
    folder.mkdir(parents=True)
    (folder / "study.py").write_text(STUDY.format(steps=steps))
    start = time.monotonic()
    ending = runner.run(["study", "run", "study.py", "--out", "runs"], folder)
    seconds = time.monotonic() - start
    if ending.code != 0:
        raise SystemExit(f"the study fails without an attack: {ending.stderr}")
    runs = [path for path in (folder / "runs").iterdir() if not path.name.startswith(".")]
    network = next(path for path in runs if _method(path) == "beta-vae")
    problem = check(runner, lambda: save_unweave_again(network, folder / "model"), folder)
    if problem:
        raise SystemExit(f"a model cannot be saved: {problem}")
    values = np.random.default_rng(0).normal(size=(30, 3))
    pd.DataFrame(values, columns=["a", "b", "c"]).to_csv(folder / TABLE, index=False)
    return Reference(folder, seconds)
