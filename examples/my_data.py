"""A dataset of your own in one file.

unweave fit hessian-ica examples/my_data.py:TwoPeaks --latent-dim 2
"""

import torch

from unweave import Dataset, Factor, FactorData, Table


class TwoPeaks(Dataset):
    """Curves of 60 samples with two peaks, whose positions are the factors."""

    points: int = 1_000
    """Number of curves."""
    seed: int = 0
    """Seed of the positions."""

    def load(self) -> FactorData:
        """Return curves, (points, 60), with the positions of their peaks."""
        rng = torch.Generator().manual_seed(self.seed)
        positions = torch.rand(self.points, 2, generator=rng) * 0.3 + torch.tensor([0.1, 0.6])
        t = torch.linspace(0, 1, 60)
        x = torch.exp(-(((t - positions[:, :, None]) / 0.06) ** 2)).sum(1)
        return Table(x, positions, [Factor("left peak"), Factor("right peak")])
