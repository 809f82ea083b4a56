"""A network of one's own, in one file: `unweave fit docs/my_network.py:SparseAutoencoder squares-xy --steps 500`."""

from typing import Any

import torch
from torch import Tensor, nn

from unweave import Lane, Neural


class SparseAutoencoder(Neural):
    """An autoencoder whose codes are pulled towards zero one by one."""

    paper = "none"

    sparsity: Lane = 0.1
    """weight of the codes' absolute values; a lane: models with different weights train in one pack"""

    def build(self, shape: tuple[int, ...]) -> nn.Module:
        features = int(torch.tensor(shape).prod())
        encoder = nn.Sequential(nn.Flatten(), nn.Linear(features, 64), nn.ReLU(), nn.Linear(64, self.latent_dim))
        decoder = nn.Sequential(nn.Linear(self.latent_dim, 64), nn.ReLU(), nn.Linear(64, features))
        return nn.ModuleDict({"encoder": encoder, "decoder": nn.Sequential(decoder, nn.Unflatten(1, shape))})

    def loss(self, net: Any, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        x = batch["x"]
        z = net["encoder"](x)
        rec = (net["decoder"](z) - x).square().flatten(1).sum(1).mean()
        sparse = z.abs().sum(1).mean()
        return {"loss": rec + self.sparsity * sparse, "rec": rec, "sparse": sparse}

    def encode(self, x: Tensor) -> Tensor:
        return self.apply_network(lambda net, part: net["encoder"](part), x)

    def decode(self, z: Tensor) -> Tensor:
        return self.apply_network(lambda net, part: net["decoder"](part), z)
