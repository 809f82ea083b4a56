"""Fixtures that several test files share."""

import hashlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
import torch

from tests.helpers import idx_file
from unweave.data.downloads import PublishedFile
from unweave.datasets import EMNIST, MNIST, ColoredMNIST, DSprites, RotationColoredMNIST

mpl.use("Agg")
# Compiled steps are kept for the next run of the tests, but not in the user's cache:
os.environ["TORCHINDUCTOR_CACHE_DIR"] = f"{tempfile.gettempdir()}/unweave-tests-{os.environ.get('USER', '')}"
torch.set_num_threads(1)  # small tensors: waiting for a second thread costs more than it brings


@pytest.fixture(autouse=True, scope="session")
def quick_writes() -> Iterator[None]:
    """Do not wait for the disk: tests of power cuts observe the calls, and none cuts the power."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


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


@pytest.fixture
def data_folder(tmp_path, monkeypatch):
    """Set an empty data folder."""
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path))
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def fake_files(data_folder, monkeypatch):
    """Replace the published files of a dataset by small ones with their hashes."""

    def put(cls, contents: dict[str, bytes]):
        published = []
        for file in cls.files:
            name = Path(file.file).name
            content = contents.get(name, b"")
            (data_folder / file.file).parent.mkdir(exist_ok=True)
            (data_folder / file.file).write_bytes(content)
            published.append(PublishedFile(file.file, f"sha256:{hashlib.sha256(content).hexdigest()}", file.url))
        monkeypatch.setattr(cls, "files", tuple(published))

    return put


@pytest.fixture(scope="session")
def sprites():
    """All of dSprites, rendered."""
    return DSprites(source="rendered").load()


@pytest.fixture
def digits(fake_files, monkeypatch):
    """Thirty images of noise, three of each digit, in the place of MNIST and EMNIST."""
    images = np.random.default_rng(0).integers(0, 256, (30, 28, 28), dtype=np.uint8)
    labels = (np.arange(30) % 10).astype(np.uint8)
    for cls in (MNIST, EMNIST):
        names = [Path(f.file).name for f in cls.files]
        fake_files(cls, {name: idx_file(images if "images" in name else labels) for name in names})
    for cls in (ColoredMNIST, RotationColoredMNIST):
        monkeypatch.setattr(cls, "files", MNIST.files)
    return images


@pytest.fixture
def generated_datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Generate datasets that can be rendered, whatever published files are on this machine."""
    monkeypatch.setenv("UNWEAVE_DATA", "")
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path / "cache"))
