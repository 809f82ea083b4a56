"""Deterministic autoencoders: plain, rank-minimizing, and trained to predict the codes of HLLE + ICA."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Literal, final

import torch
from torch import Generator, Tensor, nn

from unweave.data.core import FactorData
from unweave.data.supervision import Plan
from unweave.methods.mixins import AutoencoderMixin
from unweave.methods.neural import Lane, Neural
from unweave.methods.spectral.hessian import HessianICA

# "4 conv+relu layers with stride=2 and one fully-connected layer" (Horan et al., 2021, Sec. 4), with the widths of the
# code of Jing et al. (2020) for images of shapes, and squared errors.


class DeterministicAutoencoder(AutoencoderMixin, Neural):
    """Abstract autoencoder without noise in its codes, with the networks of Jing et al. (2020).

    Minimizes `E[-log p(x | code(x))]`, by default half the squared error.
    """

    latent_dim: int = 2
    """Number of codes."""
    lr: Lane = 1e-4
    """Learning rate of Adam."""
    widths: tuple[int, ...] = (32, 64, 128, 256)
    """Channels of the encoder's convolutions, each of which halves the image; reversed in the decoder."""
    hidden: tuple[int, ...] = ()
    """Fully connected layers between the convolutions and the codes."""
    likelihood: Literal["auto", "bernoulli", "gaussian"] = "gaussian"
    """Likelihood of pixels: Gaussian with variance one, that is half the squared error, or Bernoulli."""

    @abstractmethod
    def compute_codes(self, net: Any, x: Tensor) -> Tensor:
        """Return the codes of observations, (n, *shape) -> (n, d)."""

    def build(self, shape: tuple[int, ...]) -> nn.Module:
        return self.make_autoencoder(shape, self.latent_dim, self.latent_dim)

    def loss(self, net: Any, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """Compute the mean of -log p(x | code(x))."""
        x = batch["x"]
        rec = self.reconstruction_loss(x, net.decoder(self.compute_codes(net, x))).mean()
        return {"loss": rec, "rec": rec}

    def encode(self, x: Tensor) -> Tensor:
        return self.apply_network(self.compute_codes, x)


@final
class Autoencoder(DeterministicAutoencoder):
    """Plain autoencoder (Hinton and Salakhutdinov, 2006): reconstruction through a bottleneck, no other constraint.

    Example:
        >>> import numpy as np
        >>> x = np.random.default_rng(0).normal(size=(50, 4))
        >>> Autoencoder(latent_dim=2, steps=2, layers=(8,)).fit_transform(x).shape
        (50, 2)
    """

    name = "autoencoder"
    paper = "Hinton and Salakhutdinov (2006)"

    def compute_codes(self, net: Any, x: Tensor) -> Tensor:
        return net.encoder(x)


@final
class IRMAE(DeterministicAutoencoder):
    """Implicit rank-minimizing autoencoder (Jing et al., 2020, Sec. 3).

    Square linear layers follow the encoder; gradient descent keeps their product, and so the codes, low in rank.

    Example:
        >>> import numpy as np
        >>> x = np.random.default_rng(0).normal(size=(50, 4))
        >>> IRMAE(latent_dim=2, steps=2, layers=(8,)).fit_transform(x).shape
        (50, 2)
    """

    name = "irmae"
    paper = "Jing, Zbontar and LeCun (2020), Sec. 3"

    linear: int = 4
    """Number of square linear layers without bias between encoder and codes; the paper takes 2 to 8."""

    def build(self, shape: tuple[int, ...]) -> nn.Module:
        net = super().build(shape)
        d = self.latent_dim
        net.linear = nn.Sequential(*(nn.Linear(d, d, bias=False) for _ in range(self.linear)))
        return net

    def compute_codes(self, net: Any, x: Tensor) -> Tensor:
        return net.linear(net.encoder(x))


@final
class HessianAutoencoder(DeterministicAutoencoder):
    """Hessian autoencoder (Horan et al., 2021, Eq. 1): an encoder and a decoder of the codes of HLLE + ICA.

    Minimizes `|| E(x) - y ||^2 + || D(y) - x ||^2`, where y are the codes of `HessianICA`. Needs no labels.

    Example:
        >>> import numpy as np
        >>> z = np.random.default_rng(0).uniform(-1, 1, (200, 2))
        >>> x = np.column_stack([z, 0.2 * z**2])
        >>> HessianAutoencoder(steps=2, layers=(8,), n_neighbors=12).fit_transform(x).shape
        (200, 2)
    """

    name = "hessian-autoencoder"
    paper = "Horan, Richardson and Weiss (2021), Eq. 1"

    n_neighbors: int | Literal["auto"] = "auto"
    """Neighborhood size of HLLE + ICA, which computes the codes to learn."""
    samples: int = 10_000
    """Points that HLLE + ICA uses of a generator or a large grid; of your own rows it uses all."""

    def prepare(self, data: FactorData) -> None:
        """Compute the codes y of all points by HLLE + ICA."""
        rng = Generator(self.resolve_device()).manual_seed(self.seed)
        points = data.points_or_sample(self.samples, rng)
        # No angles: the encoder is continuous, and could not jump from 2 pi to 0.
        teacher = HessianICA(latent_dim=self.latent_dim, n_neighbors=self.n_neighbors, seed=self.seed, loops="never")
        codes = teacher.fit_transform(data.render(points).cpu())
        self.diagnosis_ = ["The following lines describe its teacher, HLLE + ICA.", *teacher.diagnosis_]
        self._points, self._codes = points, torch.as_tensor(codes, dtype=torch.float32, device=points.device)

    def plan(self, data: FactorData, n: int, rng: Generator) -> Plan:
        row = torch.randint(len(self._points), (n,), generator=rng, device=rng.device)
        return Plan({"x": self._points[row]}, {"y": self._codes[row]})

    def compute_codes(self, net: Any, x: Tensor) -> Tensor:
        return net.encoder(x)

    def loss(self, net: Any, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """Compute Eq. 1."""
        x, y = batch["x"], batch["y"]
        teach = (net.encoder(x) - y).square().sum(1).mean()  # || E(x) - y ||^2
        rec = (self.decoder_mean(net.decoder(y)) - x).square().flatten(1).sum(1).mean()  # || D(y) - x ||^2
        return {"loss": teach + rec, "teach": teach, "rec": rec}
