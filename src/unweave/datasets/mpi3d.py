"""MPI3D: a robot arm with an object, photographed or rendered, from the published files."""

from __future__ import annotations

from typing import Literal, final

import numpy as np
import torch

from unweave.data.containers import Grid
from unweave.data.core import Factor
from unweave.data.dataset import Dataset
from unweave.data.downloads import PublishedFile
from unweave.data.readers.arrays import load_array
from unweave.utils.errors import InputError

ADDRESS = "https://storage.googleapis.com/disentanglement_dataset/Final_Dataset"
MD5 = {
    "toy": "55889cb7c7dfc655d6e0277beee88868",
    "realistic": "59a6225b88b635365f70c91b3e52f70f",
    "real": "0f33f609918fb5c97996692f91129802",
}
FACTORS = (
    Factor("color", 6, "nominal"),
    Factor("shape", 6, "nominal"),
    Factor("size", 2, "ordinal"),
    Factor("camera", 3, "ordinal"),
    Factor("background", 3, "nominal"),
    Factor("horizontal", 40, "ordinal"),
    Factor("vertical", 40, "ordinal"),
)


@final
class MPI3D(Dataset):
    """MPI3D (Gondal et al., 2019): 1,036,800 images of 64 x 64, seven factors; needs 12.7 GB of memory.

    Example:
        >>> MPI3D(variant="real").load().shape  # doctest: +SKIP
        (3, 64, 64)
    """

    name = "mpi3d"
    paper = "Gondal et al. (2019)"
    page = "github.com/rr-learning/disentanglement_dataset"
    license = "CC BY 4.0"
    files = tuple(
        PublishedFile(f"mpi3d/mpi3d_{v}.npz", f"md5:{md5}", f"{ADDRESS}/mpi3d_{v}.npz") for v, md5 in MD5.items()
    )

    variant: Literal["toy", "realistic", "real"] = "toy"
    """Simple rendering, realistic rendering, or photographs."""

    def required_files(self) -> tuple[PublishedFile, ...]:
        return (self.files[list(MD5).index(self.variant)],)

    def title(self) -> str:
        return f"mpi3d-{self.variant}"

    def load(self) -> Grid:
        path = self.paths()[0]
        with load_array(path) as arrays:
            if "images" not in arrays.files:
                raise InputError(f"{path} has no array 'images' but {', '.join(arrays.files)}")
            images = torch.from_numpy(np.asarray(arrays["images"]))  # (1036800, 64, 64, 3)
        return Grid(images.permute(0, 3, 1, 2), FACTORS)
