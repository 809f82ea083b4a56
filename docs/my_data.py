"""Data of one's own, in one file: `unweave fit hessian-ica docs/my_data.py:TwoPeaks --latent-dim 2`."""

import torch

from unweave import Dataset, Factor, FactorData, Table


class TwoPeaks(Dataset):
    """Curves of 60 samples with two peaks, whose places are the factors to be found."""

    points: int = 1_000
    """how many curves"""
    seed: int = 0
    """of the places of their peaks"""

    def load(self) -> FactorData:
        rng = torch.Generator().manual_seed(self.seed)
        places = torch.rand(self.points, 2, generator=rng) * 0.3 + torch.tensor([0.1, 0.6])
        t = torch.linspace(0, 1, 60)
        x = torch.exp(-(((t - places[:, :, None]) / 0.06) ** 2)).sum(1)  # (points, 60)
        return Table(x, places, [Factor("left peak"), Factor("right peak")])
