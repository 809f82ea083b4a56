"""InfoGAN-CR: a GAN whose codes can be predicted from images, with a contrastive regularizer on pairs."""

from __future__ import annotations

from typing import Any, final

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from unweave.data.core import FactorData
from unweave.methods.mixins import AutoencoderMixin
from unweave.methods.neural import Lane, Neural
from unweave.nn.autoencoder import build_autoencoder, build_encoder, is_user_network
from unweave.nn.batch_norm import BatchNormNetwork
from unweave.nn.functional import apply_frozen
from unweave.nn.spectral_norm import apply_spectral_norm
from unweave.training.adam import Adam
from unweave.utils.errors import InputError

BETAS = (0.5, 0.999)
SLOPE = 0.2  # of all activations below zero
CALIBRATION_SAMPLES = 512  # latents whose statistics fix the generator's batch normalization after training
ROUNDING = 1e-4  # added to the progress, so that rounding does not delay a stage by a step


class GAN(nn.Module):
    """Generator (decoder), the trunk of discriminator and encoder (body), their heads, and the pair classifier."""

    def __init__(self, decoder: BatchNormNetwork, body: nn.Module, pairs: nn.Module, width: int, codes: int) -> None:
        super().__init__()
        self.decoder, self.body = decoder, apply_spectral_norm(nn.Sequential(body, nn.LeakyReLU(SLOPE)))
        self.real = apply_spectral_norm(nn.Linear(width, 1))
        self.q = apply_spectral_norm(
            nn.Sequential(nn.Linear(width, width), nn.LeakyReLU(SLOPE), nn.Linear(width, codes))
        )
        self.pairs = nn.Sequential(apply_spectral_norm(pairs), nn.LeakyReLU(SLOPE), nn.Linear(width, codes))


