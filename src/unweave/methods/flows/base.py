"""What methods with flows share: a network that keeps volumes, whose outputs' deviations tell their importance."""

from __future__ import annotations

import copy
import sys
from abc import abstractmethod
from math import prod
from types import MappingProxyType
from typing import Any, Literal, final

import numpy as np
import pandas as pd
import torch
from sklearn.decomposition import PCA
from torch import Generator, Tensor, nn

from unweave.data.core import FactorData, as_float, split_rows
from unweave.methods.base import FigureName
from unweave.methods.flows.knee import Knee, knee
from unweave.methods.neural import Lane, Neural
from unweave.nn.coupling import Clamp, Flow, image_flow, vector_flow
from unweave.training.adam import Adam
from unweave.utils.errors import InputError

SEEN = 20_000  # observations that statistics after training are made of
DROP = 5 / 8  # of the steps: then the learning rate falls to a tenth, as after "convergence" in the papers
MOST = 2**27  # numbers that these may be
DROWNED = 0.3  # of the usual deviation of a feature, from which on noise is what a flow sees most of


def few(said: list[str], most: int = 3) -> list[str]:
    """The first sentences, and how many more there are like them."""
    return said if len(said) <= most else [*said[:most], f"(And {len(said) - most} more of this kind.)"]


class FlowNet(nn.Module):
    """A flow, and the parameters of its latent variables where these are learned."""

    def __init__(self, flow: Flow) -> None:
        super().__init__()
        self.flow = flow


