"""Self-supervised GIN: augmentations instead of labels."""

from __future__ import annotations

import math
from math import prod
from typing import Any, final

import torch
from torch import Generator, Tensor

from unweave.data.augment import KINDS, warp
from unweave.data.core import FactorData
from unweave.data.supervision import Plan, augmented, single, transformed
from unweave.methods.flows.base import NormalizingFlow
from unweave.utils.errors import InputError, plural

LEAST = 1e-12  # a variance below this is rounding
SETS = 1_000  # of copies, that are looked at after training
MOVED = 3.0  # times the usual deviation within a set, from which on augmentation moves a code
NAMED = 12  # codes in a sentence
BEYOND = 4.0  # times the deviation by chance of what two halves have in common
LOOKED_AT = 100  # sets, before training
MOST_COPIED = 2**26  # numbers in the copies that are looked at


@final
class SelfSupervisedGIN(NormalizingFlow):
    """Self-supervised GIN: every observation is the label of its own augmented copies.

    The copies of one observation have means and deviations of their own along every latent variable, which are taken
    from themselves.
    """

    name = "self-supervised-gin"
    paper = "Self-supervised Disentangled Representation Learning (2021), Eq. 7"
    needs = "augmentations"

    augment: tuple[str, ...] = ()
    """what copies differ in: transformations of images (translation, rotation, scaling), or the names of factors along
    which synthetic data are moved; none named: all transformations of images, and the noise alone for anything else"""
    batch_size: int = 100
    """observations in a step, each with all its copies; the paper takes 1,000 vectors, or 20 images"""
    copies: int = 10
    """size of each observation's set; for all transformations of images the paper takes 8"""
    spread: float = 1.0
    """deviation of the moves along factors"""

    def prepare(self, data: FactorData) -> None:
        super().prepare(data)
        if self.copies < 2:
            raise InputError(f"copies={self.copies}: a set of copies has a deviation from two on")
        moving = self.transformations()
        if moving and len(self.shape_) not in (2, 3):
            raise InputError(f"{', '.join(moving)} move images, and observations have the shape {self.shape_}")
        mixed = [name for name in self.augment if name not in KINDS]
        if moving and mixed:
            raise InputError(f"augment={self.augment}: name transformations of images or factors, not both")
        if not self.augment and not moving and self.noise == 0:
            raise InputError("noise=0 and nothing to augment by: all copies of an observation would be the same")
        unknown = [name for name in mixed if name not in [f.name for f in data.factors]]
        if unknown:
            known = ", ".join([*KINDS, *(f.name for f in data.factors)])
            raise InputError(
                f"augment: no transformation of images and no factor named {unknown[0]!r} (there are: {known})"
            )
        self.outlook_.append(self._moves(data.to("cpu")))

    def transformations(self) -> tuple[str, ...]:
        """Those of images that are asked for."""
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

    def loss(self, net: Any, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        y, log_det = net.flow(self.shaped(self.augmented(batch), batch["eps"]))  # (n copies, d), (n copies,)
        sets = y.reshape(-1, self.copies, y.shape[1])  # (n, copies, d)
        mu = sets.mean(1, keepdim=True)
        variance = (sets - mu).square().mean(1, keepdim=True).clamp(min=LEAST)
        nats = 0.5 * ((sets - mu).square() / variance + variance.log() + math.log(2 * math.pi))
        mean = nats.sum(2).mean() - log_det.mean()  # Eq. 7
        return {"loss": mean / y.shape[1], "nats": mean}

    def augmented(self, batch: dict[str, Tensor]) -> Tensor:
        """The copies, moved."""
        x = batch["x"]
        if "theta" in batch:
            images = x if x.ndim == 4 else x[:, None]
            x = warp(images, batch["theta"]).reshape(x.shape)
        return x

    # After training ---------------------------------------------------------------------------------------------

    @torch.no_grad()
    def summarize(self, data: FactorData, rng: Generator) -> Tensor:
        x, eps = self._copies(data, max(100, min(SETS, MOST_COPIED // self.copies // prod(self.shape_))), rng)
        sets = self.outputs_and_volume(x, eps)[:, :-1].reshape(-1, self.copies, prod(self.shape_))
        y = self.outputs_with_noise(data, self.some(data, rng), rng)[:, :-1]
        chosen = y.std(0).argsort(descending=True)[: self.found(y).informative]
        self.rank_ = ways(sets[:, :, chosen])
        self.within_ = sets.std(1).median(0).values  # the usual deviation within a set, (features,)
        return y

    def _copies(self, data: FactorData, sets: int, rng: Generator) -> tuple[Tensor, Tensor]:
        """Some sets of copies, (sets * copies, *shape), and noise for them."""
        plan = self.plan(data, sets, rng)
        views = {k: data.render(v).float() for k, v in plan.views.items()}
        return self.augmented(views | plan.extras), self.sample_noise(sets, rng)["eps"]

    def encode(self, x: Tensor) -> Tensor:
        return self.outputs(x)[:, self.order_[: self.latent_dim_]]

    def decode(self, z: Tensor) -> Tensor:
        return self.pixels(self.filled(z))

    # Diagnosis --------------------------------------------------------------------------------------------------

    def _moves(self, data: FactorData) -> str:
        """Before training: in how many directions the copies of an observation differ, beyond the noise."""
        x, _ = self._copies(data, LOOKED_AT, Generator().manual_seed(0))
        sets = self.shaped(x).flatten(1).reshape(-1, self.copies, prod(self.shape_)).double()
        values = torch.linalg.svdvals(sets - sets.mean(1, keepdim=True))  # (sets, copies or features)
        least = max(float(self.noise), 1e-6) * self.copies**0.5
        count = int((values > MOVED * least).sum(1).double().median())
        most = min(self.copies - 1, sets.shape[2])
        text = f"The copies of an observation differ in {plural(count, 'direction')} more than by the noise"
        return f"{text} ({most} would be the most that {self.copies} copies can show)."

    def diagnose(self) -> list[str]:
        return [*self._room(), self._rank(), self._moved()]

    def _room(self) -> list[str]:
        n, features = self.n_informative_, len(self.order_)
        if 2 * n <= features:
            return []
        return [f"{n} informative variables want {2 * n} features (n k <= d), and there are {features}: no guarantee."]

    def _rank(self) -> str:
        """Condition (iii) of Theorem 1 as far as a sample shows it."""
        expected = 2 * self.n_informative_
        text = f"Means and deviations of the augmented sets vary in {self.rank_} of {expected} independent ways"
        if self.rank_ == expected:
            return f"{text}: the Jacobian of the coefficients has full row rank."
        return f"{text}: fewer than the theorem asks, or than {self.copies} copies can show."

    def _moved(self) -> str:
        if not self.augment and not self.transformations():
            return "Noise moves all directions alike, and tells no variables apart: name augmentations."
        within = self.within_
        usual = float(within[self.order_[self.n_informative_ :]].median()) if self.n_informative_ < len(within) else 0.0
        moved = [j + 1 for j, i in enumerate(self.informative_) if float(within[i]) > MOVED * usual]
        still = self.n_informative_ - len(moved)
        which = ", ".join(map(str, moved[:NAMED])) + (", ..." if len(moved) > NAMED else "")
        text = f"Augmentation moves {plural(len(moved), 'informative code')}{f' ({which})' if moved else ''}"
        if not still:
            return f"{text}, all there are."
        return f"{text}; the other {still} are found by the noise alone, which the theorem does not promise."


def ways(sets: Tensor) -> int:
    """In how many independent ways means and log-deviations of sets (n, copies, d) vary, beyond chance.

    Chance is independent between two halves of a set: what both have in common is not chance.
    """
    n = len(sets)
    if sets.shape[1] < 4:
        return 0  # a half of two copies is the least that has a deviation
    halves = [sets[:, start::2].double() for start in (0, 1)]
    a, b = (torch.cat([h.mean(1), h.std(1).clamp(min=1e-9).log()], 1) for h in halves)  # (n, 2 d)
    chance = ((a - b).std(0) / 2**0.5).clamp(min=1e-9)
    a, b = ((v - v.mean(0)) / chance for v in (a, b))
    common = (a.T @ b + b.T @ a) / (2 * n)
    return int((torch.linalg.eigvalsh(common) > BEYOND * (common.shape[0] / n) ** 0.5).sum())
