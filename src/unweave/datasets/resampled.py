"""Grids and digits with two correlated factors, and a test set in which they are independent."""

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

CORRELATED = {"dsprites": ("x", "scale"), "shapes3d": ("floor", "wall")}  # colored-mnist correlates color and label


@final
class Resampled(Dataset):
    """dSprites, 3DShapes or colored digits with two correlated factors; scored on held-out, independent ones.

    Example:
        >>> data = Resampled(of="shapes3d", points=100, held_out=50).load()
        >>> len(data)
        100
    """

    name = "resampled"
    paper = "Disentanglement by intervention (Sec. 5.1 and Appendix B)"

    of: Literal["dsprites", "shapes3d", "colored-mnist"] = "dsprites"
    """Dataset; correlated are x and scale, the hues of floor and wall, or color and digit."""
    part: Literal["correlated", "independent", "test"] = "correlated"
    """Training set with correlated or independent factors, or test set."""
    strength: float = 0.2
    """Strength s in p(a, b) ~ exp(-(a - b)^2 / 2 s^2), both in [0, 1]; the paper shows its own only in a figure."""
    points: int = 200_000
    """Number of training observations in either set (paper: 100,000 for 3DShapes); digits always use all."""
    held_out: int = 50_000
    """Number of observations of the grid in the test set."""
    seed: int = 0
    """Seed of the split and of the sample."""

    def source_dataset(self) -> Dataset:
        """Return the dataset that is resampled."""
        if self.of == "colored-mnist":
            strength = self.strength if self.part == "correlated" else None
            return ColoredMNIST(split="test" if self.part == "test" else "train", strength=strength)
        return DSprites() if self.of == "dsprites" else Shapes3D()

    def required_files(self) -> tuple[PublishedFile, ...]:
        if self.of != "colored-mnist":
            return ()
        return (
            *self.source_dataset().required_files(),
            *(replace(self, part="test").required_files() if self.part != "test" else ()),
        )

    def title(self) -> str:
        return f"{self.source_dataset().title()}, {self.part}"

    def load(self) -> FactorData:
        if self.points < 1:
            raise InputError(f"points={self.points}: expected at least one observation")
        data = self.source_dataset().load()
        if self.of == "colored-mnist":
            return data
        split = correlated_split(
            data, CORRELATED[self.of], strength=self.strength, train=self.points, test=self.held_out, seed=self.seed
        )
        return {"correlated": split.correlated, "independent": split.independent, "test": split.test}[self.part]

    def evaluation_data(self, data: FactorData) -> FactorData:
        return data if self.part == "test" else replace(self, part="test").load()
