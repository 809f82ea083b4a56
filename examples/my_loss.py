"""A method with a loss of your own in one file.

unweave fit examples/my_loss.py:SparseAutoencoder squares-xy --steps 500
"""

from math import prod
from typing import Any

from torch import Tensor, nn

from unweave import Lane, Neural


class SparseAutoencoder(Neural):
    """Autoencoder with an L1 penalty on its codes."""

    paper = "none"

    sparsity: Lane = 0.1
    """Weight of the L1 penalty. A lane: models with different weights train in one pack."""

    def build(self, shape: tuple[int, ...]) -> nn.Module:
        """Return encoder and decoder for observations of this shape."""
        features = prod(shape)
        encoder = nn.Sequential(nn.Flatten(), nn.Linear(features, 64), nn.ReLU(), nn.Linear(64, self.latent_dim))
        decoder = nn.Sequential(nn.Linear(self.latent_dim, 64), nn.ReLU(), nn.Linear(64, features))
        return nn.ModuleDict({"encoder": encoder, "decoder": nn.Sequential(decoder, nn.Unflatten(1, shape))})

    def loss(self, net: Any, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the loss and its terms, each a scalar."""
        x = batch["x"]
        z = net["encoder"](x)
        rec = (net["decoder"](z) - x).square().flatten(1).sum(1).mean()
        sparse = z.abs().sum(1).mean()
        return {"loss": rec + self.sparsity * sparse, "rec": rec, "sparse": sparse}

    def encode(self, x: Tensor) -> Tensor:
        """Return codes, (n, latent_dim)."""
        return self.apply_network(lambda net, part: net["encoder"](part), x)

    def decode(self, z: Tensor) -> Tensor:
        """Return reconstructions, (n, *shape)."""
        return self.apply_network(lambda net, part: net["decoder"](part), z)
