"""SmallNORB and Cars3D, from their published files."""

from __future__ import annotations

import gzip
import io
import tarfile
import zlib
from pathlib import Path
from typing import Literal, final

import numpy as np
import torch
from scipy.io import loadmat
from torch.nn import functional as F

from unweave.data.containers import Grid, Table
from unweave.data.core import Factor, FactorData
from unweave.data.dataset import Dataset
from unweave.data.downloads import PublishedFile
from unweave.utils.errors import InputError

NORB = "https://cs.nyu.edu/~ylclab/data/norb-v1.0-small"
NORB_PARTS = {"train": "smallnorb-5x46789x9x18x6x2x96x96-training", "test": "smallnorb-5x01235x9x18x6x2x96x96-testing"}
NORB_MD5 = {
    "train": (
        "66054832f9accfe74a0f4c36a75bc0a2",
        "23c8b86101fbf0904a000b43d3ed2fd9",
        "51dee1210a742582ff607dfd94e332e3",
    ),
    "test": (
        "e4ad715691ed5a3a5f138751a4ceb071",
        "5aa791cd7e6016cf957ce9bdb93b8603",
        "a9454f3864d7fd4bb3ea7fc3eb84924e",
    ),
}


@final
class SmallNORB(Dataset):
    """SmallNORB (LeCun et al., 2004): 24,300 gray photographs of 50 toys, by elevation, azimuth and lighting.

    Example:
        >>> SmallNORB().load().shape  # doctest: +SKIP
        (1, 64, 64)
    """

    name = "small-norb"
    paper = "LeCun, Huang and Bottou (2004)"
    page = "cs.nyu.edu/~ylclab/data/norb-v1.0-small"
    license = "research use"
    files = tuple(
        PublishedFile(f"smallnorb/{name}-{kind}.mat.gz", f"md5:{md5}", f"{NORB}/{name}-{kind}.mat.gz")
        for split, name in NORB_PARTS.items()
        for kind, md5 in zip(("dat", "cat", "info"), NORB_MD5[split], strict=True)
    )

    split: Literal["train", "test"] = "train"
    """Toys: five of each category for training, five others for testing."""
    size: int = 64
    """Width and height in pixels; the files have 96."""

    def required_files(self) -> tuple[PublishedFile, ...]:
        return self.files[:3] if self.split == "train" else self.files[3:]

    def load(self) -> FactorData:
        images, category, info = (read_binary_matrix(path) for path in self.paths())
        if images.ndim != 4 or info.shape != (len(images), 4) or category.shape != (len(images),):
            shapes = f"{images.shape}, {category.shape}, {info.shape}"
            raise InputError(f"{self.paths()[0]} and its companions do not belong together: {shapes}")
        c = np.column_stack(
            [category, info[:, 0], info[:, 1], info[:, 2] // 2, info[:, 3]]
        )  # azimuths are even numbers
        factors = [
            Factor("category", 5, "nominal"),
            Factor("instance", 10, "nominal"),
            Factor("elevation", 9, "ordinal"),
            Factor("azimuth", 18, "circular"),
            Factor("lighting", 6, "nominal"),
        ]
        left = torch.from_numpy(images[:, :1].copy())  # one of the two cameras, as is customary
        return Table(resize(left, self.size), torch.from_numpy(c.astype(np.float64)), factors)


@final
class Cars3D(Dataset):
    """Cars3D (Reed et al., 2015): 183 car models from 4 elevations and 24 azimuths, 17,568 images.

    Example:
        >>> Cars3D().load().shape  # doctest: +SKIP
        (3, 64, 64)
    """

    name = "cars3d"
    paper = "Reed, Zhang, Zhang and Lee (2015)"
    page = "scottreed.info (nips2015-analogy-data.tar.gz)"
    license = "research use"
    files = (
        PublishedFile(
            "cars3d/nips2015-analogy-data.tar.gz",
            "md5:4e866a7919c1beedf53964e6f7a23686",
            "http://www.scottreed.info/files/nips2015-analogy-data.tar.gz",
        ),
    )

    size: int = 64
    """Width and height in pixels; the files have 128."""

    def load(self) -> FactorData:
        cars = read_cars(self.paths()[0])  # (cars, 128, 128, 3, 24, 4)
        images = torch.from_numpy(cars).permute(5, 4, 0, 3, 1, 2).flatten(0, 2)  # elevation, azimuth, car; CHW
        factors = [
            Factor("elevation", 4, "ordinal"),
            Factor("azimuth", 24, "circular"),
            Factor("object", len(cars), "nominal"),
        ]
        return Grid(resize(images, self.size), factors)


def read_binary_matrix(path: Path) -> np.ndarray:
    """Return the array in NORB's format: magic number, number of axes, at least three lengths, values."""
    kinds = {0x1E3D4C55: "<u1", 0x1E3D4C54: "<i4", 0x1E3D4C56: "<i2", 0x1E3D4C51: "<f4", 0x1E3D4C53: "<f8"}
    try:
        content = gzip.decompress(path.read_bytes())
        magic, axes = np.frombuffer(content, "<i4", 2).tolist()
        if magic not in kinds:
            raise ValueError(f"it begins with {magic:#x}")
        lengths = np.frombuffer(content, "<i4", max(3, axes), offset=8)
        values = np.frombuffer(content, kinds[magic], offset=8 + 4 * len(lengths))
        return values.reshape(lengths[:axes])
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise InputError(f"{path} is not a complete NORB file ({error}); get it again") from error


def read_cars(path: Path) -> np.ndarray:
    """Return the images of all cars in the archive, (cars, 128, 128, 3, 24, 4), in the order of its list."""
    try:
        with tarfile.open(path) as archive:
            members = {m.name.removeprefix("./"): m for m in archive.getmembers() if m.isfile()}
            listing = archive.extractfile(members["data/cars/list.txt"])
            assert listing is not None
            names = listing.read().decode().split()
            cars = [loadmat(io.BytesIO(_read_member(archive, members[f"data/cars/{n}.mat"])))["im"] for n in names]
        return np.stack(cars).astype(np.uint8)
    except (OSError, EOFError, KeyError, ValueError, tarfile.TarError, zlib.error) as error:
        raise InputError(
            f"{path} is not the archive of Cars3D ({type(error).__name__}: {error}); get it again"
        ) from error


def _read_member(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    """Return the content of a file in the archive."""
    file = archive.extractfile(member)
    assert file is not None
    return file.read()


def resize(images: torch.Tensor, size: int, batch: int = 1_000) -> torch.Tensor:
    """Resize bytes (n, channels, h, w) to (n, channels, size, size) by area averaging."""
    if not 1 <= size <= images.shape[-1]:
        raise InputError(f"size={size}: expected 1 to {images.shape[-1]} pixels")
    if size == images.shape[-1]:
        return images.contiguous()
    parts = [F.interpolate(part.float(), (size, size), mode="area") for part in torch.split(images, batch)]
    return torch.cat([part.round().byte() for part in parts])