class NormalizingFlow(Neural):
    """Abstract: x -> y = g^-1(x), invertible and by default of volume one; y sorted by deviation are the codes."""

    renamed = MappingProxyType({"standardise": "standardize"})

    latent_dim: int | Literal["auto", "all"] = "auto"  # type: ignore[assignment]
    """codes that transform gives, most important first: the informative ones ('auto'), 'all', or so many"""
    steps: int = 4_000
    """gradient steps; the learning rate falls to a tenth after five eighths of them"""
    batch_size: int = 500
    """observations in a step; the paper takes 1,000 vectors, or 240 images"""
    lr: Lane = 0.0
    """Adam's learning rate; 0: 0.01 for vectors and 0.0003 for images, as in the paper"""
    precision: Literal["single", "tf32", "bf16"] = "single"
    """of products on a GPU: 'single' is exact; fewer bits are as coarse as the noise, and faster for images"""
    noise: Lane = 0.01
    """deviation of the noise that is added to the observations, standardized or not, in every step"""
    standardize: bool = False
    """divide every feature by its deviation first: noise, and a start at rest, suppose numbers of the order of one"""
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
    def summarize(self, data: FactorData, rng: Generator) -> Tensor:
        """Learn what the trained flow tells of the data; return outputs y, (n, features), of which deviations are."""

    @abstractmethod
    def diagnose(self) -> list[str]:
        """What is to be said of identifiability after training, in sentences."""

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

    def shaped(self, x: Tensor, eps: Tensor | None = None) -> Tensor:
        """Observations as the flow takes them: standardized, with noise, as vectors or images."""
        x = x / self.scale_.to(x) if self.standardize else x
        x = x if eps is None else x + self.noise * eps
        if not self.images(self.shape_):
            return x.flatten(1)
        return x if len(self.shape_) == 3 else x[:, None]

    @final
    def optimizers(self) -> dict[str, Adam]:
        usual = 3e-4 if self.images(self.shape_) else 1e-2
        lr = torch.as_tensor(self.lr)  # a tensor inside a pack, which cannot be asked whether it is zero
        return {"": Adam(torch.where(lr > 0, lr, usual), decay_after=DROP)}

    # Before training --------------------------------------------------------------------------------------------

    def prepare(self, data: FactorData) -> None:
        features = prod(self.shape_)
        if features < 2:
            raise InputError("1 feature(s) only: a flow couples one part of an observation with another; pass more")
        for name in ("noise", "lr", "blocks", "width", "conv_blocks"):
            if getattr(self, name) < 0:
                raise InputError(f"{name}={getattr(self, name)}: expected 0 or more")
        if min(self.conv_widths, default=1) < 1:
            raise InputError(f"conv_widths={self.conv_widths}: a layer needs at least one channel")
        if isinstance(self.latent_dim, int) and self.latent_dim > features:
            raise InputError(f"latent_dim={self.latent_dim}: observations of {features} numbers have {features} codes")
        low, high, deviation = self._ranges(data)
        still = low == high
        self.still_ = int(still.sum())
        if self.still_ and self.noise == 0:
            text = f"{self.still_} of {features} features are constant, and no flow keeps volumes along such directions"
            raise InputError(f"{text}: set noise=0.01, which gives them some")
        if self.standardize:
            self.scale_ = torch.where(still, 1.0, deviation.clamp(min=1e-12)).reshape(self.shape_)
        self.lasting_ = self._outlook(torch.ones_like(deviation) if self.standardize else deviation, still)
        self.outlook_ = list(self.lasting_)  # and what training will say better

    def _rng(self) -> Generator:
        return Generator(self.resolve_device()).manual_seed(0)

    def _ranges(self, data: FactorData) -> tuple[Tensor, Tensor, Tensor]:
        """The least and the largest value of every feature, and its deviation, (features,) each."""
        points = data.points_or_sample(SEEN, self._rng(), limit=sys.maxsize)
        n, mean, square = 0, torch.zeros(()), torch.zeros(())
        low, high = torch.tensor(torch.inf), torch.tensor(-torch.inf)
        for part in split_rows(points, max(1, MOST // 16 // prod(self.shape_))):
            x = data.render(part).flatten(1)
            low, high = torch.minimum(low.to(x), x.amin(0)), torch.maximum(high.to(x), x.amax(0))
            wide = x.double()
            n, mean, square = n + len(x), mean.to(wide) + wide.sum(0), square.to(wide) + wide.square().sum(0)
        deviation = (square / n - (mean / n).square()).clamp(min=0).sqrt()
        return low.float(), high.float(), deviation.float()

    def _outlook(self, deviation: Tensor, still: Tensor) -> list[str]:
        """What can be said before training."""
        said = []
        features = len(deviation)
        if self.still_:
            text = f"{self.still_} of {features} features are constant: a flow cannot keep volumes along them"
            said.append(f"{text}, so what it sees there is the added noise (deviation {float(self.noise):g}).")
        usual = float(deviation[~still].median()) if bool((~still).any()) else 0.0
        if self.noise > DROWNED * usual > 0:
            text = f"Features have a deviation of {usual:.2g}, and the added noise one of {float(self.noise):g}"
            said.append(f"{text}, which drowns them: set standardize=True, or a smaller noise.")
        if self.volume == "free":
            said.append("Volumes are not kept (volume='free'): deviations do not tell how important a variable is.")
        return said

    @final
    def outlook(self, X: Any, y: Any = None) -> list[str]:
        """What can be said of identifiability before any training, in sentences."""
        look = copy.copy(self)
        look.device = "cpu"
        data = look.to_data(X, y)
        look.validate_settings(data)
        look.reset()
        look.prepare(data.to("cpu"))
        return list(look.outlook_)

    # After training ---------------------------------------------------------------------------------------------

    def after_training(self, data: FactorData) -> None:
        y = self.summarize(data, Generator().manual_seed(0))  # of all starts the same, so that they can be compared
        deviations, self.order_ = y.std(0).sort(descending=True)  # (features,)
        self.spectrum_ = deviations.numpy()
        found = self.found(y)
        self.n_informative_, self.confidence_ = found.informative, found.confidence
        self.informative_ = self.order_[: found.informative].tolist()
        self.middle_ = y.mean(0)
        words = {"auto": found.informative, "all": len(self.order_)}
        self.latent_dim_ = words[self.latent_dim] if isinstance(self.latent_dim, str) else self.latent_dim
        self.diagnosis_ = [self._knee_in_words(), *self.diagnose(), *self.lasting_]

    def found(self, y: Tensor) -> Knee:
        """How many outputs (n, features) are informative."""
        return knee(y.std(0).clamp(min=1e-12).numpy())

    def _knee_in_words(self) -> str:
        n, s = self.n_informative_, self.spectrum_
        if n == len(s):
            return f"The spectrum has no knee: all {n} variables count as informative."
        sure = "clear" if self.confidence_ > 0.9 else "not clear"
        text = f"{n} of {len(s)} variables are informative: deviations fall from {s[n - 1]:.3g} to {s[n]:.3g}"
        return f"{text} there. The knee is {sure} (probability {self.confidence_:.0%})."

    @torch.no_grad()
    def outputs_and_volume(self, x: Tensor, eps: Tensor | None = None) -> Tensor:
        """y of observations, (n, *shape) -> (n, features), and log|det| of the map in a last column."""

        def both(net: Any, part: Tensor) -> Tensor:
            y, log_det = net.flow(part)
            return torch.cat([y, log_det[:, None]], 1)

        found = self.apply_network(both, self.shaped(x, eps))
        if self.standardize:
            found[:, -1] -= self.scale_.to(x).log().sum()
        return found

    def constant(self) -> float:
        """What the loss leaves out of -log p(x), in nats: it is that of standardized observations."""
        return float(self.scale_.log().sum()) if self.standardize else 0.0

    def figures(self) -> tuple[FigureName, ...]:
        images = len(self.shape_) in (2, 3)
        return (*super().figures(), "spectrum", *(["variables"] if images else []))

    def log_likelihood(self, history: pd.DataFrame) -> float | None:
        """Return log p(x) given the labels, averaged over the rows of `history`."""
        if "nats" not in history:  # a subclass with a loss of its own
            return None
        return -float(history["nats"].mean()) - self.constant()

    def class_statistics(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Return means and deviations of the outputs y of every class, (features,) each, by the name of the class."""
        name = type(self).__name__
        raise InputError(f"{name} knows no classes: say `rows`, see `figures.flows.class_centers`")

    def outputs(self, x: Tensor) -> Tensor:
        """y of observations, (n, *shape) -> (n, features), in the flow's own order."""
        return self.outputs_and_volume(x)[:, :-1]

    def outputs_with_noise(self, data: FactorData, points: Tensor, rng: Generator) -> Tensor:
        """Outputs and volumes of points, noise added as in training, (n, features + 1)."""
        found = []
        for part in split_rows(points, max(1, MOST // 16 // prod(self.shape_))):
            x = data.render(part).float()
            found.append(self.outputs_and_volume(x, torch.randn(x.shape, generator=rng)))
        return torch.cat(found)

    @torch.no_grad()
    def pixels(self, y: Tensor) -> Tensor:
        """The other way, (n, features) -> (n, *shape)."""
        back = self.apply_network(lambda net, part: net.flow.inverse(part), y).reshape(-1, *self.shape_)
        return back * self.scale_.to(y) if self.standardize else back

    def filled(self, z: Tensor) -> Tensor:
        """Sorted codes, (n, any number), as outputs (n, features), the others at their means."""
        y = self.middle_.to(z).repeat(len(z), 1)
        y[:, self.order_[: z.shape[1]]] = z
        return y

    def some(self, data: FactorData, rng: Generator) -> Tensor:
        """At most SEEN points, fewer of large observations."""
        most = max(1_000, min(SEEN, MOST // prod(self.shape_)))
        points = data.all_points(sys.maxsize)
        if points is None:
            return data.sample(most, rng)
        return (
            points
            if len(points) <= most
            else points[torch.randperm(len(points), generator=rng, device=rng.device)[:most]]
        )

    @final
    def spectrum_of_pca(self, X: np.ndarray) -> np.ndarray:
        """The deviations along the principal axes of observations, for comparison."""
        x = self.shaped(as_float(torch.from_numpy(np.array(X))).float()).flatten(1).double().numpy()
        return np.sqrt(PCA().fit(x).explained_variance_)
