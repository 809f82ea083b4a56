"""Datasets of images that are slow to render: rendered once, then read from the cache folder."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, final

import numpy as np
import torch

from unweave.data.containers import Table
from unweave.data.core import Factor
from unweave.data.dataset import Dataset
from unweave.data.downloads import cache_folder
from unweave.utils.atomic import atomic_file
from unweave.utils.errors import InputError
from unweave.utils.storage import recipe_hash

Notify = Callable[[str], None]


class CachedImages(Dataset):
    """Abstract dataset of images of 64 x 64 pixels that are rendered once per recipe and cached."""

    version: ClassVar[int] = 1
    """Raised when the same recipe gives other images, so that old images are not read."""

    points: int = 2_000
    """Number of images."""
    seed: int = 0
    """Seed of the random factors."""

    @abstractmethod
    def check_requirements(self) -> None:
        """Validate the settings and raise `MissingData` if files or packages are missing."""

    @abstractmethod
    def render_images(self, notify: Notify) -> tuple[np.ndarray, np.ndarray]:
        """Return images, bytes (points, 64, 64, 3), and their factors (points, k)."""

    @abstractmethod
    def image_factors(self) -> tuple[Factor, ...]:
        """Return the k factors."""

    @final
    def recipe(self) -> dict[str, Any]:
        return {**super().recipe(), "version": self.version}

    @final
    def path(self) -> Path:
        """Return the file in the cache; every recipe and version has its own."""
        return cache_folder() / self.name / f"{recipe_hash(self.recipe(), 16)}.npz"

    @final
    def make(self, notify: Notify = lambda text: None) -> None:
        """Make and cache the images unless they are cached already."""
        if not self.path().exists():
            self.check_requirements()
            with atomic_file(self.path()) as file:
                images, factors = self.render_images(notify)
                np.savez_compressed(file, images=images, factors=factors)

    @final
    def load(self) -> Table:
        self.make()
        images, factors = read_cached_images(self.path(), self.points, len(self.image_factors()))
        x = torch.from_numpy(images).permute(0, 3, 1, 2).contiguous()
        return Table(x, torch.from_numpy(factors).double(), self.image_factors())

    @final
    def is_available(self) -> bool:
        return self.path().is_file()


def read_cached_images(path: Path, points: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return images, (points, 64, 64, 3), and factors, (points, k), or raise an error that names a damaged file."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            images, factors = arrays["images"], arrays["factors"]
        if images.shape != (points, 64, 64, 3) or images.dtype != np.uint8 or factors.shape != (points, k):
            raise InputError(f"images of shape {images.shape} and factors of shape {factors.shape}")
    except Exception as error:  # numpy, zipfile and zlib raise a dozen types for a damaged file
        text = str(error) or type(error).__name__
        raise InputError(f"{path} is truncated or altered ({text}): remove it and repeat the command") from error
    return images, factors
