"""Slices of the grids: a few factors vary, the others stay in the middle."""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch

from unweave.data.containers import Factorial, Table
from unweave.data.core import Factor, FactorData
from unweave.data.dataset import Dataset
from unweave.datasets.dsprites import DSprites
from unweave.datasets.shapes3d import Shapes3D
from unweave.utils.errors import InputError

ARC = 6  # of ten hues: an open arc, whose ends do not meet, has an order


class Slice(Dataset):
    """Images of dSprites or 3DShapes in which two to four factors vary, as the manifolds of Horan et al. need them."""

    name = "slice"
    paper = "Horan, Richardson and Weiss (2021), Sec. 3: dSprites-like manifolds are locally isometric"

    of: Literal["dsprites", "shapes3d"] = "dsprites"
    """which grid"""
    vary: tuple[str, ...] = ("x", "y")
    """the factors that vary; of hues the first six of ten, of a full turn its first half: arcs have an order"""
    points: int = 3_000
    """images, drawn from the slice without repeats; fewer where the slice has fewer"""
    seed: int = 0
    """the same seed gives the same images"""

    def _grid(self) -> Dataset:
        return DSprites() if self.of == "dsprites" else Shapes3D()

    def title(self) -> str:
        """With the factors, and with what stands in for the original, if something does."""
        return f"slice of {self._grid().title()} ({', '.join(self.vary)})"

    def load(self) -> FactorData:
        grid = self._grid().load()
        assert isinstance(grid, Factorial)
        columns = [grid.column(name) for name in self.vary]
        if len(set(columns)) != len(columns) or not columns:
            raise InputError(f"vary={self.vary}: expected some of {', '.join(f.name for f in grid.factors)}, each once")
        if self.points < 1:
            raise InputError(f"points={self.points}: a slice needs at least one image")
        sizes = []
        for j in columns:
            size, kind = grid.factors[j].size or 0, grid.factors[j].kind
            if kind == "nominal" and size < ARC:
                raise InputError(f"{grid.factors[j].name} has no order and cannot be a factor of a slice")
            sizes.append(ARC if kind == "nominal" else size // 2 if kind == "circular" else size)
        rng = np.random.default_rng(self.seed)
        chosen = np.sort(rng.permutation(int(np.prod(sizes)))[: self.points])
        c = torch.from_numpy(np.stack(np.unravel_index(chosen, sizes), 1))  # (n, k)
        points = torch.tensor([(f.size or 1) // 2 for f in grid.factors]).repeat(len(c), 1)
        points[:, columns] = c
        factors = [Factor(name, size, "ordinal") for name, size in zip(self.vary, sizes, strict=True)]
        return Table(grid.render(points), c, factors)
