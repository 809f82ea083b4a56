"""Small data, networks and batches for the tests of losses."""

import numpy as np
import torch

from unweave.data.conversion import as_data
from unweave.methods.vae.base import posterior

N, D = 8, 3
TABLE = as_data(np.random.default_rng(0).normal(size=(50, 6)).astype(np.float32), np.arange(50) % 4)
IMAGES = as_data(np.random.default_rng(1).uniform(size=(50, 1, 8, 8)).astype(np.float32), np.arange(50) % 4)
SMALL = {"latent_dim": D, "layers": (5,), "widths": (4, 4), "hidden": (6,), "batch_size": N}


def build_case(cls, data=TABLE, **settings):
    """Return a method that knows its data, its network and one batch."""
    fields = cls.__dataclass_fields__
    method = cls(**{k: v for k, v in SMALL.items() if k in fields} | settings)
    method.validate_settings(data)
    method.prepare(data)
    torch.manual_seed(0)
    net = method.build(data.shape)
    rng = torch.Generator().manual_seed(1)
    plan = method.plan(data, N, rng)
    batch = {k: data.render(v).float() for k, v in plan.views.items()} | plan.extras | method.sample_noise(N, rng)
    return method, net, batch | {"progress": torch.tensor(0.0)}


def sample_posterior(net, batch):
    """Return q(z | x), a sample z, and KL(q || N(0, I)), computed by hand."""
    q = posterior(net, batch["x"])
    z = q.mean + batch["eps"] * (q.logvar / 2).exp()
    return q, z, 0.5 * (q.mean**2 + q.logvar.exp() - 1 - q.logvar).sum(1).mean()
