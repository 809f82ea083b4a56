"""Oxford Flowers 102: photographs whose only known factor is the kind of flower."""

from __future__ import annotations

import io
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, final

import numpy as np
import torch
from scipy.io import loadmat

from unweave.data.containers import Table
from unweave.data.core import Factor
from unweave.data.dataset import Dataset
from unweave.data.downloads import PublishedFile
from unweave.data.readers.images import decode_image
from unweave.utils.errors import InputError

ADDRESS = "https://www.robots.ox.ac.uk/~vgg/data/flowers/102"
SPLITS = {"train": "trnid", "valid": "valid", "test": "tstid"}
PACKED = PublishedFile(
    "flowers102/flowers102_64_jpg95.zip", "sha256:48a679e0827188e8789d6566ed7f80b532803c082a6e333902ee9f9265d28a28"
)


@final
class Flowers102(Dataset):
    """Oxford Flowers 102 (Nilsback and Zisserman, 2008): 8,189 photographs of 102 kinds, cropped to 64 x 64.

    Example:
        >>> Flowers102(split="train").load().shape  # doctest: +SKIP
        (3, 64, 64)
    """

    name = "flowers102"
    paper = "Nilsback and Zisserman (2008)"
    page = "robots.ox.ac.uk/~vgg/data/flowers/102"
    license = "research use"
    files = tuple(
        PublishedFile(f"flowers102/{name}", f"sha256:{sha256}", f"{ADDRESS}/{name}", size)
        for name, sha256, size in (
            ("imagelabels.mat", "4903e94206bac23bf772aadf06451916df56b58fc483a62db32a97b82656651d", 502),
            ("setid.mat", "46b8678f91fd95d3c8f4feab80d271a6c834a1dd896fe29fd3e6ad9ce5c8dccd", 14_989),
            ("102flowers.tgz", "2d01ecc807db462958cfe3d92f57a8c252b4abd240eb955770201e45f783b246", 344_862_509),
        )
    )

    split: Literal["train", "valid", "test", "all"] = "all"
    """Official split (1,020, 1,020 and 6,149 images), or all images in order."""

    def required_files(self) -> tuple[PublishedFile, ...]:
        """Return the labels, the split, and the archive or, if it exists, the archive of cropped images."""
        return (*self.files[:2], PACKED if PACKED.find() else self.files[2])

    def title(self) -> str:
        return "flowers102 (64 px JPEG)" if PACKED.find() else "flowers102"

    def load(self) -> Table:
        labels_path, split_path, archive = self.paths()
        labels = _read_matlab(labels_path, "labels")  # (8189,), from 1
        numbers = np.arange(1, len(labels) + 1) if self.split == "all" else _read_matlab(split_path, SPLITS[self.split])
        selected = set(numbers.tolist())
        images = dict(read_archive(archive, selected))
        if len(images) < len(selected):
            raise InputError(f"{archive} lacks {len(selected) - len(images)} of {len(selected)} images; get it again")
        x = torch.from_numpy(np.stack([images[n] for n in numbers.tolist()]))
        c = torch.from_numpy(labels[numbers - 1].astype(np.float64) - 1)[:, None]
        return Table(x, c, [Factor("label", 102, "nominal")])


def read_archive(archive: Path, selected: set[int]) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the number, from 1, and the image, (3, 64, 64), of each selected image."""
    try:
        if archive.suffix == ".zip":
            with zipfile.ZipFile(archive) as packed:
                for name in packed.namelist():
                    if int(Path(name).stem) in selected:
                        yield int(Path(name).stem), decode_image(io.BytesIO(packed.read(name)), name, crop=64)
        else:
            with tarfile.open(archive) as tar:
                for member in tar:  # jpg/image_00001.jpg
                    if member.isfile() and int(Path(member.name).stem.removeprefix("image_")) in selected:
                        file = tar.extractfile(member)
                        assert file is not None
                        number = int(Path(member.name).stem.removeprefix("image_"))
                        yield number, decode_image(io.BytesIO(file.read()), member.name, crop=64)
    except (OSError, EOFError, zipfile.BadZipFile, tarfile.TarError, zlib.error) as error:
        raise InputError(f"{archive} cannot be read: {error}; get it again") from error


def _read_matlab(path: Path, name: str) -> np.ndarray:
    """Return an array of a MATLAB file as integers."""
    try:
        return np.asarray(loadmat(path)[name]).ravel().astype(np.int64)
    except (OSError, KeyError, ValueError) as error:
        raise InputError(f"{path} has no array {name!r} ({error}); get it again") from error
