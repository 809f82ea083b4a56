"""Disentanglement by intervention: features that can be exchanged one by one, even where factors are correlated."""

from __future__ import annotations

from typing import Any, Literal, final

import numpy as np
import torch
from torch import Generator, Tensor, nn
from torch.func import functional_call, grad
from torch.nn import functional as F

from unweave.data.core import FactorData
from unweave.data.supervision import Plan
from unweave.methods._autoencoding import Autoencoding
from unweave.methods.neural import Lane
from unweave.methods.vae.base import weighed
from unweave.nn.functional import apply_frozen, scale_gradient
from unweave.training.adam import Adam, clip_gradients
from unweave.utils.errors import InputError

RIDGE = 0.01  # strength of a linear translator's regularization, in mean squares of an image's deviation
EDGE = 1e-3  # what it makes is cut to probabilities, by so much away from 0 and 1
STEEPEST = 100.0  # norm to which the translator's gradients are cut, nats per image being large numbers


@final
class InterventionAutoencoder(Autoencoding):
    """Intervention autoencoder: no labels; features keep their meaning when one comes from another observation."""

    name = "intervention-autoencoder"
    paper = "Unsupervised disentanglement learning by intervention (2021), Eq. 3 and Algorithm 1"

    latent_dim: int | Literal["auto"] = "auto"  # type: ignore[assignment]
    """how many codes to learn: features times feature_dim"""
    features: int | Literal["auto"] = "auto"
    """K_Z, features to learn: ten, or as many as latent_dim asks for"""
    feature_dim: int = 1
    """D_Z, codes of a feature"""
    lambda_in: Lane = 0.25
    """weight of L_in: an intervention can be taken back"""
    lambda_adv: Lane = 10.0
    """weight of L_adv: what interventions make looks like what is reconstructed, after reweighting"""
    lambda_diff: Lane = 1.0
    """weight of L_diff: exchanging one value of a feature for another is easy to learn"""
    diff_after: float = 0.5
    """share of the steps after which L_diff acts on the autoencoder; until then it teaches the translator alone"""
    adversary: Literal["minimax", "non-saturating"] = "non-saturating"
    """what encoder and decoder minimize of L_adv: itself, or -log D where it has log(1 - D)"""
    through: Literal["data", "steps", "ridge", "off"] = "data"
    """L_diff is differentiated through the pairs alone, or through the translator's steps too; or the translator is a
    ridge regression, which needs no steps and does best in our studies; or there is no L_diff"""
    inner_steps: int = 3
    """s, steps of the translator on the pairs of a batch"""
    inner_lr: Lane = 1e-3
    """alpha, the learning rate of these"""
    lr: Lane = 1e-4
    """Adam's learning rate, of all but the weight network"""
    weight_lr: Lane = 1e-5
    """the weight network's"""
    hidden: tuple[int, ...] = (128,)
    """fully connected layers between the convolutions and the codes"""
    judges: tuple[int, ...] = (128,)
    """the same, of discriminator and weight network"""
    judge_widths: tuple[int, ...] = ()
    """channels of their convolutions; as the encoder's unless you say which"""
    judge_slope: float = 0.0
    """of their activations below zero; 0 is ReLU"""
    reweigh: bool = True
    """whether W weighs what interventions make; without it L_adv asks for independent features"""
    translator: int = 128
    """numbers that an image becomes inside the translator"""

    # Settings ---------------------------------------------------------------------------------------------------

    def prepare(self, data: FactorData) -> None:
        if self.batch_size < 2:
            raise InputError("batch_size=1: an intervention takes a value from another observation of the batch")
        if self.inner_steps < 1:
            raise InputError(f"inner_steps={self.inner_steps}: expected at least 1; through='off' leaves L_diff out")
        if not 0 <= self.diff_after <= 1:
            raise InputError(f"diff_after={self.diff_after}: expected a share of the steps, from 0 to 1")
        self.latent_dim_ = self.count() * self.feature_dim

    def count(self) -> int:
        """K_Z, by whichever of features and latent_dim is given."""
        d, k = self.feature_dim, self.features
        if d < 1 or self.translator < 1:
            raise InputError(f"feature_dim={d}, translator={self.translator}: expected at least 1")
        if k == "auto":
            k = 10 if self.latent_dim == "auto" else self.latent_dim // d
        if self.latent_dim not in ("auto", k * d):
            text = f"latent_dim={self.latent_dim} is not {k} features of {d}" if k else f"feature_dim={d}"
            raise InputError(f"{text}: leave latent_dim out, or make it features x feature_dim = {max(k, 2) * d}")
        if k < 2:
            raise InputError("one feature only: to exchange it is to exchange everything; expected at least two")
        return k

    def feature_groups(self) -> list[list[int]]:
        """Return the codes of each feature: `feature_dim` consecutive ones."""
        return np.arange(self.count() * self.feature_dim).reshape(-1, self.feature_dim).tolist()

    def build(self, shape: tuple[int, ...]) -> nn.Module:
        codes = self.count() * self.feature_dim
        net = self.coder(shape, codes, latent=codes)
        net.discriminator, net.weight = (self._judge(shape) for _ in range(2))
        if self.through in ("data", "steps"):
            inner = self.coder(shape, self.translator, latent=self.translator)
            net.translator = nn.Sequential(inner.encoder, inner.decoder)
        return net

    def _judge(self, shape: tuple[int, ...]) -> nn.Module:
        return self.judge(shape, self.judges, widths=self.judge_widths, slope=self.judge_slope)

    def optimizers(self) -> dict[str, Adam]:
        return {"": Adam(self.lr), "weight.": Adam(self.weight_lr)}

    def plan(self, data: FactorData, n: int, rng: Generator) -> Plan:
        return Plan({"x": data.sample(n, rng), "x_r": data.sample(n, rng)})

    def is_cacheable(self) -> bool:
        return True

    def sample_noise(self, n: int, rng: Generator) -> dict[str, Tensor]:
        return {"k": torch.randint(self.count(), (n,), generator=rng, device=rng.device)}

    # Eq. 3 ------------------------------------------------------------------------------------------------------

    def loss(self, net: Any, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        x, k = batch["x"], batch["k"]
        z, z_r = net.encoder(torch.cat([x, batch["x_r"]])).chunk(2)  # (n, K D) each
        own = self.of_feature(k, z)
        out, out_1 = net.decoder(torch.cat([z, torch.where(own, z_r, z)])).chunk(2)  # intervention 1: Z_k = z_k^r
        x_1 = self.mean(out_1)
        z_1 = net.encoder(x_1)
        rec = self.reconstruction(x, out).mean()
        back = self.reconstruction(x, net.decoder(torch.where(own, z, z_1))).mean()  # intervention 2: Z_k = z_k again
        adv, critic = self.adversarial(net, self.mean(out).detach(), x_1)
        terms = {"rec": (1, rec), "in": (self.lambda_in, back), "adv": (self.lambda_adv, adv), "critic": (1, critic)}
        if self.through != "off":
            weight = self.lambda_diff * (batch["progress"] >= self.diff_after)
            difficulty = self.difficulty_by_ridge if self.through == "ridge" else self.difficulty
            terms["diff"] = 1, difficulty(net, z, z_r, self.of_feature(k[:1], z), weight)
        return weighed(terms)

    def of_feature(self, k: Tensor, z: Tensor) -> Tensor:
        """Which codes are those of feature k, (n,) -> (n, K D)."""
        return torch.arange(z.shape[1], device=z.device) // self.feature_dim == k[:, None]

    def adversarial(self, net: Any, real: Tensor, x_1: Tensor) -> tuple[Tensor, Tensor]:
        """L_adv as the autoencoder and the weights see it, and as the discriminator does, which maximizes it.

        Real images are the reconstructions, which L_adv does not change.
        """
        literal = self.adversary == "minimax"
        log_w = net.weight(x_1 if literal else x_1.detach())[:, 0].float()
        w = len(x_1) * torch.softmax(log_w if self.reweigh else 0 * log_w, 0)  # W / N
        seen = apply_frozen(net.discriminator, x_1)[:, 0]  # log D / (1 - D)
        if literal:
            adv = -(w * F.softplus(seen)).mean()
        else:  # the weights still weigh log(1 - D): of -log D they would prefer what does not look real
            weights = -(w * F.softplus(seen.detach())).mean()
            adv = (w.detach() * F.softplus(-seen)).mean() + (weights - weights.detach())
        told = net.discriminator(torch.cat([real, x_1.detach()]))[:, 0]
        yes, no = told.chunk(2)
        return adv, F.softplus(-yes).mean() + (w.detach() * F.softplus(no)).mean()

    def difficulty(self, net: Any, z: Tensor, z_r: Tensor, own: Tensor, weight: Tensor) -> Tensor:
        """L_diff, Algorithm 1: what is left of the translation loss on fresh pairs after s steps on other pairs.

        Pairs differ in one feature, which is a in one image and b in the other; a and b are those of two observations.
        The translator starts from weights that are learned too, by the same loss; the weight of the loss is that of
        the gradient which reaches encoder and decoder.
        """
        a, b = z_r[:1], z_r[1:2]
        still = self.through == "data"
        decoder = (lambda c: apply_frozen(net.decoder, c.detach())) if still else net.decoder
        u, v = scale_gradient(self.mean(decoder(exchanged(z, a, b, own))), weight).chunk(2)
        first = dict(net.translator.named_parameters())
        theta = {name: p.detach() for name, p in first.items()} if still else first
        for _ in range(self.inner_steps):
            slope = clip_gradients(grad(self.translation)(theta, net.translator, u, v), STEEPEST, lane_axes=0)
            theta = {name: p - self.inner_lr * slope[name] for name, p in theta.items()}
        if still:  # to first order, the start moves with the end
            theta = {name: p.detach() + (first[name] - first[name].detach()) for name, p in theta.items()}
        u, v = scale_gradient(self.mean(net.decoder(exchanged(z_r, a, b, own))), weight).chunk(2)
        return self.translation(theta, net.translator, u, v)

    def difficulty_by_ridge(self, net: Any, z: Tensor, z_r: Tensor, own: Tensor, weight: Tensor) -> Tensor:
        """L_diff of the best linear translator: a network that has learned for a few steps may be no translator at all,
        and then the loss asks for images that need none. The entropy of images, which no one can avoid, is left out.
        """
        a, b = z_r[:1], z_r[1:2]
        u, v = scale_gradient(self.mean(net.decoder(exchanged(z, a, b, own))), weight).chunk(2)
        u_new, v_new = scale_gradient(self.mean(net.decoder(exchanged(z_r, a, b, own))), weight).chunk(2)
        told, exact = ridge(u, v, u_new), v_new
        if self.bernoulli():
            told, exact = torch.logit(told, EDGE), torch.logit(exact, EDGE)
        return (self.reconstruction(v_new, told) - self.reconstruction(v_new, exact)).mean()

    def translation(self, theta: dict[str, Tensor], translator: nn.Module, u: Tensor, v: Tensor) -> Tensor:
        """L_trans, Eq. 2."""
        return self.reconstruction(v, functional_call(translator, theta, (u,))).mean()

    def encode(self, x: Tensor) -> Tensor:
        return self.apply_network(lambda net, part: net.encoder(part), x)


def ridge(u: Tensor, v: Tensor, u_new: Tensor) -> Tensor:
    """Ridge regression from u to v, (n, ...) each, in its dual form, at u_new; in double precision."""
    U, V, T = (x.flatten(1).double() for x in (u, v, u_new))
    center, middle = U.mean(0), V.mean(0)
    U, T = U - center, T - center
    gram = U @ U.mT  # (n, n)
    strength = RIDGE * gram.diagonal().mean() + torch.finfo(torch.float32).tiny
    L, _ = torch.linalg.cholesky_ex(gram + strength * torch.eye(len(U), dtype=U.dtype, device=U.device))
    return ((T @ U.mT) @ torch.cholesky_solve(V - middle, L) + middle).to(u.dtype).reshape(u_new.shape)


def exchanged(z: Tensor, a: Tensor, b: Tensor, own: Tensor) -> Tensor:
    """Codes whose feature is a, and the same with b, (n, d) -> (2 n, d)."""
    return torch.cat([torch.where(own, a, z), torch.where(own, b, z)])
