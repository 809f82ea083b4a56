"""The artificial data of the GIN paper: a Gaussian mixture, mapped by a random invertible network."""

from __future__ import annotations

from typing import Literal, final

import torch
from torch import Generator, Tensor

from unweave.data.containers import Mixing
from unweave.data.core import Factor
from unweave.data.dataset import Dataset
from unweave.nn.coupling import Flow, vector_flow
from unweave.utils.errors import InputError

MAX_DRAWS = 10_000  # mixtures that are drawn in search of separated clusters


def cluster_distance(means: Tensor, deviations: Tensor) -> float:
    """Return the smallest distance of two clusters, each coordinate in units of their root mean square deviation.

    Args:
        means: Of at least two clusters, (clusters, 2).
        deviations: Of the clusters, (clusters, 2).
    """
    i, j = torch.triu_indices(len(means), len(means), 1)
    pooled = ((deviations[i].square() + deviations[j].square()) / 2).sqrt()
    return float(((means[i] - means[j]) / pooled).norm(dim=1).min())


@final
class GaussianMixture(Dataset):
    """Two informative and several noise dimensions, mixed nonlinearly; the cluster is the label (GIN, Sec. 4.3).

    Example:
        >>> GaussianMixture(points=100).load().shape
        (10,)
    """

    name = "gaussian-mixture"
    optional_settings = ("min_distance",)
    loads_fast = True
    paper = "Sorrenson, Rother and Koethe (2020), Sec. 4.3"

    points: int = 10_000
    """Number of observations."""
    clusters: int = 5
    """Number of mixture components, which are the classes."""
    noise_dims: int = 8
    """Number of dimensions that carry only noise."""
    noise: float = 0.01
    """Standard deviation of the noise dimensions."""
    spread: Literal["deviation", "variance"] = "deviation"
    """Quantity that is uniform on [0.5, 3] per cluster: standard deviation (authors' script) or variance (paper)."""
    mixing: Literal["soft", "steep"] = "soft"
    """Clamp of the network's log-scales: 1.27 arctan(s/2) (soft, authors' script) or 2 tanh(s) (steep, paper)."""
    blocks: int = 8
    """Number of coupling blocks of the random network."""
    seed: int = 0
    """Seed of the mixture, the network and the sample."""
    min_distance: float = 0.0
    """Smallest distance between the means of two clusters, in units of their deviations. 4: gaps between clusters."""

    def load(self) -> Mixing:
        if self.clusters < 1 or self.noise_dims < 0 or self.noise < 0 or self.blocks < 0:
            raise InputError(f"{self}: expected clusters of at least 1, and noise_dims, noise and blocks of at least 0")
        rng = Generator().manual_seed(self.seed)
        means, deviations = self._clusters(rng)
        network = self._network(rng)

        def prior(n: int, rng: Generator) -> Tensor:  # (n, 1 + 2 + noise_dims): the cluster, then z
            device = rng.device
            u = torch.randint(self.clusters, (n,), generator=rng, device=device)
            noise = torch.randn(n, 2 + self.noise_dims, generator=rng, device=device)
            z = means.to(device)[u] + deviations.to(device)[u] * noise[:, :2]
            return torch.cat([u[:, None].float(), z, self.noise * noise[:, 2:]], 1)

        def mix(c: Tensor) -> Tensor:
            with torch.no_grad():
                return network.to(c.device)(c[..., 1:].reshape(-1, 2 + self.noise_dims))[0].reshape(*c.shape[:-1], -1)

        factors = (
            Factor("cluster", self.clusters, "nominal"),
            Factor("z1"),
            Factor("z2"),
            *(Factor(f"noise{i + 1}", noise=True) for i in range(self.noise_dims)),
        )
        return Mixing(factors, (2 + self.noise_dims,), prior, mix, points=self.points, seed=self.seed + 1)

    def _clusters(self, rng: Generator) -> tuple[Tensor, Tensor]:
        """Return means and deviations of the first mixture whose clusters are apart, (clusters, 2) each."""
        for _ in range(MAX_DRAWS):
            means = torch.rand(self.clusters, 2, generator=rng) * 10 - 5  # uniform on [-5, 5]
            spreads = torch.rand(self.clusters, 2, generator=rng) * 2.5 + 0.5  # uniform on [0.5, 3]
            deviations = spreads if self.spread == "deviation" else spreads.sqrt()
            if self.min_distance <= 0 or self.clusters < 2 or cluster_distance(means, deviations) >= self.min_distance:
                return means, deviations
        raise InputError(
            f"min_distance={self.min_distance}: none of {MAX_DRAWS:,} mixtures of {self.clusters} clusters is that far "
            "apart; take a smaller distance, fewer clusters, or spread='variance'"
        )

    def _network(self, rng: Generator) -> Flow:
        """Return the random invertible network that mixes the sources."""
        features = 2 + self.noise_dims
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(torch.randint(2**31, (1,), generator=rng)))
            flow = vector_flow(features, self.blocks, 10, rng, clamp=self.mixing, volume="free", identity_start=False)
            return flow.eval()
