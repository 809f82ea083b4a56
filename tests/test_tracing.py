"""How many files a reader opens to follow the code."""

import json
import subprocess
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch

import unweave
from tests.helpers import DATA, NETWORKS, small_method, validate
from unweave.training.loop import initialize_network
from unweave.training.pack import LaneGroup

SOURCE = Path(unweave.__file__).parent
MAX_LOSS_FILES = 5


def files_entered(function: Any, *args: Any) -> set[str]:
    """Return the files of src/unweave whose functions are called, directly or not."""
    files = set()

    def record(frame: FrameType, event: str, argument: object) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(SOURCE):
            files.add(str(path.relative_to(SOURCE)))

    sys.setprofile(record)
    try:
        function(*args)
    finally:
        sys.setprofile(None)
    return files


@pytest.mark.parametrize("name", NETWORKS)
def test_a_loss_is_read_in_at_most_five_files(name):
    (method,) = validate([small_method(name, steps=1, batch_size=8)])
    method.prepare(DATA)
    net = initialize_network(method)
    group = LaneGroup([method], [net], DATA, stacked=False)
    batch = group.batch(group.sample_chunk(1), 0) | {"progress": torch.zeros(())}
    files = files_entered(method.loss, net, batch)
    assert 1 <= len(files) <= MAX_LOSS_FILES, sorted(files)


# One `unweave fit` ------------------------------------------------------------------------------------------------

FIT = ["fit", "factor-vae", "squares-xy", "--data.points", "200", "--data.size", "16", "--data.side", "4"]
FIT += ["--steps", "3", "--batch-size", "16", "--critic", "8", "--device", "cpu"]
MAX_FILES_OF_A_FIT = 45  # on a CPU

TRACER = """
import collections, json, sys
from pathlib import Path
import unweave
import unweave.catalog, unweave.cli.fit, unweave.cli.main, unweave.experiments.runner  # imports do not count

root, calls = str(Path(unweave.__file__).parent) + "/", collections.Counter()

def count(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(root) and code.co_name != "<module>":
        calls[f"{code.co_filename.removeprefix(root)} {code.co_qualname}"] += 1

sys.setprofile(count)
try:
    unweave.cli.main.main(sys.argv[1:])
except SystemExit as stop:
    assert not stop.code, stop
finally:
    sys.setprofile(None)
print("CALLS " + json.dumps(calls))
"""


@pytest.fixture(scope="module")
def calls_of_a_fit(tmp_path_factory):
    """How often `unweave fit` calls each function of the package: {"file function": count}."""
    command = [sys.executable, "-c", TRACER, *FIT, "--out", "run"]
    folder = tmp_path_factory.mktemp("traced")
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=120)
    return json.loads(done.stdout.rpartition("CALLS ")[2])


def test_a_fit_enters_few_files(calls_of_a_fit):
    files = sorted({call.split()[0] for call in calls_of_a_fit})
    assert len(files) <= MAX_FILES_OF_A_FIT, "\n".join([f"{len(files)} files:", *files])


ONCE = {
    "catalog.py": ["methods", "datasets", "metrics", "find_dataset", "run_metrics"],
    "datasets/squares.py": ["SquaresXY.load"],
    "data/dataset.py": ["Dataset.recipe"],
    "experiments/run.py": ["Run._recipe", "write_run"],
    "experiments/evaluation.py": ["evaluation_sample", "compute_scores"],
    "experiments/runner.py": ["execute_run", "execute_pack", "train_with_retries"],
    "cli/fit.py": ["fit_options"],
    "methods/neural.py": ["fit_pack", "Neural.pack_signature", "Neural.lane_names"],
    "methods/spectral/isometry.py": ["closest_pairs", "fit_rescaling"],
    "training/loop.py": ["train"],
}
NEVER = {
    "experiments/run.py": ["read_run"],
    "utils/storage.py": ["read_json"],
    "methods/restarts.py": ["train_restarts", "make_restarts", "keep_best_restart"],
}


def test_a_fit_does_nothing_twice(calls_of_a_fit):
    counts = {(file, name): calls_of_a_fit.get(f"{file} {name}", 0) for file, names in ONCE.items() for name in names}
    assert counts == dict.fromkeys(counts, 1)
    classes = ["SquaresXY", "FactorVAE"]
    assert calls_of_a_fit["utils/storage.py source_hash"] <= len(classes)
    unneeded = [f"{file} {name}" for file, names in NEVER.items() for name in names]
    assert not set(unneeded) & set(calls_of_a_fit)
