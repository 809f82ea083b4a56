"""Autoencoders without a prior: the plain one, the rank-minimizing one, and the one that HLLE+ICA teaches."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Literal, final

import torch
from torch import Generator, Tensor, nn

from unweave.data.core import FactorData
from unweave.data.supervision import Plan
from unweave.methods._autoencoding import Autoencoding
from unweave.methods.neural import Lane
from unweave.methods.spectral.hessian import HessianICA

# "4 conv+relu layers with stride=2 and one fully-connected layer" (Horan et al., 2021, Sec. 4), of the widths that the
# code of Jing et al. (2020) has for images of shapes; squared errors.


class Deterministic(Autoencoding):
    """Abstract: codes without noise, squared errors, the networks of Jing et al. (2020)."""

    latent_dim: int = 2
    """how many codes to learn"""
    lr: Lane = 1e-4
    """Adam's learning rate"""
    widths: tuple[int, ...] = (32, 64, 128, 256)
    """channels of the encoder's convolutions, each of which halves the image; the decoder has them the other way"""
    hidden: tuple[int, ...] = ()
    """fully connected layers between the convolutions and the codes"""
    likelihood: Literal["auto", "bernoulli", "gaussian"] = "gaussian"
    """of pixels: Gaussian with variance one, that is half the squared error, or Bernoulli"""

    @abstractmethod
    def code(self, net: Any, x: Tensor) -> Tensor:
        """(n, *shape) -> (n, d)."""

    def loss(self, net: Any, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        x = batch["x"]
        rec = self.reconstruction(x, net.decoder(self.code(net, x))).mean()
        return {"loss": rec, "rec": rec}

    def encode(self, x: Tensor) -> Tensor:
        return self.apply_network(self.code, x)


@final
class Autoencoder(Deterministic):
    """Plain autoencoder: reconstructs through a bottleneck, and asks nothing of the codes."""

    name = "autoencoder"
    paper = "Hinton and Salakhutdinov (2006)"

    def code(self, net: Any, x: Tensor) -> Tensor:
        return net.encoder(x)


@final
class IRMAE(Deterministic):
    """Rank-minimizing autoencoder: linear layers before the codes, which gradient descent keeps low in rank."""

    name = "irmae"
    paper = "Jing, Zbontar and LeCun (2020), Sec. 3"

    linear: int = 4
    """square linear layers without bias between encoder and codes; the paper has 2 to 8"""

    def build(self, shape: tuple[int, ...]) -> nn.Module:
        net = super().build(shape)
        d = self.latent_dim
        net.linear = nn.Sequential(*(nn.Linear(d, d, bias=False) for _ in range(self.linear)))
        return net

    def code(self, net: Any, x: Tensor) -> Tensor:
        return net.linear(net.encoder(x))


@final
class HessianAutoencoder(Deterministic):
    """Hessian autoencoder: learns the codes of HLLE+ICA, and to decode them; no supervision."""

    name = "hessian-autoencoder"
    paper = "Horan, Richardson and Weiss (2021), Eq. 1"

    n_neighbors: int | Literal["auto"] = "auto"
    """of the teacher: points in a neighborhood"""
    samples: int = 10_000
    """points for the teacher where the data are a generator or a large grid; your own rows are always all used"""

    def prepare(self, data: FactorData) -> None:
        """Let HLLE+ICA find the codes y of all points."""
        rng = Generator(self.resolve_device()).manual_seed(self.seed)
        points = data.points_or_sample(self.samples, rng)
        teacher = HessianICA(latent_dim=self.latent_dim, n_neighbors=self.n_neighbors, seed=self.seed)
        codes = teacher.fit_transform(data.render(points).cpu())
        self.diagnosis_ = ["What follows is about its teacher, HLLE + ICA.", *teacher.diagnosis_]
        self._points, self._codes = points, torch.as_tensor(codes, dtype=torch.float32, device=points.device)

    def plan(self, data: FactorData, n: int, rng: Generator) -> Plan:
        row = torch.randint(len(self._points), (n,), generator=rng, device=rng.device)
        return Plan({"x": self._points[row]}, {"y": self._codes[row]})

    def code(self, net: Any, x: Tensor) -> Tensor:
        return net.encoder(x)

    def loss(self, net: Any, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        x, y = batch["x"], batch["y"]
        teach = (net.encoder(x) - y).square().sum(1).mean()  # || E(x) - y ||^2
        rec = (self.mean(net.decoder(y)) - x).square().flatten(1).sum(1).mean()  # || D(y) - x ||^2
        return {"loss": teach + rec, "teach": teach, "rec": rec}
