"""InfoGAN-CR: a generator whose codes can be read off its images, and told apart by what they change."""

from __future__ import annotations

from typing import Any, final

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from unweave.data.core import FactorData
from unweave.methods._autoencoding import Autoencoding
from unweave.methods.neural import Lane
from unweave.nn.batch_norm import BatchNormNetwork
from unweave.nn.functional import apply_frozen
from unweave.nn.spectral_norm import apply_spectral_norm
from unweave.training.adam import Adam
from unweave.utils.errors import InputError

BETAS = (0.5, 0.999)
SLOPE = 0.2  # of the judges' activations below zero
USUAL = 512  # latents by whose means and variances the generator is normalized once it has learned
SLACK = 1e-4  # stages begin where they should in spite of rounding


class GAN(nn.Module):
    """Generator (decoder), the body that discriminator and encoder share, their heads, and the pair classifier."""

    def __init__(self, decoder: BatchNormNetwork, body: nn.Module, pairs: nn.Module, width: int, codes: int) -> None:
        super().__init__()
        self.decoder, self.body = decoder, apply_spectral_norm(nn.Sequential(body, nn.LeakyReLU(SLOPE)))
        self.real = apply_spectral_norm(nn.Linear(width, 1))
        self.q = apply_spectral_norm(
            nn.Sequential(nn.Linear(width, width), nn.LeakyReLU(SLOPE), nn.Linear(width, codes))
        )
        self.pairs = nn.Sequential(apply_spectral_norm(pairs), nn.LeakyReLU(SLOPE), nn.Linear(width, codes))


@final
class InfoGANCR(Autoencoding):
    """InfoGAN-CR: no labels; codes are read off generated images, and a pair of images tells which code it shares."""

    name = "infogan-cr"
    aliases = ("info-gancr",)
    paper = "Lin, Thekumparampil, Fanti and Oh (2020), Eqs. 2 to 4 and Sec. 3.1"

    latent_dim: int = 5
    """c, the codes that are read off again, uniform on [-1, 1]"""
    noise_dim: int = 5
    """z, further uniform numbers that the generator is given and nobody asks for"""
    info: Lane = 0.05
    """lambda, weight of -log Q(c | x), Q a Gaussian with variance one"""
    contrast: Lane = 2.0
    """alpha, weight of the contrastive regularizer once it acts"""
    contrast_after: float = 0.6
    """share of the steps after which it acts; the authors' code: 288,000 of 322,560"""
    gap: float = 1.9
    """least difference, at first, of the codes that a pair does not share"""
    gap_stages: int = 10
    """equal stages in which the gap falls to 0 while the regularizer acts"""
    lr: Lane = 1e-3
    """Adam's learning rate, of all players; betas 0.5 and 0.999"""
    hidden: tuple[int, ...] = (128,)
    """fully connected layers between the convolutions and the codes"""

    def build(self, shape: tuple[int, ...]) -> nn.Module:
        width = (self.hidden or (128,))[-1]
        decoder = self.coder(shape, 1, latent=self.latent_dim + self.noise_dim, slope=SLOPE).decoder
        body = self.judge(shape, self.hidden[:-1], out=width, slope=SLOPE)
        pairs = self.judge((2 * shape[0], *shape[1:]), self.hidden[:-1], out=width, slope=SLOPE)
        # Without normalization all images of the generator become alike, and the discriminator has won.
        return GAN(BatchNormNetwork(decoder), body, pairs, width, self.latent_dim)

    def prepare(self, data: FactorData) -> None:
        if self.latent_dim < 2:
            raise InputError("latent_dim=1: a pair of images cannot tell which of one code it shares; expected two")
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
        net: Any = self.net_
        net.decoder.freeze_statistics(self.sample_noise(USUAL, Generator().manual_seed(self.seed))["c"])

    def sample_noise(self, n: int, rng: Generator) -> dict[str, Tensor]:
        def uniform(*shape: int) -> Tensor:
            return torch.rand(shape, generator=rng, device=rng.device)

        d = self.latent_dim
        k = torch.randint(d, (n,), generator=rng, device=rng.device)
        return {"c": 2 * uniform(n, d + self.noise_dim) - 1, "k": k, "one": uniform(n, d), "other": uniform(n, d),
                "rest": 2 * uniform(n, self.noise_dim) - 1}  # fmt: skip

    def loss(self, net: Any, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        x, c, k, progress = batch["x"], batch["c"], batch["k"], batch["progress"]
        # Pairs far apart are not usual ones: they are drawn by the means and variances of the others.
        images = self.mean(net.decoder(torch.cat([c, self.couples(batch, progress)]), rows=len(c)))
        fake, first, second = images.chunk(3)
        codes = c[:, : self.latent_dim]

        # The generator: it wants to be taken for real, its codes to be read off, and pairs to tell what they share.
        h = apply_frozen(net.body, fake)
        fool = F.softplus(-apply_frozen(net.real, h)).mean()
        info = 0.5 * (apply_frozen(net.q, h) - codes).square().sum(1).mean()  # -log Q(c | G(c, z))
        acts = (progress + SLACK >= self.contrast_after).float()
        pair = torch.cat([first, second], 1)
        contrast = F.cross_entropy(apply_frozen(net.pairs, pair), k)

        # The discriminators: the same three from the other side.
        h = net.body(torch.cat([x, fake.detach()]))
        yes, no = net.real(h).chunk(2)
        told = F.softplus(-yes).mean() + F.softplus(no).mean()
        read = 0.5 * (net.q(h[len(x) :]) - codes).square().sum(1).mean()
        tell = F.cross_entropy(net.pairs(pair.detach()), k)
        generator = fool + self.info * info + acts * self.contrast * contrast
        return {
            "loss": generator + told + self.info * read + tell,
            "fool": fool, "info": info, "contrast": contrast, "discriminator": told,
        }  # fmt: skip

    def couples(self, batch: dict[str, Tensor], progress: Tensor) -> Tensor:
        """Latents of pairs that share code k and the noise, other codes being a gap apart, (2 n, d + noise)."""
        room = max(1 - self.contrast_after, 1e-9)
        done = (
            ((progress - self.contrast_after) / room * (self.gap_stages + 1) + SLACK).floor().clamp(0, self.gap_stages)
        )
        gap = self.gap * (1 - done / self.gap_stages)
        one, other = ((2 - gap) * batch[name] - (1 - gap / 2) for name in ("one", "other"))  # inside by half the gap
        sign = torch.where(one > other, 1.0, -1.0)
        shares = torch.arange(self.latent_dim, device=one.device) == batch["k"][:, None]
        same = 2 * batch["one"] - 1
        a = torch.where(shares, same, one + sign * gap / 2)
        b = torch.where(shares, same, other - sign * gap / 2)
        return torch.cat([torch.cat([a, b]), batch["rest"].repeat(2, 1)], 1)

    def encode(self, x: Tensor) -> Tensor:
        return self.apply_network(lambda net, part: net.q(net.body(part)), x)

    def decode(self, z: Tensor) -> Tensor:
        """With all that nobody asked for at zero."""
        still = z.new_zeros(len(z), self.noise_dim)
        return self.mean(self.apply_network(lambda net, part: net.decoder(part), torch.cat([z, still], 1)))
