"""3DShapes: a room with one object, composed on the device from 480 gray geometries and their colors."""

from __future__ import annotations

import colorsys
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, Literal, final

import h5py
import numpy as np
import torch
from torch import Tensor

from unweave.data.containers import Factorial, Grid
from unweave.data.core import Factor
from unweave.data.dataset import Dataset
from unweave.data.downloads import PublishedFile
from unweave.data.readers.arrays import load_array
from unweave.utils.errors import InputError

FACTORS = (
    Factor("floor", 10, "nominal"),
    Factor("wall", 10, "nominal"),
    Factor("object", 10, "nominal"),
    Factor("scale", 8, "ordinal"),
    Factor("shape", 4, "nominal"),
    Factor("orientation", 15, "ordinal"),
)
BASIS_VERSION = 1  # of the file in assets
HUES = torch.tensor([colorsys.hsv_to_rgb(k / 10, 1, 1) for k in range(10)])  # (10, 3)


@final
class Shapes3D(Dataset):
    """3DShapes (Burgess and Kim, 2018): 480,000 images from the published file if it exists, else a look-alike.

    The look-alike was rendered with MuJoCo, like the original, in a room with our own dimensions. Hues only scale the
    light that a surface reflects. Every image is therefore the sky plus three gray images (floor, wall, object), each
    times its color. 480 geometries (scale, shape, orientation) give all images.

    Example:
        >>> data = Shapes3D(source="rendered").load()
        >>> len(data), data.shape
        (480000, (3, 64, 64))
    """

    name = "shapes3d"
    paper = "Burgess and Kim (2018)"
    page = "github.com/google-deepmind/3d-shapes"
    license = "Apache-2.0"
    files = (
        PublishedFile(
            "3dshapes/3dshapes.h5",
            "sha256:0a0f6ed98baff276a50f3a081a7434d788da63cb135a98189b2a5b5769be1785",
            "https://storage.googleapis.com/3d-shapes/3dshapes.h5",
            267_573_662,
        ),
    )

    source: Literal["auto", "original", "rendered"] = "auto"
    """Published file (5.9 GB of memory), look-alike (12 MB), or the published file if it exists."""

    def load(self) -> Grid | Room:
        if not self._uses_published_file():
            with as_file(files(__package__) / "assets" / "shapes3d_basis.npz") as path:
                return Room(*read_basis(path))
        try:
            with h5py.File(self.paths()[0]) as file:
                images = torch.from_numpy(file["images"][:])  # (480000, 64, 64, 3)
        except (OSError, KeyError) as error:
            raise InputError(f"{self.paths()[0]} cannot be read: {error}") from error
        return Grid(images.permute(0, 3, 1, 2), FACTORS)

    def title(self) -> str:
        return "shapes3d" if self._uses_published_file() else "shapes3d (look-alike)"

    def recipe(self) -> dict[str, Any]:
        """Return the recipe; the look-alike has a version, since another basis would be other data."""
        return super().recipe() | ({} if self._uses_published_file() else {"basis": BASIS_VERSION})

    def _uses_published_file(self) -> bool:
        """Return whether the published file is read."""
        return self.source == "original" or (self.source == "auto" and self.is_available())


@final
class Room(Factorial):
    """The look-alike: x = sky + sum of shade * color over floor, wall and object, for each geometry."""

    def __init__(self, shade: Tensor, sky: Tensor) -> None:
        super().__init__(FACTORS, (3, 64, 64), shade.device)
        # For each geometry the light on three surfaces, and the three channels of the sky as further surfaces.
        planes = [shade.reshape(480, 3, 4096), sky.reshape(480, 4096, 3).mT]
        self.basis = torch.cat(planes, 1)  # (480, 6, 4096) bytes
        self.hues, self.eye = HUES.to(shade.device), torch.eye(3, device=shade.device)

    def rows(self, index: Tensor) -> Tensor:
        row = index.reshape(-1)
        surfaces = torch.stack([row // 48_000, row // 4_800 % 10, row // 480 % 10], 1)  # floor, wall, object
        planes = self.basis.index_select(0, row % 480).float()  # (n, surface, pixel)
        if torch.compiler.is_compiling():  # the compiler fuses this sum into one pass over the bytes
            color = self.hues[surfaces] / 255  # (n, surface, channel)
            x = sum((color[:, k, :, None] * planes[:, None, k] for k in range(3)), planes[:, 3:] / 255)
        else:
            color = torch.cat([self.hues[surfaces].mT, self.eye.expand(len(row), 3, 3)], 2) / 255
            x = torch.bmm(color, planes)  # (n, channel, pixel)
        return x.clamp(max=1).reshape(*index.shape, 3, 64, 64)


def read_basis(path: Path) -> tuple[Tensor, Tensor]:
    """Return the gray images, (8, 4, 15, 3, 64, 64), and the sky, (8, 4, 15, 64, 64, 3)."""
    with load_array(path) as arrays:
        shade, sky = (torch.from_numpy(np.asarray(arrays[name])) for name in ("shade", "sky"))
    return shade, sky
