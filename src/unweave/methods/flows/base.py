"""Base class of normalizing flows: the network, its outputs, and their spectrum of deviations."""

from __future__ import annotations

import copy
from abc import abstractmethod
from math import prod
from types import MappingProxyType
from typing import Any, Literal, final

import numpy as np
import pandas as pd
import torch
from sklearn.decomposition import PCA
from sklearn.utils.validation import check_is_fitted
from torch import Generator, Tensor, nn

from unweave.data.core import FactorData, as_float, split_rows
from unweave.methods.base import FigureName
from unweave.methods.encoding import learn_scaling, to_scaled
from unweave.methods.flows.features import batch_rows, describe_features, feature_statistics, sample_points
from unweave.methods.flows.knee import Knee, describe_knee, find_knee, resample_deviations
from unweave.methods.flows.tails import Tails, fit_tails
from unweave.methods.neural import Lane, Neural
from unweave.nn.coupling import Clamp, Flow, image_flow, vector_flow
from unweave.training.adam import Adam
from unweave.utils.errors import InputError
from unweave.utils.validation import validate_observations

VECTOR_LR, IMAGE_LR = 1e-2, 3e-4  # learning rates of the paper


class FlowNet(nn.Module):
    """A flow, and the parameters of its latent variables where these are learned."""

    def __init__(self, flow: Flow) -> None:
        super().__init__()
        self.flow = flow


