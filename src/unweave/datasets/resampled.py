"""Grids and digits resampled so that two factors are correlated, or not, with a test set that never is."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, final

from unweave.data.core import FactorData
from unweave.data.dataset import Dataset
from unweave.data.downloads import PublishedFile
from unweave.data.splits import correlated_split
from unweave.datasets.colored import ColoredMNIST
from unweave.datasets.dsprites import DSprites
from unweave.datasets.shapes3d import Shapes3D
from unweave.utils.errors import InputError

TIED = {"dsprites": ("x", "scale"), "shapes3d": ("floor", "wall")}  # colored-mnist ties color to label itself


@final
class Resampled(Dataset):
    """dSprites, 3DShapes or colored digits with two correlated factors; scores are of held-out, independent ones."""

    name = "resampled"
    paper = "Disentanglement by intervention (Sec. 5.1 and Appendix B)"

    of: Literal["dsprites", "shapes3d", "colored-mnist"] = "dsprites"
    """x and scale are tied, or the hues of floor and wall, or color and digit"""
    part: Literal["correlated", "independent", "test"] = "correlated"
    """which of the three sets"""
    strength: float = 0.2
    """p(a, b) ~ exp(-(a - b)^2 / 2 s^2), both scaled to [0, 1]; the paper shows its own in a figure alone"""
    points: int = 200_000
    """observations to train on, as many in both sets; the paper has half as many of 3DShapes; digits are always all"""
    held_out: int = 50_000
    """observations of the grid that are kept for the test"""
    seed: int = 0
    """the same seed gives the same sets"""

    def whole(self) -> Dataset:
        """What is resampled."""
        if self.of == "colored-mnist":
            tied = self.strength if self.part == "correlated" else None
            return ColoredMNIST(split="test" if self.part == "test" else "train", strength=tied)
        return DSprites() if self.of == "dsprites" else Shapes3D()

    def required_files(self) -> tuple[PublishedFile, ...]:
        if self.of != "colored-mnist":
            return ()
        return (
            *self.whole().required_files(),
            *(replace(self, part="test").required_files() if self.part != "test" else ()),
        )

    def title(self) -> str:
        return f"{self.whole().title()}, {self.part}"

    def load(self) -> FactorData:
        if self.points < 1:
            raise InputError(f"points={self.points}: expected at least one observation")
        data = self.whole().load()
        if self.of == "colored-mnist":
            return data
        split = correlated_split(
            data, TIED[self.of], strength=self.strength, train=self.points, test=self.held_out, seed=self.seed
        )
        return {"correlated": split.correlated, "independent": split.independent, "test": split.test}[self.part]

    def evaluation_data(self, data: FactorData) -> FactorData:
        return data if self.part == "test" else replace(self, part="test").load()
