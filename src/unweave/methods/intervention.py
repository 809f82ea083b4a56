"""Disentanglement by intervention: features that can be exchanged one by one, even if factors are correlated."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Literal, final

import numpy as np
import torch
from torch import Generator, Tensor, nn
from torch.func import grad
from torch.nn import functional as F

from unweave.data.core import FactorData
from unweave.data.supervision import Plan
from unweave.methods.mixins import AutoencoderMixin
from unweave.methods.neural import Lane, Neural
from unweave.methods.translators import DIFFICULTIES, DiffMode, build_random_features
from unweave.nn.autoencoder import build_autoencoder, build_encoder
from unweave.nn.functional import apply_frozen, weighted_sum
from unweave.nn.spectral_norm import apply_spectral_norm
from unweave.training.adam import Adam
from unweave.utils.errors import InputError


@final
class InterventionAutoencoder(AutoencoderMixin, Neural):
    """Autoencoder whose features keep their meaning under interventions (2021, Eq. 3 and Algorithm 1). No labels.

    Minimizes `L_rec + lambda_in L_in + lambda_adv L_adv + lambda_diff L_diff`. An intervention takes the value of one
    feature from another observation. Works for correlated factors, since L_adv reweights what interventions make.

    Example:
        >>> import numpy as np
        >>> x = np.random.default_rng(0).normal(size=(50, 4))
        >>> InterventionAutoencoder(features=2, steps=2, layers=(8,), diff_mode="ridge").fit_transform(x).shape
        (50, 2)
    """

    name = "intervention-autoencoder"
    renamed = MappingProxyType(
        {
            "judges": "discriminator_hidden",
            "judge_widths": "discriminator_widths",
            "judge_slope": "discriminator_slope",
            "reweigh": "reweight",
            "through": "diff_mode",
        }
    )
    paper = "Unsupervised disentanglement learning by intervention (2021), Eq. 3 and Algorithm 1"

    latent_dim: int | Literal["auto"] = "auto"  # type: ignore[assignment]
    """Number of codes: features times feature_dim."""
    features: int | Literal["auto"] = "auto"
    """K_Z, number of features: ten, or as many as latent_dim allows."""
    feature_dim: int = 1
    """D_Z, codes of a feature."""
    lambda_in: Lane = 0.25
    """lambda_1, weight of L_in: an intervention can be undone."""
    lambda_adv: Lane = 10.0
    """lambda_2, weight of L_adv: after reweighting, decoded interventions look like reconstructions."""
    lambda_diff: Lane = 1.0
    """lambda_3, weight of L_diff: exchanging one value of a feature for another is easy to learn."""
    diff_after: float = 0.5
    """Share of the steps after which L_diff acts on the autoencoder; before, it only trains the translator."""
    adversary: Literal["minimax", "non-saturating"] = "non-saturating"
    """Form of L_adv for encoder and decoder: log(1 - D), or -log D, whose gradient does not vanish."""
    diff_mode: DiffMode = "data"
    """Translator of L_diff. 'data', 'steps': a network after a few steps, Algorithm 1; the gradient goes through the
    image pairs only, or through the steps too. 'persistent': a network that knows the exchange, trained all along.
    'ridge': ridge regression between pixels, which is best in our studies. 'random-features': of the change on features
    of a fixed random network. 'off': no L_diff."""
    inner_steps: int = 3
    """s, gradient steps of the translator on the pairs of a batch."""
    inner_lr: Lane = 1e-3
    """alpha, learning rate of these steps."""
    lr: Lane = 1e-4
    """Learning rate of Adam, except for the weight network."""
    weight_lr: Lane = 1e-5
    """Learning rate of the weight network."""
    hidden: tuple[int, ...] = (128,)
    """Fully connected layers between the convolutions and the codes."""
    discriminator_hidden: tuple[int, ...] = (128,)
    """Fully connected layers of discriminator and weight network after their convolutions."""
    discriminator_widths: tuple[int, ...] = ()
    """Channels of their convolutions; empty: as in the encoder."""
    discriminator_slope: float = 0.0
    """Slope of their activations below zero; 0 is ReLU."""
    discriminator_norm: Literal["none", "spectral"] = "none"
    """'spectral': divide the discriminator's weights by their largest singular value; Miyato et al. (2018)."""
    gradient_penalty: float = 0.0
    """gamma of R1 = gamma / 2 E |grad D|^2 on real images, D in logits; Mescheder et al. (2018), Eq. 9. 0: none."""
    reweight: bool = True
    """Whether W weighs decoded interventions; without weights L_adv enforces independent features."""
    translator: int = 128
    """Codes of an image inside the translator, or hidden units of a random network for data without axes."""

    # Settings ---------------------------------------------------------------------------------------------------

    def prepare(self, data: FactorData) -> None:
        if self.batch_size < 2:
            raise InputError("batch_size=1: an intervention takes a value from another observation of the batch")
        if self.inner_steps < 1:
            raise InputError(f"inner_steps={self.inner_steps}: expected at least 1; diff_mode='off' leaves L_diff out")
        if not 0 <= self.diff_after <= 1:
            raise InputError(f"diff_after={self.diff_after}: expected a share of the steps, from 0 to 1")
        self.latent_dim_ = self.count_features() * self.feature_dim

    def count_features(self) -> int:
        """Return K_Z from `features` or `latent_dim`, whichever is set."""
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
        return np.arange(self.count_features() * self.feature_dim).reshape(-1, self.feature_dim).tolist()

    def build(self, shape: tuple[int, ...]) -> nn.Module:
        codes, sizes = self.count_features() * self.feature_dim, self.layer_sizes()
        net = self.make_autoencoder(shape, codes, codes)
        widths = self.discriminator_widths or self.widths
        own_sizes = sizes._replace(hidden=self.discriminator_hidden, widths=widths)
        net.discriminator, net.weight = (
            build_encoder(shape, 1, own_sizes, slope=self.discriminator_slope) for _ in range(2)
        )
        if self.discriminator_norm == "spectral":
            net.discriminator = apply_spectral_norm(net.discriminator)
        if self.diff_mode in ("data", "steps", "persistent"):
            extra = 3 * codes if self.diff_mode == "persistent" else 0
            inner = build_autoencoder(shape, self.translator, self.translator + extra, sizes)
            net.translator = nn.Sequential(inner.encoder, inner.decoder)
        if self.diff_mode == "random-features":
            net.random = build_random_features(shape, sizes._replace(hidden=(), layers=(self.translator,)))
        return net

    def optimizers(self) -> dict[str, Adam]:
        return {"": Adam(self.lr), "weight.": Adam(self.weight_lr)}

    def plan(self, data: FactorData, n: int, rng: Generator) -> Plan:
        return Plan({"x": data.sample(n, rng), "x_r": data.sample(n, rng)})

    def is_cacheable(self) -> bool:
        return True

    def sample_noise(self, n: int, rng: Generator) -> dict[str, Tensor]:
        return {"k": torch.randint(self.count_features(), (n,), generator=rng, device=rng.device)}

    # Eq. 3 ------------------------------------------------------------------------------------------------------

    def loss(self, net: Any, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """Compute Eq. 3: L_rec + lambda_in L_in + lambda_adv L_adv + lambda_diff L_diff, and the loss of D."""
        x, k = batch["x"], batch["k"]
        z, z_r = net.encoder(torch.cat([x, batch["x_r"]])).chunk(2)  # (n, K D) each
        mask = self.feature_mask(k, z)
        out, out_1 = net.decoder(torch.cat([z, torch.where(mask, z_r, z)])).chunk(2)  # intervention 1: Z_k = z_k^r
        x_1 = self.decoder_mean(out_1)
        z_1 = net.encoder(x_1)
        rec = self.reconstruction_loss(x, out).mean()
        undone = net.decoder(torch.where(mask, z, z_1))  # intervention 2: Z_k = z_k again
        adv, critic = self.adversarial_losses(net, self.decoder_mean(out).detach(), x_1)
        terms = {
            "rec": (1, rec),
            "in": (self.lambda_in, self.reconstruction_loss(x, undone).mean()),
            "adv": (self.lambda_adv, adv),
            "critic": (1, critic),
        }
        if self.diff_mode != "off":
            weight = self.lambda_diff * (batch["progress"] >= self.diff_after)
            difficulty = DIFFICULTIES[self.diff_mode]
            terms["diff"] = 1, difficulty(self, net, z, z_r, self.feature_mask(k[:1], z), weight)
        if self.gradient_penalty:
            terms["penalty"] = self.gradient_penalty, squared_slope(net.discriminator, self.decoder_mean(out).detach())
        return weighted_sum(terms)

    def feature_mask(self, k: Tensor, z: Tensor) -> Tensor:
        """Return which codes belong to feature k, (n,) -> (n, K D)."""
        return torch.arange(z.shape[1], device=z.device) // self.feature_dim == k[:, None]

    def adversarial_losses(self, net: Any, real: Tensor, x_1: Tensor) -> tuple[Tensor, Tensor]:
        """Return L_adv for autoencoder and weight network, and the discriminator's loss, which maximizes it.

        Reconstructions are the real images, and L_adv has no gradient to them. So E[log D(x)] is a constant for all
        but the discriminator, and stands in its loss only.
        """
        minimax = self.adversary == "minimax"
        log_w = net.weight(x_1 if minimax else x_1.detach())[:, 0].float()
        w = len(x_1) * torch.softmax(log_w if self.reweight else 0 * log_w, 0)  # W / N
        logits = apply_frozen(net.discriminator, x_1)[:, 0]  # log D / (1 - D)
        if minimax:
            adv = -(w * F.softplus(logits)).mean()
        else:  # the weights still weigh log(1 - D): with -log D they would favor unrealistic images
            weights = -(w * F.softplus(logits.detach())).mean()
            adv = (w.detach() * F.softplus(-logits)).mean() + (weights - weights.detach())
        real_logits, fake_logits = net.discriminator(torch.cat([real, x_1.detach()]))[:, 0].chunk(2)
        return adv, F.softplus(-real_logits).mean() + (w.detach() * F.softplus(fake_logits)).mean()

    def encode(self, x: Tensor) -> Tensor:
        return self.apply_network(lambda net, rows: net.encoder(rows), x)


def squared_slope(discriminator: Any, x: Tensor) -> Tensor:
    """Return half the mean squared norm of the gradient of a discriminator's logits at images, (n, ...): a scalar."""
    slope = grad(lambda images: discriminator(images).float().sum())(x)
    return slope.square().flatten(1).sum(1).mean() / 2
