"""How many files a reader opens to follow the code."""

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
