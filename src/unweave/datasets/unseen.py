"""Nuisances that are unseen in training: other backgrounds, angles or colors of the object."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, final

import torch

from unweave.data.containers import Factorial
from unweave.data.core import FactorData, Subset
from unweave.data.dataset import Dataset
from unweave.data.downloads import PublishedFile
from unweave.datasets.colored import (
    BACKGROUNDS,
    DEFAULT_PALETTE,
    ColoredMNIST,
    Painted,
    RotationColoredMNIST,
    add_hues,
    hold_out_nuisances,
)
from unweave.datasets.mpi3d import MPI3D
from unweave.datasets.shapes3d import Shapes3D
from unweave.utils.errors import InputError

UNSEEN_FACTOR = {"shapes3d": "object", "mpi3d": "color"}  # half of its values occur only in the test set


@final
class Unseen(Dataset):
    """Digits, 3DShapes or MPI3D (real) without some nuisances in training; scored on observations that have them.

    Example:
        >>> len(Unseen(of="shapes3d").load())
        240000
    """

    name = "unseen"
    paper = "Swap and contrast (2022), Sec. 4.1"
    optional_settings = ("palette", "clockwise", "validation", "left_out", "hues")

    of: Literal["colored-mnist", "rotation-colored-mnist", "shapes3d", "mpi3d"] = "colored-mnist"
    """Dataset; unseen are three backgrounds, also four angles, or half of the object's colors (both grids)."""
    distant: bool = False
    """For grids: whether the unseen colors are adjacent, far from the others, instead of every other color."""
    palette: str = DEFAULT_PALETTE
    """For digits: colors of the backgrounds, see `ColoredMNIST`."""
    clockwise: bool = False
    """For rotated digits: whether positive angles are clockwise."""
    validation: bool = False
    """For digits: choose settings by nuisances of the training set. Unseen are one of its backgrounds and +-45 degrees,
    on training digits that are left out."""
    left_out: int = 2
    """With validation: the background that is unseen, 0 to 2."""
    hues: int = 1
    """For digits: augment training by so many rotations of the hue, a further nuisance factor; 1: none."""
    part: Literal["train", "test"] = "train"
    """Training or test set."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.distant and self.of not in UNSEEN_FACTOR:
            raise InputError(
                f"distant=True is about the colors of {' and '.join(UNSEEN_FACTOR)}: leave it out for {self.of}"
            )
        if self.validation and self.of in UNSEEN_FACTOR:
            raise InputError(f"validation=True is about digits: leave it out for {self.of}")
        if self.left_out not in BACKGROUNDS["train"]:
            raise InputError(f"left_out={self.left_out}: expected a background of the training set, 0 to 2")
        if self.hues != 1 and (self.hues < 1 or self.of in UNSEEN_FACTOR):
            raise InputError(f"hues={self.hues}: expected at least 1, and 1 for {' and '.join(UNSEEN_FACTOR)}")

    def source_dataset(self) -> Dataset:
        """Return the dataset that nuisances are left out of."""
        split: Literal["train", "test"] = "train" if self.validation else self.part
        if self.of == "colored-mnist":
            return ColoredMNIST(split=split, form="backgrounds", palette=self.palette)
        if self.of == "rotation-colored-mnist":
            return RotationColoredMNIST(split=split, palette=self.palette, clockwise=self.clockwise)
        return Shapes3D() if self.of == "shapes3d" else MPI3D(variant="real")

    def required_files(self) -> tuple[PublishedFile, ...]:
        other = (
            replace(self, part="test").required_files() if self.part == "train" and self.of not in UNSEEN_FACTOR else ()
        )
        return (*self.source_dataset().required_files(), *other)

    def title(self) -> str:
        far = " far apart" if self.distant else " of training" if self.validation else ""
        return f"{self.source_dataset().title()}, nuisances{far} {'to train' if self.part == 'train' else 'unseen'}"

    def load(self) -> FactorData:
        data = self.source_dataset().load()
        if isinstance(data, Painted):
            data = hold_out_nuisances(data, self.part, self.left_out) if self.validation else data
            return add_hues(data, self.hues) if self.hues > 1 and self.part == "train" else data
        assert isinstance(data, Factorial)
        points = data.combinations()
        column = data.column(UNSEEN_FACTOR[self.of])
        values = torch.arange(data.factors[column].size or 0)
        # The paper does not say which half; with every other color, a plain network has the paper's accuracy.
        test = values >= len(values) // 2 if self.distant else values % 2 == 1
        allowed = values[test == (self.part == "test")]
        return Subset(data, points[torch.isin(points[:, column], allowed)])

    def evaluation_data(self, data: FactorData) -> FactorData:
        return data if self.part == "test" else replace(self, part="test").load()
