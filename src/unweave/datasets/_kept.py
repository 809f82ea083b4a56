"""Images that take long to make: made once, and kept in the cache."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, final

import numpy as np
import torch

from unweave.data.containers import Table
from unweave.data.core import Factor, FactorData
from unweave.data.dataset import Dataset
from unweave.data.downloads import cache_folder
from unweave.utils.errors import InputError
from unweave.utils.storage import atomic_file, recipe_hash

Notify = Callable[[str], None]


class KeptImages(Dataset):
    """Abstract. Say how to make images of 64 x 64 and their factors; they are then made once for each recipe."""

    version: ClassVar[int] = 1
    """raised when the same recipe comes to give other images"""

    points: int = 2_000
    """number of images"""
    seed: int = 0
    """the same seed gives the same images"""

    @abstractmethod
    def prepare(self) -> None:
        """Check what making needs, before anything is touched; raises `MissingData` where it is not here."""

    @abstractmethod
    def images(self, notify: Notify) -> tuple[np.ndarray, np.ndarray]:
        """Make them: bytes (points, 64, 64, 3), and their factors (points, k)."""

    @abstractmethod
    def varied(self) -> tuple[Factor, ...]:
        """The k factors."""

    @final
    def recipe(self) -> dict[str, Any]:
        return {**super().recipe(), "version": self.version}

    @final
    def path(self) -> Path:
        """Where the images are kept: every recipe, and every version of the scene, has a file of its own."""
        return cache_folder() / self.name / f"{recipe_hash(self.recipe(), 16)}.npz"

    @final
    def make(self, notify: Notify = lambda text: None) -> None:
        """Make the images now, if they are not there yet."""
        if not self.path().exists():
            self.prepare()
            with atomic_file(self.path()) as file:
                images, factors = self.images(notify)
                np.savez_compressed(file, images=images, factors=factors)

    @final
    def load(self) -> FactorData:
        self.make()
        images, factors = read_kept(self.path(), self.points, len(self.varied()))
        x = torch.from_numpy(images).permute(0, 3, 1, 2).contiguous()
        return Table(x, torch.from_numpy(factors).double(), self.varied())

    @final
    def is_available(self) -> bool:
        return self.path().is_file()


def read_kept(path: Path, points: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Images, (points, 64, 64, 3), and their factors, (points, k), or an error that names the damaged file."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            images, factors = arrays["images"], arrays["factors"]
        if images.shape != (points, 64, 64, 3) or images.dtype != np.uint8 or factors.shape != (points, k):
            raise InputError(f"images of shape {images.shape} and factors of shape {factors.shape}")
    except Exception as error:  # numpy, zipfile and zlib raise a dozen kinds for a damaged file
        text = str(error) or type(error).__name__
        raise InputError(f"{path} is truncated or altered ({text}): remove it, and it is made again") from error
    return images, factors