@final
class InfoGANCR(AutoencoderMixin, Neural):
    """InfoGAN-CR (Lin et al., 2020, Eqs. 2 to 4): a GAN with interpretable codes. No labels.

    The generator minimizes `-log D(G(c)) - info log Q(c | G(c)) + contrast CE`. Q predicts the codes c of an image; CE
    is the cross-entropy of a classifier that predicts which code a pair of images shares.

    Example:
        >>> import numpy as np
        >>> x = np.random.default_rng(0).normal(size=(50, 4))
        >>> InfoGANCR(latent_dim=2, steps=2, batch_size=16, layers=(8,)).fit_transform(x).shape
        (50, 2)
    """

    name = "infogan-cr"
    aliases = ("info-gancr",)
    paper = "Lin, Thekumparampil, Fanti and Oh (2020), Eqs. 2 to 4 and Sec. 3.1"

    latent_dim: int = 5
    """c, the codes that are predicted from images, uniform on [-1, 1]."""
    noise_dim: int = 5
    """z, further uniform inputs of the generator, which are not predicted."""
    info: Lane = 0.05
    """lambda, weight of -log Q(c | x), where Q is Gaussian with variance one."""
    contrast: Lane = 2.0
    """alpha, final weight of the contrastive regularizer."""
    contrast_after: float = 0.6
    """Share of the steps after which the regularizer acts; the authors' code: 288,000 of 322,560."""
    gap: float = 1.9
    """Initial minimum difference of the codes that a pair does not share."""
    gap_stages: int = 10
    """Number of equal stages in which the gap falls to 0 while the regularizer acts."""
    lr: Lane = 1e-3
    """Learning rate of Adam, of all networks; its betas are 0.5 and 0.999."""
    hidden: tuple[int, ...] = (128,)
    """Fully connected layers between the convolutions and the codes."""

    def build(self, shape: tuple[int, ...]) -> nn.Module:
        width, sizes = (self.hidden or (128,))[-1], self.layer_sizes()
        # The encoder of this pair is unused; it is built since the seeds of recorded runs include it.
        decoder = build_autoencoder(shape, 1, self.latent_dim + self.noise_dim, sizes, slope=SLOPE).decoder
        trunk = sizes._replace(hidden=self.hidden[:-1])
        body = build_encoder(shape, width, trunk, slope=SLOPE)
        pairs = build_encoder((2 * shape[0], *shape[1:]), width, trunk, slope=SLOPE)
        # Without batch normalization all images of the generator become alike, and the discriminator wins.
        return GAN(BatchNormNetwork(decoder), body, pairs, width, self.latent_dim)

    def prepare(self, data: FactorData) -> None:
        if any(map(is_user_network, (self.encoder, self.decoder, self.network))):
            raise InputError("infogan-cr builds its own networks: leave out encoder, decoder and network='mine.py:...'")
        if self.latent_dim < 2:
            raise InputError(
                "latent_dim=1: with one code, pairs of images cannot share one and differ in another; expected two"
            )
        if self.batch_size < 2:
            raise InputError("batch_size=1: the generator is normalized by the others of its batch; expected two")
        if not 0 <= self.contrast_after <= 1:
            raise InputError(f"contrast_after={self.contrast_after}: expected a share of the steps, from 0 to 1")
        if not 0 <= self.gap < 2 or self.gap_stages < 1 or self.noise_dim < 0:
            text = f"gap={self.gap}, gap_stages={self.gap_stages}, noise_dim={self.noise_dim}"
            raise InputError(f"{text}: expected a gap in [0, 2), at least one stage, and no negative dimension")

    def optimizers(self) -> dict[str, Adam]:
        return {"": Adam(self.lr, BETAS)}

    def after_training(self, data: FactorData) -> None:
        """Fix the statistics of the generator's batch normalization."""
        net: Any = self.net_
        net.decoder.freeze_statistics(self.sample_noise(CALIBRATION_SAMPLES, Generator().manual_seed(self.seed))["c"])

    def sample_noise(self, n: int, rng: Generator) -> dict[str, Tensor]:
        def uniform(*shape: int) -> Tensor:
            return torch.rand(shape, generator=rng, device=rng.device)

        d = self.latent_dim
        k = torch.randint(d, (n,), generator=rng, device=rng.device)
        return {"c": 2 * uniform(n, d + self.noise_dim) - 1, "k": k, "one": uniform(n, d), "other": uniform(n, d),
                "rest": 2 * uniform(n, self.noise_dim) - 1}  # fmt: skip

    def loss(self, net: Any, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """Compute Eqs. 2 to 4 for the generator, and the same three losses for the other networks."""
        x, c, k, progress = batch["x"], batch["c"], batch["k"], batch["progress"]
        # Pairs with a gap are not typical latents: they are normalized by the statistics of the others.
        images = self.decoder_mean(net.decoder(torch.cat([c, self.sample_pairs(batch, progress)]), rows=len(c)))
        fake, first, second = images.chunk(3)
        codes, pair = c[:, : self.latent_dim], torch.cat([first, second], 1)

        # The generator: images look real, their codes can be predicted, and pairs show which code they share.
        h = apply_frozen(net.body, fake)
        fool = F.softplus(-apply_frozen(net.real, h)).mean()  # -log D(G(c, z))
        info = 0.5 * (apply_frozen(net.q, h) - codes).square().sum(1).mean()  # -log Q(c | G(c, z))
        contrast = F.cross_entropy(apply_frozen(net.pairs, pair), k)
        is_active = (progress + ROUNDING >= self.contrast_after).float()
        generator = fool + self.info * info + is_active * self.contrast * contrast

        # Discriminator, Q and pair classifier, with no gradient to the generator.
        h = net.body(torch.cat([x, fake.detach()]))
        real_logits, fake_logits = net.real(h).chunk(2)
        discriminator = F.softplus(-real_logits).mean() + F.softplus(fake_logits).mean()
        q_loss = 0.5 * (net.q(h[len(x) :]) - codes).square().sum(1).mean()
        pair_loss = F.cross_entropy(net.pairs(pair.detach()), k)
        return {
            "loss": generator + discriminator + self.info * q_loss + pair_loss,
            "fool": fool, "info": info, "contrast": contrast, "discriminator": discriminator,
        }  # fmt: skip

    def sample_pairs(self, batch: dict[str, Tensor], progress: Tensor) -> Tensor:
        """Return latents of pairs, (2 n, d + noise_dim), that share code k and the noise.

        Their other codes differ by at least the gap, which falls in stages.
        """
        remaining = max(1 - self.contrast_after, 1e-9)
        stage = (progress - self.contrast_after) / remaining * (self.gap_stages + 1) + ROUNDING
        gap = self.gap * (1 - stage.floor().clamp(0, self.gap_stages) / self.gap_stages)
        one, other = ((2 - gap) * batch[name] - (1 - gap / 2) for name in ("one", "other"))  # leaves room for the gap
        sign = torch.where(one > other, 1.0, -1.0)
        shared = torch.arange(self.latent_dim, device=one.device) == batch["k"][:, None]
        common = 2 * batch["one"] - 1
        a = torch.where(shared, common, one + sign * gap / 2)
        b = torch.where(shared, common, other - sign * gap / 2)
        return torch.cat([torch.cat([a, b]), batch["rest"].repeat(2, 1)], 1)

    def encode(self, x: Tensor) -> Tensor:
        return self.apply_network(lambda net, rows: net.q(net.body(rows)), x)

    def decode(self, z: Tensor) -> Tensor:
        """Return images of codes, with the noise at zero."""
        noise = z.new_zeros(len(z), self.noise_dim)
        return super().decode(torch.cat([z, noise], 1))
