"""MNIST, the digits of EMNIST, and Fashion-MNIST, read from their IDX files."""

from __future__ import annotations

import gzip
import struct
import zlib
from pathlib import Path
from typing import ClassVar, Literal, final

import numpy as np
import torch

from unweave.data.containers import Table
from unweave.data.core import Factor
from unweave.data.dataset import Dataset
from unweave.data.downloads import PublishedFile
from unweave.utils.errors import InputError, plural

MNIST_ADDRESS = "https://storage.googleapis.com/cvdf-datasets/mnist"


class _IDXImages(Dataset):
    """Abstract: images and labels in four IDX files (training images and labels, test images and labels)."""

    transposed: ClassVar[bool] = False
    """Whether the file stores images column by column."""

    split: Literal["train", "test"] = "train"
    """Training or test set."""

    def required_files(self) -> tuple[PublishedFile, ...]:
        return self.files[:2] if self.split == "train" else self.files[2:]

    def load(self) -> Table:
        images, labels = (read_idx(path) for path in self.paths())
        if images.ndim != 3 or labels.shape != images.shape[:1]:
            raise InputError(f"{self.paths()[0]}: {images.shape} images and {labels.shape} labels are not of one set")
        x = torch.from_numpy(images.transpose(0, 2, 1).copy() if self.transposed else images)[:, None]
        c = torch.from_numpy(labels.astype(np.float64))[:, None]
        return Table(x, c, [Factor("label", 10, "nominal")])


@final
class MNIST(_IDXImages):
    """MNIST: 60,000 handwritten digits for training, 10,000 for testing, 28 x 28.

    Example:
        >>> MNIST(split="test").load().shape  # doctest: +SKIP
        (1, 28, 28)
    """

    name = "mnist"
    paper = "LeCun, Bottou, Bengio and Haffner (1998)"
    page = "yann.lecun.com/exdb/mnist"
    license = "CC BY-SA 3.0"
    files = tuple(
        PublishedFile(f"mnist/{name}", f"sha256:{sha256}", f"{MNIST_ADDRESS}/{name}", size)
        for name, sha256, size in (
            ("train-images-idx3-ubyte.gz", "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609", 9912422),
            ("train-labels-idx1-ubyte.gz", "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c", 28881),
            ("t10k-images-idx3-ubyte.gz", "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6", 1648877),
            ("t10k-labels-idx1-ubyte.gz", "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6", 4542),
        )
    )


@final
class EMNIST(_IDXImages):
    """EMNIST, digits split: 240,000 handwritten digits for training, 40,000 for testing, 28 x 28.

    Example:
        >>> EMNIST(split="test").load().shape  # doctest: +SKIP
        (1, 28, 28)
    """

    name = "emnist"
    paper = "Cohen, Afshar, Tapson and van Schaik (2017)"
    page = "nist.gov/itl/products-and-services/emnist-dataset (gzip.zip, unpacked)"
    license = "free to use, NIST"
    transposed = True
    files = tuple(
        PublishedFile(f"emnist/emnist-digits-{name}", f"sha256:{sha256}")
        for name, sha256 in (
            ("train-images-idx3-ubyte.gz", "f7c95004d14d81af89522e67d8f0c781dfb3bd544181c81bfe1eb6b41c35b726"),
            ("train-labels-idx1-ubyte.gz", "6638a6ff5fe2eefd9cca2471995b46c82986b8e4b2a70d2f5ce8e05d7edb319e"),
            ("test-images-idx3-ubyte.gz", "20ebe43509264f7639d37c835a3f0b009e90b29e00a099a03101abe1644a3f63"),
            ("test-labels-idx1-ubyte.gz", "bad1834c45d5988e270b99d43b13edc3fd898f658ffbc2caf2846ef27f7b05b0"),
        )
    )


@final
class FashionMNIST(_IDXImages):
    """Fashion-MNIST: ten kinds of clothing, 60,000 images for training, 10,000 for testing, 28 x 28.

    Example:
        >>> FashionMNIST(split="test").load().shape  # doctest: +SKIP
        (1, 28, 28)
    """

    name = "fashion-mnist"
    paper = "Xiao, Rasul and Vollgraf (2017)"
    page = "github.com/zalandoresearch/fashion-mnist"
    license = "MIT"
    files = tuple(
        PublishedFile(
            f"fashion-mnist/{name}",
            f"sha256:{sha256}",
            f"https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/{name}",
            size,
        )
        for name, sha256, size in (
            (
                "train-images-idx3-ubyte.gz",
                "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
                26421880,
            ),
            ("train-labels-idx1-ubyte.gz", "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845", 29515),
            ("t10k-images-idx3-ubyte.gz", "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073", 4422102),
            ("t10k-labels-idx1-ubyte.gz", "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5", 5148),
        )
    )


def read_idx(path: Path) -> np.ndarray:
    """Return the bytes in a (gzipped) IDX file: two zeros, a type, the number of axes, their lengths, the values."""
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        zeros, kind, axes = struct.unpack(">HBB", content[:4])
        shape = struct.unpack(f">{axes}I", content[4 : 4 + 4 * axes])
    except (OSError, EOFError, zlib.error, struct.error) as error:
        raise InputError(f"{path} is not a complete IDX file ({error}); get it again") from error
    if zeros != 0 or kind != 8:
        raise InputError(f"{path} is not an IDX file of bytes (it begins with {content[:4].hex()})")
    values = np.frombuffer(content, np.uint8, offset=4 + 4 * axes)
    if len(values) != np.prod(shape, dtype=np.int64):
        raise InputError(f"{path} promises {shape} values and holds {plural(len(values), 'value')}; get it again")
    return values.reshape(shape).copy()
