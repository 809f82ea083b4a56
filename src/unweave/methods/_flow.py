"""What methods with flows share: a network that keeps volumes, whose outputs' deviations tell their importance."""

from __future__ import annotations

from abc import abstractmethod
from math import prod
from typing import Any, Literal, final

import numpy as np
import torch
from torch import Generator, Tensor, nn

from ..data import FactorData
from ..errors import InputError
from ..knee import knee
from ..neural import Lane, Neural
from ..nn.coupling import Clamp, Flow, image_flow, vector_flow
from ..optimiser import Adam

SEEN = 20_000  # observations that statistics after training are made of
DROP = 5 / 8  # of the steps: then the learning rate falls to a tenth, as after "convergence" in the papers
DEGENERATE = 1e-6  # of the largest deviation: a feature that varies less does not vary


class FlowNet(nn.Module):
    """A flow, and the parameters of its latent variables where these are learned."""

    def __init__(self, flow: Flow) -> None:
        super().__init__()
        self.flow = flow


class FlowMethod(Neural):
    """Abstract: x -> y = g^-1(x), invertible and by default of volume one; y sorted by deviation are the codes."""

    latent_dim: int | Literal["auto", "all"] = "auto"  # type: ignore[assignment]
    """codes that transform gives, most important first: the informative ones ('auto'), 'all', or so many"""
    steps: int = 4_000
    """gradient steps; the learning rate falls to a tenth after five eighths of them"""
    batch_size: int = 1_000
    """observations in a step; for images the papers take 240, and 20 with augmentations"""
    lr: Lane = 0.0
    """Adam's learning rate; 0: 0.01 for vectors and 0.0003 for images, as in the paper"""
    precision: Literal["single", "tf32", "bf16"] = "single"
    """of products on a GPU: 'single' is exact; fewer bits are as coarse as the noise, and faster for images"""
    noise: Lane = 0.01
    """deviation of the noise that is added to the observations in every step"""
    restarts: int = 1  # type: ignore[misc]
    """so many starts are trained together, and the likeliest is kept"""
    network: Literal["auto", "conv", "dense"] = "auto"
    """convolutions for images, fully connected blocks for anything else, unless you say which"""
    blocks: int = 0
    """fully connected coupling blocks; 0: 8, or 2 after convolutions, as in the paper"""
    width: int = 0
    """units of their hidden layers; 0: as many as features, at least 10, or half as many after convolutions"""
    conv_blocks: int = 4
    """convolutional coupling blocks of each size"""
    conv_widths: tuple[int, ...] = (16, 32)
    """channels of their hidden layers; the image is halved once for each"""
    clamp: Clamp = "soft"
    """what bounds the log-scales: 1.27 arctan(s / 2) (authors' script) or 2 tanh(s) (paper)"""
    volume: Literal["mean", "last", "free"] = "mean"
    """log-scales less their mean (authors' script), or the last one minus the sum of the others (paper), keep volumes;
    'free' does not: RealNVP"""

    # Yours ------------------------------------------------------------------------------------------------------

    @abstractmethod
    def summarise(self, data: FactorData, rng: Generator) -> Tensor:
        """Learn what the trained flow tells of the data; return outputs y, (n, features), of which deviations are."""

    # Networks ---------------------------------------------------------------------------------------------------

    def build(self, shape: tuple[int, ...]) -> nn.Module:
        rng = Generator().manual_seed(int(torch.randint(2**31, (1,))))
        kind: Any = {"clamp": self.clamp, "volume": self.volume}
        if self.images(shape):
            shape = shape if len(shape) == 3 else (1, *shape)
            blocks = (self.conv_blocks, self.blocks or 2)
            full = self.width or max(1, prod(shape) // 2)
            return FlowNet(image_flow(shape, blocks, self.conv_widths, rng, full_width=full, **kind))
        features = prod(shape)
        return FlowNet(vector_flow(features, self.blocks or 8, self.width or max(10, features), rng, **kind))

    def images(self, shape: tuple[int, ...]) -> bool:
        """Whether to take convolutions."""
        if self.network == "conv" and len(shape) not in (2, 3):
            raise InputError(f"network='conv' wants images, and observations have the shape {shape}")
        return self.network == "conv" or (self.network == "auto" and len(shape) in (2, 3))

    def shaped(self, x: Tensor) -> Tensor:
        """Observations as the flow takes them."""
        if not self.images(self.shape_):
            return x.flatten(1)
        return x if len(self.shape_) == 3 else x[:, None]

    @final
    def rates(self) -> dict[str, Adam]:
        usual = 3e-4 if self.images(self.shape_) else 1e-2
        lr = torch.as_tensor(self.lr)  # a tensor inside a pack, which cannot be asked whether it is zero
        return {"": Adam(torch.where(lr > 0, lr, usual), drop=DROP)}

    def prepare(self, data: FactorData) -> None:
        features = prod(self.shape_)
        if features < 2:
            raise InputError(
                "1 feature(s) only: a flow couples one part of an observation with another, pass two or more"
            )
        for name in ("noise", "lr", "blocks", "width", "conv_blocks"):
            if getattr(self, name) < 0:
                raise InputError(f"{name}={getattr(self, name)}: wanted 0 or more")
        if isinstance(self.latent_dim, int) and self.latent_dim > features:
            raise InputError(f"latent_dim={self.latent_dim}: observations of {features} numbers have {features} codes")
        spread = self._spread(data)
        still = int((spread <= DEGENERATE * spread.max()).sum())
        if still and self.noise == 0:
            text = (
                f"{still} of {features} features are constant, and no flow keeps volumes along a direction without any"
            )
            raise InputError(f"{text}: set noise=0.01, which gives them some")
        self.still_ = still

    def _spread(self, data: FactorData) -> Tensor:
        """The deviation of every feature, (features,)."""
        device = self.found_device()
        return data.draw(self.observations, Generator(device).manual_seed(0)).x.flatten(1).float().std(0)

    # After training ---------------------------------------------------------------------------------------------

    def conclude(self, data: FactorData) -> None:
        y = self.summarise(data, Generator().manual_seed(self.seed))
        deviations, self.order_ = y.std(0).sort(descending=True)  # (features,)
        self.spectrum_ = deviations.numpy()
        found = knee(self.spectrum_)
        self.n_informative_, self.confidence_ = found.informative, found.confidence
        self.informative_ = self.order_[: found.informative].tolist()
        self.middle_ = y.mean(0)
        words = {"auto": found.informative, "all": len(self.order_)}
        self.latent_dim_ = words[self.latent_dim] if isinstance(self.latent_dim, str) else self.latent_dim
        self.diagnosis_ = [self._knee_in_words(), *self.diagnose(y)]

    def diagnose(self, y: Tensor) -> list[str]:
        """What is to be said of identifiability, in sentences."""
        return []

    def _knee_in_words(self) -> str:
        n, s = self.n_informative_, self.spectrum_
        if n == len(s):
            return f"The spectrum has no knee: all {n} variables count as informative."
        sure = "clear" if self.confidence_ > 0.9 else "not clear"
        text = f"{n} of {len(s)} variables are informative: deviations fall from {s[n - 1]:.3g} to {s[n]:.3g}"
        return f"{text} there. The knee is {sure} (probability {self.confidence_:.0%})."

    @torch.no_grad()
    def outputs(self, x: Tensor) -> Tensor:
        """y of observations, (n, *shape) -> (n, features), in the flow's own order."""
        return self.applied(lambda net, part: net.flow(self.shaped(part))[0], x)

    @torch.no_grad()
    def pixels(self, y: Tensor) -> Tensor:
        """The other way, (n, features) -> (n, *shape)."""
        back = self.applied(lambda net, part: net.flow.inverse(part), y)
        return back.reshape(-1, *self.shape_)

    def filled(self, z: Tensor) -> Tensor:
        """Sorted codes, (n, any number), as outputs (n, features), the others at their means."""
        y = self.middle_.to(z).repeat(len(z), 1)
        y[:, self.order_[: z.shape[1]]] = z
        return y

    def observe(self, data: FactorData, rng: Generator) -> tuple[Tensor, Tensor]:
        """At most SEEN points with their observations, noise added as in training."""
        points = data.observed(SEEN)
        if points is None:
            points = data.sample(SEEN, rng)
        elif len(points) > SEEN:
            points = points[torch.randperm(len(points), generator=rng)[:SEEN]]
        return points, self.noisy(data.render(points).float(), rng)

    def noisy(self, x: Tensor, rng: Generator) -> Tensor:
        """As in training."""
        return x + self.noise * torch.randn(x.shape, generator=rng)

    @final
    def spectrum_of_pca(self, x: np.ndarray) -> np.ndarray:
        """The deviations along the principal axes of observations, for comparison."""
        flat = np.asarray(x, np.float64).reshape(len(x), -1)
        return np.linalg.svd(flat - flat.mean(0), compute_uv=False) / np.sqrt(max(1, len(flat) - 1))