class NormalizingFlow(Neural):
    """Abstract: an invertible map x -> y = g^-1(x), by default volume-preserving.

    The codes are the outputs y, sorted by their standard deviation.

    Learned attributes:
        spectrum_: Standard deviations of the outputs, descending, (features,).
        order_: Output of each place in the spectrum, (features,).
        n_informative_, confidence_: Outputs before the knee of the spectrum, and the probability of that number.
        informative_interval_: Smallest and largest number in its 95 % interval; a model of an earlier version has none,
            see `informative_interval`.
        informative_: These outputs, most important first.
        output_means_: Means of the outputs, (features,).
        n_constant_: Number of constant features.
        scale_: Deviations that features are divided by, with `standardize` or `heavy_tails`.
        center_, unit_: Medians and median deviations of the features, with `heavy_tails`.
        mean_log_det_: Mean of log|det| of their compression.
        outlook_: Sentences on identifiability before training.
        data_notes_: The part of it that training does not change.
        diagnosis_: Sentences on identifiability after training.
    """

    renamed = MappingProxyType({
        "standardise": "standardize", "still_": "n_constant_", "lasting_": "data_notes_", "middle_": "output_means_",
    })  # fmt: skip

    latent_dim: int | Literal["auto", "all"] = "auto"  # type: ignore[assignment]  # wider than Method's: takes words
    """Number of codes, most important first: the informative ones ('auto'), 'all', or a number."""
    steps: int = 4_000
    """Gradient steps."""
    batch_size: int = 500
    """Observations in a step. The paper takes 1,000 vectors, or 240 images."""
    lr: Lane = 0.0
    """Adam's learning rate. 0: 0.01 for vectors and 0.0003 for images, as in the paper."""
    lr_decay_after: float = 0.625
    """Share of the steps after which the learning rate is a tenth of `lr`. 1: it stays as it is."""
    precision: Literal["auto", "single", "tf32", "bf16"] = "single"
    """Precision of matrix products on a GPU. 'single' is exact; the others are as coarse as the noise, and faster."""
    noise: Lane = 0.01
    """Standard deviation of the noise added to the observations, standardized or not, in every step."""
    standardize: bool = False
    """Divide every feature by its deviation first: noise and initialization assume numbers of the order of one."""
    heavy_tails: bool = False
    """Take asinh((x - median) / median deviation) of every feature and standardize it; noise is added afterwards."""
    restarts: int = 1  # type: ignore[misc]  # a constant of Method, a field here
    """Number of random starts, trained together. The model with the highest likelihood is selected."""
    network: Literal["auto", "conv", "dense"] = "auto"
    """Kind of coupling blocks. auto: convolutions for images, fully connected blocks for anything else."""
    blocks: int = 0
    """Fully connected coupling blocks. 0: 8, or 2 after convolutions, as in the paper."""
    width: int = 0
    """Units of their hidden layers. 0: as many as features, at least 10, or half as many after convolutions."""
    conv_blocks: int = 4
    """Convolutional coupling blocks of each image size."""
    conv_widths: tuple[int, ...] = (16, 32)
    """Channels of their hidden layers. The image is halved once for each."""
    clamp: Clamp = "soft"
    """Bound of the log-scales: 1.27 arctan(s / 2) (authors' script) or 2 tanh(s) (paper)."""
    volume: Literal["mean", "last", "free"] = "mean"
    """Preservation of volume: log-scales minus their mean (authors' script), or the last one minus the sum of the
    others (paper). 'free' does not preserve them: RealNVP."""

    # For subclasses ---------------------------------------------------------------------------------------------

    @abstractmethod
    def summarize(self, data: FactorData, rng: Generator) -> Tensor:
        """Learn the statistics of the trained flow, and return outputs y of data with noise, (n, features)."""

    @abstractmethod
    def diagnose(self) -> list[str]:
        """Return sentences on identifiability after training."""

    # Network ----------------------------------------------------------------------------------------------------

    def build(self, shape: tuple[int, ...]) -> nn.Module:
        rng = Generator().manual_seed(int(torch.randint(2**31, (1,))))
        kind: Any = {"clamp": self.clamp, "volume": self.volume}
        if self.is_convolutional(shape):
            shape = shape if len(shape) == 3 else (1, *shape)
            blocks = (self.conv_blocks, self.blocks or 2)
            full = self.width or max(1, prod(shape) // 2)
            return FlowNet(image_flow(shape, blocks, self.conv_widths, rng, full_width=full, **kind))
        features = prod(shape)
        return FlowNet(vector_flow(features, self.blocks or 8, self.width or max(10, features), rng, **kind))

    def is_convolutional(self, shape: tuple[int, ...]) -> bool:
        """Return whether the network for observations of a shape has convolutions."""
        if self.network == "conv" and len(shape) not in (2, 3):
            raise InputError(f"network='conv' needs images, and observations have the shape {shape}")
        return self.network == "conv" or (self.network == "auto" and len(shape) in (2, 3))

    def to_network_input(self, x: Tensor, eps: Tensor | None = None) -> Tensor:
        """Standardize observations (n, *shape), add noise, and shape them as vectors (n, d) or images (n, c, h, w)."""
        if self.heavy_tails:
            x = self.tails().compress(x)
        elif self.standardize:
            x = x / self.scale_.to(x)
        x = x if eps is None else x + self.noise * eps
        if not self.is_convolutional(self.shape_):
            return x.flatten(1)
        return x if len(self.shape_) == 3 else x[:, None]

    def tails(self) -> Tails:
        """Return the compression of features with heavy tails."""
        return Tails(self.center_, self.unit_, self.scale_)

    @final
    def optimizers(self) -> dict[str, Adam]:
        default = IMAGE_LR if self.is_convolutional(self.shape_) else VECTOR_LR
        lr = torch.as_tensor(self.lr)  # inside a pack a tensor, whose value `if` cannot ask for
        return {"": Adam(torch.where(lr > 0, lr, default), decay_after=self.lr_decay_after)}

    # Before training --------------------------------------------------------------------------------------------

    def prepare(self, data: FactorData) -> None:
        features = prod(self.shape_)
        if features < 2:
            raise InputError("1 feature(s) only: a flow couples one part of an observation with another; pass more")
        for name in ("noise", "lr", "lr_decay_after", "blocks", "width", "conv_blocks"):
            if getattr(self, name) < 0:
                raise InputError(f"{name}={getattr(self, name)}: expected 0 or more")
        if min(self.conv_widths, default=1) < 1:
            raise InputError(f"conv_widths={self.conv_widths}: a layer needs at least one channel")
        if isinstance(self.latent_dim, int) and self.latent_dim > features:
            raise InputError(f"latent_dim={self.latent_dim}: observations of {features} numbers have {features} codes")
        statistics = feature_statistics(data, self._rng())
        constant, deviation = statistics.constant, statistics.deviation
        self.n_constant_ = int(constant.sum())
        if self.n_constant_ and self.noise == 0:
            text = f"{self.n_constant_} of {features} features are constant, and no flow keeps volumes along them"
            raise InputError(f"{text}: set noise=0.01, which gives them some")
        if self.standardize:
            self.scale_ = torch.where(constant, 1.0, deviation.clamp(min=1e-12)).reshape(self.shape_)
        if self.heavy_tails:
            x = data.render(sample_points(data, self._rng())).float().cpu()
            self.center_, self.unit_, self.scale_ = tails = fit_tails(x)
            self.mean_log_det_ = float(tails.log_det(tails.compress(x)).mean())
        unit = torch.ones_like(deviation) if self.standardize or self.heavy_tails else deviation
        self.data_notes_ = describe_features(unit, constant, float(self.noise))
        if self.volume == "free":
            text = "Volumes are not preserved (volume='free'): deviations do not measure the importance of a variable."
            self.data_notes_.append(text)
        self.outlook_ = list(self.data_notes_)  # subclasses append what they know before training

    def _rng(self) -> Generator:
        """Return a generator on the method's device for statistics, the same in every restart."""
        return Generator(self.resolve_device()).manual_seed(0)

    @final
    def outlook(self, X: Any, y: Any = None) -> list[str]:
        """Return sentences on the identifiability of data, without any training; arguments as of `fit`."""
        method = copy.copy(self)
        method.device = "cpu"
        data = method.to_data(X, y)
        method.validate_settings(data)
        data = learn_scaling(method, data)
        method.reset()
        method.prepare(data.to("cpu"))
        return list(method.outlook_)

    # After training ---------------------------------------------------------------------------------------------

    def after_training(self, data: FactorData) -> None:
        y = self.summarize(data, Generator().manual_seed(0))  # the same data for all restarts, to compare them
        deviations, self.order_ = y.std(0).sort(descending=True)  # (features,)
        self.spectrum_ = deviations.numpy()
        knee = self.find_informative(y)
        self.n_informative_, self.confidence_ = knee.informative, knee.confidence
        self.informative_interval_ = knee.interval
        self.informative_ = self.order_[: knee.informative].tolist()
        self.output_means_ = y.mean(0)
        words = {"auto": knee.informative, "all": len(self.order_)}
        self.latent_dim_ = words[self.latent_dim] if isinstance(self.latent_dim, str) else self.latent_dim
        text = describe_knee(self.n_informative_, self.informative_interval_, self.spectrum_)
        self.diagnosis_ = [text, *self.diagnose(), *self.data_notes_]

    def find_informative(self, y: Tensor) -> Knee:
        """Return how many of the outputs y (n, features) are informative."""
        return find_knee(y.std(0).clamp(min=1e-12).numpy(), resample_deviations(y.numpy()))

    def informative_interval(self) -> tuple[int, int]:
        """Return the 95 % interval of the number of informative variables.

        A model that was saved without one gets that of its spectrum, without the sampling error.
        """
        low, high = vars(self).get("informative_interval_") or find_knee(self.spectrum_).interval
        return min(low, self.n_informative_), max(high, self.n_informative_)

    @torch.no_grad()
    def outputs_and_log_det(self, x: Tensor, eps: Tensor | None = None) -> Tensor:
        """Return outputs y and, in a last column, log|det J| of the map: (n, *shape) -> (n, features + 1)."""

        def apply(net: Any, part: Tensor) -> Tensor:
            y, log_det = net.flow(part)
            return torch.cat([y, log_det[:, None]], 1)

        inputs = self.to_network_input(x, eps)
        outputs = self.apply_network(apply, inputs)
        if self.heavy_tails:
            outputs[:, -1] += self.tails().log_det(inputs.reshape(-1, *self.shape_))
        elif self.standardize:
            outputs[:, -1] -= self.scale_.to(x).log().sum()
        return outputs

    def outputs(self, x: Tensor) -> Tensor:
        """Return outputs y of observations in the order of the network, (n, *shape) -> (n, features)."""
        return self.outputs_and_log_det(x)[:, :-1]

    def noisy_outputs_and_log_det(self, data: FactorData, points: Tensor, rng: Generator) -> Tensor:
        """Return outputs and log|det J| of points of the data, with noise as in training, (n, features + 1)."""
        outputs = []
        for part in split_rows(points, batch_rows(self.shape_)):
            x = data.render(part).float()
            outputs.append(self.outputs_and_log_det(x, torch.randn(x.shape, generator=rng)))
        return torch.cat(outputs)

    @torch.no_grad()
    def to_observations(self, y: Tensor) -> Tensor:
        """Inverse of `outputs`, (n, features) -> (n, *shape)."""
        x = self.apply_network(lambda net, part: net.flow.inverse(part), y).reshape(-1, *self.shape_)
        if self.heavy_tails:
            return self.tails().expand(x)
        return x * self.scale_.to(y) if self.standardize else x

    def to_outputs(self, z: Tensor) -> Tensor:
        """Return outputs (n, features) of sorted codes z (n, any number), the others at their means."""
        y = self.output_means_.to(z).repeat(len(z), 1)
        y[:, self.order_[: z.shape[1]]] = z
        return y

    def to_tensor(self, X: Any) -> Tensor:
        """Return validated observations as the flow takes them, (n, *shape)."""
        check_is_fitted(self)
        return to_scaled(self, as_float(torch.from_numpy(validate_observations(self, X, self.shape_)))).float()

    def constant(self) -> float:
        """Return the part of -log p(x) that the loss leaves out, in nats: it is that of standardized observations."""
        scaling = float(self.scale_.log().sum()) if self.standardize else 0.0
        return -self.mean_log_det_ if self.heavy_tails else scaling

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
        raise InputError(f"{name} has no classes: pass `rows`, see `figures.flows.class_centers`")

    @final
    def pca_spectrum(self, X: np.ndarray) -> np.ndarray:
        """Return the deviations along the principal axes of observations, for comparison with `spectrum_`."""
        x = to_scaled(self, as_float(torch.from_numpy(np.array(X)))).float()
        return np.sqrt(PCA().fit(self.to_network_input(x).flatten(1).double().numpy()).explained_variance_)
