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
NORB_FILES = {  # checksums and sizes of the files of each part
    "train": {
        "dat": ("5ffd6272a07d32695ee1082a26a41a93a37aab8c28da047f8c34ed348d214873", 131_896_188),
        "cat": ("2784e542c1922060691090952b6cd6278879a216c90f81476f0f00256d42cdaa", 348),
        "info": ("de7eb932ebe7a4ee16217fead60660d0eb3d23632c2f4d1c51f88c501c17bf32", 71_052),
    },
    "test": {
        "dat": ("cf7104eed3e51174d2f65b66d1e5878b9da233b886f161b0d88f4510ba2c7474", 130_799_817),
        "cat": ("ecaf6d5bb8c3bc5eab9cf0258f6d2198dd474e016e374836fc097f2e5ff509ff", 347),
        "info": ("16adf314226327ee006d1a44db8cfef52773c06c829951d5653a9f6f310248a2", 10_428),
    },
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
        PublishedFile(f"smallnorb/{name}-{kind}.mat.gz", f"sha256:{sha256}", f"{NORB}/{name}-{kind}.mat.gz", size)
        for split, name in NORB_PARTS.items()
        for kind, (sha256, size) in NORB_FILES[split].items()
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
