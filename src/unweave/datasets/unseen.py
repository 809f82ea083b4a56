"""Nuisances that are new at test time: other backgrounds, other angles, other colors of the object."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, final

import torch

from unweave.data.containers import Factorial
from unweave.data.core import FactorData, Subset
from unweave.data.dataset import Dataset
from unweave.data.downloads import PublishedFile
from unweave.datasets.colored import ColoredMNIST, RotationColoredMNIST
from unweave.datasets.mpi3d import MPI3D
from unweave.datasets.shapes3d import Shapes3D
from unweave.utils.errors import InputError

NEW = {"shapes3d": "object", "mpi3d": "color"}  # the factor of which half of the values are kept for the test


@final
class Unseen(Dataset):
    """Digits, 3DShapes or MPI3D (real) without some nuisances; scores are of observations that have these."""

    name = "unseen"
    paper = "Swap and contrast (2022), Sec. 4.1"

    of: Literal["colored-mnist", "rotation-colored-mnist", "shapes3d", "mpi3d"] = "colored-mnist"
    """kept for the test: three backgrounds; also four angles; half of the object's colors (both grids)"""
    apart: bool = False
    """of the grids' colors: whether those for the test lie side by side, far from the others, not every other one"""
    part: Literal["train", "test"] = "train"
    """which of the two"""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.apart and self.of not in NEW:
            raise InputError(f"apart=True is about the colors of {' and '.join(NEW)}: leave it out for {self.of}")

    def whole(self) -> Dataset:
        """What nuisances are left out of."""
        if self.of == "colored-mnist":
            return ColoredMNIST(split=self.part, form="backgrounds")
        if self.of == "rotation-colored-mnist":
            return RotationColoredMNIST(split=self.part)
        return Shapes3D() if self.of == "shapes3d" else MPI3D(variant="real")

    def required_files(self) -> tuple[PublishedFile, ...]:
        other = replace(self, part="test").required_files() if self.part == "train" and self.of not in NEW else ()
        return (*self.whole().required_files(), *other)

    def title(self) -> str:
        far = " far apart" if self.apart else ""
        return f"{self.whole().title()}, nuisances{far} {'to train' if self.part == 'train' else 'unseen'}"

    def load(self) -> FactorData:
        data = self.whole().load()
        if self.of not in NEW:
            return data  # digits are painted by their part
        assert isinstance(data, Factorial)
        points = data.combinations()
        column = data.column(NEW[self.of])
        values = torch.arange(data.factors[column].size or 0)
        # The paper does not say which half; with every other color, a plain network has the paper's accuracy.
        test = values >= len(values) // 2 if self.apart else values % 2 == 1
        kept = values[test == (self.part == "test")]
        return Subset(data, points[torch.isin(points[:, column], kept)])

    def evaluation_data(self, data: FactorData) -> FactorData:
        return data if self.part == "test" else replace(self, part="test").load()
