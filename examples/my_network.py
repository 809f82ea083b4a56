"""A network of your own, for any method with an encoder.

In Python, modules may be passed as they are: BetaVAE(encoder=..., decoder=...).

unweave fit beta-vae squares-xy --network examples/my_network.py:build --steps 500
"""

from math import prod

from torch import nn


def build(shape: tuple[int, ...], latent_dim: int) -> tuple[nn.Module, nn.Module]:
    """Return an encoder (n, *shape) -> (n, any number) and a decoder (n, latent_dim) -> (n, *shape)."""
    features = prod(shape)
    encoder = nn.Sequential(nn.Flatten(), nn.Linear(features, 64), nn.LayerNorm(64), nn.SiLU())
    decoder = nn.Sequential(nn.Linear(latent_dim, 64), nn.SiLU(), nn.Linear(64, features))
    return encoder, decoder
