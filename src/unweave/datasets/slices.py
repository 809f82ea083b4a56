"""Slices of grids: a few factors vary, the others stay at their middle value."""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch

from unweave.data.containers import Factorial, Table
from unweave.data.core import Factor
from unweave.data.dataset import Dataset
from unweave.datasets.dsprites import DSprites
from unweave.datasets.shapes3d import Shapes3D
from unweave.utils.errors import InputError

ARC = 6  # hues used, out of ten: an open arc has an order, the full circle has none


class Slice(Dataset):
    """Images of dSprites or 3DShapes in which only a few factors vary (the manifolds of Horan et al., 2021).

    Example:
        >>> data = Slice(of="shapes3d", vary=("wall", "scale"), points=20).load()
        >>> [factor.name for factor in data.factors]
        ['wall', 'scale']
    """

    name = "slice"
    paper = "Horan, Richardson and Weiss (2021), Sec. 3: dSprites-like manifolds are locally isometric"

    of: Literal["dsprites", "shapes3d"] = "dsprites"
    """Grid to slice."""
    vary: tuple[str, ...] = ("x", "y")
    """Factors that vary. Of hues the first six, of angles the first half turn are used, so that they have an order."""
    points: int = 3_000
    """Number of images, drawn without repetition; fewer if the slice has fewer."""
    seed: int = 0
    """Seed of the random sample."""

    def _grid(self) -> Dataset:
        """Return the dataset that is sliced."""
        return DSprites() if self.of == "dsprites" else Shapes3D()

    def title(self) -> str:
        """Return a title with the factors, and with the substitute for the published data if there is one."""
        return f"slice of {self._grid().title()} ({', '.join(self.vary)})"

    def load(self) -> Table:
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
