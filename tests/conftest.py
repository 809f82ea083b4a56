"""Fixtures that several test files share."""

import os
from pathlib import Path

import matplotlib as mpl
import pytest
import torch

mpl.use("Agg")
torch.set_num_threads(1)  # small tensors: waiting for a second thread costs more than it brings


@pytest.fixture(autouse=True)
def same_weights() -> None:
    """Networks that tests build themselves start alike whatever ran before: some random ones have no gradient."""
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder with real data, where there is one."""
    folder = os.environ.get("UNWEAVE_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("UNWEAVE_DATA is not set to a folder with real data")
    return Path(folder)
