"""Self-supervised GIN: augmentations in the place of labels."""

from __future__ import annotations

import math
from math import prod
from types import MappingProxyType
from typing import Any, final

import torch
from torch import Generator, Tensor

from unweave.data.augment import KINDS, warp
from unweave.data.core import FactorData
from unweave.data.supervision import Plan, augmented, single, transformed
from unweave.methods.flows.base import NormalizingFlow
from unweave.methods.flows.family import MIN_VARIANCE
from unweave.methods.flows.features import sample_points
from unweave.utils.errors import InputError, plural

N_SETS, N_SETS_BEFORE = 1_000, 100  # sets of copies for statistics after training, and before it
MIN_SETS = 100  # even of large observations
MAX_COPY_ELEMENTS = 2**26  # numbers in these copies
MIN_MOVE_TO_NOISE = 3.0  # times the deviation by noise, from which on augmentation moves a code or a direction
MAX_LISTED = 12  # codes named in a sentence
MIN_SIGNAL = 4.0  # times the deviation by chance of the covariance between two halves of a set


@final
class SelfSupervisedGIN(NormalizingFlow):
    """GIN without labels: every observation is the class of its own augmented copies.

    The copies of an observation have their own mean and deviation along every latent variable, computed from
    themselves.

    Learned attributes, besides those of `NormalizingFlow`:
        set_deviations_: Median deviation of every output within a set of copies, (features,).
        rank_: Independent ways in which means and deviations of the sets vary.

    Example:
        >>> import numpy as np
        >>> images = np.random.default_rng(0).uniform(size=(40, 8, 8))
        >>> method = SelfSupervisedGIN(latent_dim=3, steps=2, batch_size=4, copies=4, conv_blocks=1, conv_widths=(4,))
        >>> method.fit(images).transform(images).shape
        (40, 3)
    """

    name = "self-supervised-gin"
    paper = "Self-supervised Disentangled Representation Learning (2021), Eq. 7"
    needs = "augmentations"
    renamed = MappingProxyType({**NormalizingFlow.renamed, "within_": "set_deviations_"})

    augment: tuple[str, ...] = ()
    """Differences between copies: transformations of images (translation, rotation, scaling), or names of factors of
    synthetic data. Default: all transformations of images, and only the noise for anything else."""
    batch_size: int = 100
    """Observations in a step, each with all its copies. The paper takes 1,000 vectors, or 20 images."""
    copies: int = 10
    """Number of copies of an observation. The paper takes 8 for all transformations of images."""
    spread: float = 1.0
    """Standard deviation of the moves along factors."""

    # Loss -------------------------------------------------------------------------------------------------------

    def loss(self, net: Any, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """Compute Eq. 7, the negative log-likelihood in nats: every set of copies is normal along every variable.

        `nats` is Eq. 7; `loss` is Eq. 7 per feature, so that one learning rate fits all sizes.
        """
        x = self.to_network_input(self.augment_copies(batch), batch["eps"])
        y, log_det = net.flow(x)  # (n copies, d), (n copies,)
        sets = y.reshape(-1, self.copies, y.shape[1])  # (n, copies, d)
        mu = sets.mean(1, keepdim=True)
        variance = (sets - mu).square().mean(1, keepdim=True).clamp(min=MIN_VARIANCE)
        # (y - mu)^2 / (2 sigma^2) + log sigma + const
        nats = 0.5 * ((sets - mu).square() / variance + variance.log() + math.log(2 * math.pi))
        mean = nats.sum(2).mean() - log_det.mean()  # Eq. 7
        return {"loss": mean / y.shape[1], "nats": mean}

    def augment_copies(self, batch: dict[str, Tensor]) -> Tensor:
        """Return the copies of a batch, with images transformed, (n copies, *shape)."""
        x = batch["x"]
        if "theta" in batch:
            images = x if x.ndim == 4 else x[:, None]
            x = warp(images, batch["theta"]).reshape(x.shape)
        return x

    def prepare(self, data: FactorData) -> None:
        super().prepare(data)
        if self.copies < 2:
            raise InputError(f"copies={self.copies}: a set of copies needs at least two to have a deviation")
        kinds = self.transformations()
        if kinds and len(self.shape_) not in (2, 3):
            raise InputError(f"{', '.join(kinds)} move images, and observations have the shape {self.shape_}")
        others = [name for name in self.augment if name not in KINDS]
        if kinds and others:
            raise InputError(f"augment={self.augment}: name transformations of images or factors, not both")
        if not self.augment and not kinds and self.noise == 0:
            raise InputError("noise=0 and nothing to augment by: all copies of an observation would be the same")
        unknown = [name for name in others if name not in [f.name for f in data.factors]]
        if unknown:
            names = ", ".join([*KINDS, *(f.name for f in data.factors)])
            raise InputError(
                f"augment: no transformation of images and no factor named {unknown[0]!r} (there are: {names})"
            )
        self.outlook_.append(self._describe_copies(data.to("cpu")))

    def transformations(self) -> tuple[str, ...]:
        """Return the transformations of images that are asked for."""
        if not self.augment:
            return KINDS if len(self.shape_) in (2, 3) else ()
        return tuple(name for name in self.augment if name in KINDS)

    def is_cacheable(self) -> bool:
        return not self.augment or bool(self.transformations())

    def plan(self, data: FactorData, n: int, rng: Generator) -> Plan:
        if kinds := self.transformations():
            plan = transformed(data, n, rng, kinds=kinds, copies=self.copies)
            return Plan(plan.views, {"theta": plan.extras["theta"]})
        if self.augment:
            return Plan(augmented(data, n, rng, along=self.augment, copies=self.copies, spread=self.spread).views)
        return Plan({"x": single(data, n, rng).views["x"].repeat_interleave(self.copies, 0)})

    def sample_noise(self, n: int, rng: Generator) -> dict[str, Tensor]:
        return {"eps": torch.randn(n * self.copies, *self.shape_, generator=rng, device=rng.device)}

    # After training ---------------------------------------------------------------------------------------------

    @torch.no_grad()
    def summarize(self, data: FactorData, rng: Generator) -> Tensor:
        count = max(MIN_SETS, min(N_SETS, MAX_COPY_ELEMENTS // self.copies // prod(self.shape_)))
        x, eps = self._sample_copies(data, count, rng)
        sets = self.outputs_and_log_det(x, eps)[:, :-1].reshape(-1, self.copies, prod(self.shape_))
        y = self.noisy_outputs_and_log_det(data, sample_points(data, rng), rng)[:, :-1]
        informative = y.std(0).argsort(descending=True)[: self.find_informative(y).informative]
        self.rank_ = count_variations(sets[:, :, informative])
        self.set_deviations_ = sets.std(1).median(0).values  # (features,)
        return y

    def _sample_copies(self, data: FactorData, sets: int, rng: Generator) -> tuple[Tensor, Tensor]:
        """Return sets of copies, (sets * copies, *shape), and noise of the same shape."""
        plan = self.plan(data, sets, rng)
        views = {k: data.render(v).float() for k, v in plan.views.items()}
        return self.augment_copies(views | plan.extras), self.sample_noise(sets, rng)["eps"]

    def encode(self, x: Tensor) -> Tensor:
        return self.outputs(x)[:, self.order_[: self.latent_dim_]]

    def decode(self, z: Tensor) -> Tensor:
        return self.to_observations(self.to_outputs(z))

    # Diagnosis --------------------------------------------------------------------------------------------------

    def _describe_copies(self, data: FactorData) -> str:
        """Return in how many directions copies differ more than by the noise, before training."""
        x, _ = self._sample_copies(data, N_SETS_BEFORE, Generator().manual_seed(0))
        sets = self.to_network_input(x).flatten(1).reshape(-1, self.copies, prod(self.shape_)).double()
        values = torch.linalg.svdvals(sets - sets.mean(1, keepdim=True))  # (sets, copies or features)
        noise = max(float(self.noise), 1e-6) * self.copies**0.5
        count = int((values > MIN_MOVE_TO_NOISE * noise).sum(1).double().median())
        limit = min(self.copies - 1, sets.shape[2])
        text = f"The copies of an observation differ in {plural(count, 'direction')} more than by the noise"
        return f"{text} ({self.copies} copies can show at most {limit})."

    def diagnose(self) -> list[str]:
        return [*self._describe_features_needed(), self._describe_rank(), self._describe_moved_codes()]

    def _describe_features_needed(self) -> list[str]:
        n, features = self.n_informative_, len(self.order_)
        if 2 * n <= features:
            return []
        return [f"{n} informative variables need {2 * n} features (n k <= d), and there are {features}: no guarantee."]

    def _describe_rank(self) -> str:
        """Return whether condition (iii) of Theorem 1 holds, as far as a sample shows it."""
        needed = 2 * self.n_informative_
        text = f"Means and deviations of the augmented sets vary in {self.rank_} of {needed} independent ways"
        if self.rank_ == needed:
            return f"{text}: the Jacobian of the coefficients has full row rank."
        return f"{text}: fewer than the theorem requires, or than {self.copies} copies can show."

    def _describe_moved_codes(self) -> str:
        """Return which informative codes the augmentation moves."""
        if not self.augment and not self.transformations():
            return "Noise moves all directions alike, and identifies no variables: name augmentations."
        deviations, n = self.set_deviations_, self.n_informative_
        noise = float(deviations[self.order_[n:]].median()) if n < len(deviations) else 0.0
        moved = [j + 1 for j, i in enumerate(self.informative_) if float(deviations[i]) > MIN_MOVE_TO_NOISE * noise]
        listed = ", ".join(map(str, moved[:MAX_LISTED])) + (", ..." if len(moved) > MAX_LISTED else "")
        text = f"Augmentation moves {plural(len(moved), 'informative code')}{f' ({listed})' if moved else ''}"
        if len(moved) == n:
            return f"{text}, all there are."
        return f"{text}; the other {n - len(moved)} vary only by the noise, which the theorem does not cover."


def count_variations(sets: Tensor) -> int:
    """Return in how many independent ways means and log-deviations of sets (n, copies, d) vary, beyond chance.

    Chance is independent between two halves of a set, so only real variation contributes to their covariance.
    """
    n = len(sets)
    if sets.shape[1] < 4:
        return 0  # a half needs two copies to have a deviation
    halves = [sets[:, start::2].double() for start in (0, 1)]
    a, b = (torch.cat([h.mean(1), h.std(1).clamp(min=1e-9).log()], 1) for h in halves)  # (n, 2 d)
    chance = ((a - b).std(0) / 2**0.5).clamp(min=1e-9)
    a, b = ((v - v.mean(0)) / chance for v in (a, b))
    common = (a.T @ b + b.T @ a) / (2 * n)  # (2 d, 2 d)
    return int((torch.linalg.eigvalsh(common) > MIN_SIGNAL * (common.shape[0] / n) ** 0.5).sum())
