"""Self-supervised GIN: augmentations instead of labels."""

from __future__ import annotations

import math
from typing import Any, final

import torch
from torch import Generator, Tensor

from ..augment import KINDS, warp
from ..data import FactorData
from ..errors import InputError, plural
from ..supervision import Plan, augmented, single, transformed
from ._flow import FlowMethod

LEAST = 1e-12  # a variance below this is rounding
SETS = 1_000  # of copies, that are looked at after training
MOVED = 3.0  # times the usual deviation within a set, from which on augmentation moves a code
NAMED = 12  # codes in a sentence
RANK = 0.03  # of the largest singular value, below which a direction is not one


@final
class SelfSupervisedGIN(FlowMethod):
    """Self-supervised GIN: every observation is the label of its own augmented copies.

    The copies of one observation have means and deviations of their own along every latent variable, which are taken
    from themselves. Subclass and write `plan` for augmentations of your own: the copies of one observation must stand
    together.
    """

    paper = "Self-supervised Disentangled Representation Learning (2021), Eq. 7"
    needs = "augmentations"

    augment: tuple[str, ...] = ()
    """what copies differ in: transformations of images (translation, rotation, scaling), or the names of factors along
    which synthetic data are moved; none named: all transformations of images, and the noise alone for anything else"""
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

    def transformations(self) -> tuple[str, ...]:
        """Those of images that are asked for."""
        if not self.augment:
            return KINDS if len(self.shape_) in (2, 3) else ()
        return tuple(name for name in self.augment if name in KINDS)

    def stays(self) -> bool:
        return not self.augment or bool(self.transformations())

    def plan(self, data: FactorData, n: int, rng: Generator) -> Plan:
        if kinds := self.transformations():
            plan = transformed(data, n, rng, kinds=kinds, copies=self.copies)
            return Plan(plan.views, {"theta": plan.given["theta"]})
        if self.augment:
            return Plan(augmented(data, n, rng, along=self.augment, copies=self.copies, spread=self.spread).views)
        return Plan({"x": single(data, n, rng).views["x"].repeat_interleave(self.copies, 0)})

    def draws(self, n: int, rng: Generator) -> dict[str, Tensor]:
        return {"eps": torch.randn(n * self.copies, *self.shape_, generator=rng, device=rng.device)}

    def loss(self, net: Any, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        y, log_det = net.flow(self.augmented(batch))  # (n copies, d), (n copies,)
        sets = y.reshape(-1, self.copies, y.shape[1])  # (n, copies, d)
        mu = sets.mean(1, keepdim=True)
        variance = (sets - mu).square().mean(1, keepdim=True).clamp(min=LEAST)
        nats = 0.5 * ((sets - mu).square() / variance + variance.log() + math.log(2 * math.pi))
        mean = nats.sum(2).mean() - log_det.mean()  # Eq. 7
        return {"loss": mean / y.shape[1], "nats": mean}

    def augmented(self, batch: dict[str, Tensor]) -> Tensor:
        """The copies, moved and with noise, as the flow takes them."""
        x = batch["x"]
        if "theta" in batch:
            images = x if x.ndim == 4 else x[:, None]
            x = warp(images, batch["theta"]).reshape(x.shape)
        return self.shaped(x + self.noise * batch["eps"])

    # After training ---------------------------------------------------------------------------------------------

    @torch.no_grad()
    def summarise(self, data: FactorData, rng: Generator) -> Tensor:
        plan = self.plan(data, SETS, rng)
        batch = {k: data.render(v).float() for k, v in plan.views.items()} | plan.given | self.draws(SETS, rng)
        copies = self.augmented(batch).reshape(-1, *self.shape_)
        sets = self.outputs(copies).reshape(SETS, self.copies, -1)
        self.set_means_, self.set_deviations_ = sets.mean(1), sets.std(1)  # (sets, features)
        return self.outputs(self.observe(data, rng)[1])

    def encode(self, x: Tensor) -> Tensor:
        return self.outputs(x)[:, self.order_[: self.latent_dim_]]

    def decode(self, z: Tensor) -> Tensor:
        return self.pixels(self.filled(z))

    # Diagnosis --------------------------------------------------------------------------------------------------

    def diagnose(self, y: Tensor) -> list[str]:
        return [*self._room(), self._rank(), self._moved()]

    def _room(self) -> list[str]:
        n, features = self.n_informative_, len(self.order_)
        if 2 * n <= features:
            return []
        return [f"{n} informative variables want {2 * n} features (n k <= d), and there are {features}: no guarantee."]

    def _rank(self) -> str:
        """Condition (iii) of Theorem 1 as far as a sample shows it: in how many ways the sets' coefficients vary."""
        chosen = self.informative_
        wanted = 2 * len(chosen)
        coefficients = torch.cat([self.set_means_[:, chosen], self.set_deviations_[:, chosen].clamp(min=1e-9).log()], 1)
        scaled = (coefficients - coefficients.mean(0)) / coefficients.std(0).clamp(min=1e-9)
        values = torch.linalg.svdvals(scaled.double())
        rank = int((values > RANK * values[0]).sum())
        text = f"Means and deviations of the augmented sets vary in {rank} of {wanted} independent ways"
        return (
            f"{text}, so the Jacobian has full row rank." if rank == wanted else f"{text}: fewer than the theorem asks."
        )

    def _moved(self) -> str:
        if not self.augment and not self.transformations():
            return (
                "Noise moves all directions alike: nothing but volumes tells the variables apart. Name augmentations."
            )
        within = self.set_deviations_.median(0).values  # (features,)
        usual = float(within[self.order_[self.n_informative_ :]].median()) if self.n_informative_ < len(within) else 0.0
        moved = [j + 1 for j, i in enumerate(self.informative_) if float(within[i]) > MOVED * usual]
        still = self.n_informative_ - len(moved)
        which = ", ".join(map(str, moved[:NAMED])) + (", ..." if len(moved) > NAMED else "")
        text = f"Augmentation moves {plural(len(moved), 'informative code')}{f' ({which})' if moved else ''}"
        if not still:
            return f"{text}, all there are."
        return f"{text}; the other {still} are found by the noise alone, which the theorem does not promise."
