"""Translation difficulty: how hard it is to learn what exchanging one value of a code for another does to an image."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from sklearn.kernel_ridge import KernelRidge
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from unweave.methods.base import Method
from unweave.methods.neural import Neural
from unweave.metrics.contract import as_matrix, metric
from unweave.metrics.factors import alive, in_groups
from unweave.nn.conv import conv_decoder, conv_encoder
from unweave.nn.mlp import mlp
from unweave.utils.errors import InputError, plural

EDGE = 1e-4  # probabilities are kept this far from 0 and 1
UNSEEN = 1e-4  # a change of less than this share of what images hold is none
IDLE = 1e-3  # nor is a feature one that moves pixels less than this share, in squares, of what the strongest does
WIDTHS, INSIDE, BATCH, RATE = (16, 16, 32, 32), 64, 64, 2e-3  # of the translator and its training


class Translation(NamedTuple):
    """In nats per observation; 0 is best."""

    difficulty: float
    """the translation loss on fresh pairs, Algorithm 1; it holds the entropy of the images themselves"""
    excess: float
    """the same without that entropy"""
    relative: float
    """the excess as a share of what the exchanges change; 1 where fewer than two features change anything: exchanging
    everything is easy, and takes nothing apart
    """


@metric(
    paper="Unsupervised disentanglement learning by intervention (2021), Algorithm 1",
    best=0.0,
    truth="decoder",
    variants={"linear": {"translator": "linear"}, "network": {"translator": "network"}},
    slow=("network",),
)
def translation_difficulty(
    method: Any,
    codes: Any,
    *,
    features: Sequence[Sequence[int]] | None = None,
    translator: Literal["linear", "network"] = "linear",
    pairs: int = 2,
    observations: int = 256,
    steps: int = 300,
    seed: int = 0,
) -> Translation:
    """How hard it is to learn, from examples, what exchanging one value of a feature for another does.

    `method` has a decoder (`inverse_transform`); `codes` (n, d) are its codes of some observations, or the observations
    themselves as `FactorData`. For each feature (a living code, or the groups that `features` or the method names) and
    `pairs` of values a, b that two observations have, up to `observations` are decoded with a and with b, and a
    translator learns to make the second image of the first; the score is its loss on as many others. No labels are
    looked at. `linear`: ridge regression between pixels, fast and exact. `network`, the paper's: an encoder and a
    decoder, `steps` of Adam, starting from the identity.
    """
    if translator not in ("network", "linear"):
        raise InputError(f"translator={translator!r}: expected 'network' or 'linear'")
    if pairs < 1 or observations < 2 or steps < 0:
        text = f"pairs={pairs}, observations={observations}, steps={steps}"
        raise InputError(f"{text}: expected at least one pair of values, two observations, and no negative steps")
    z = _codes_of(method, codes, observations, seed)
    groups = _groups(method, z, features)
    rng, living = np.random.default_rng(seed), alive(z)
    groups = [g for g in groups if living[g].any()]
    if not groups:
        raise InputError(f"no code of {z.shape[1]} varies: there is nothing to exchange")
    images = []
    for group in groups:
        for a, b in (_two(z[:, group], rng) for _ in range(pairs)):
            images.append((_decoded(method, z, group, a), _decoded(method, z, group, b)))
    probable = all(float(x.min()) >= 0 and float(x.max()) <= 1 for pair in images for x in pair)
    device = method.resolve_device() if isinstance(method, Neural) else "cpu"
    learner = _linear if translator == "linear" else partial(_network, steps=steps, seed=seed, device=device)
    loss, entropy, untouched, flat = np.mean([_task(u, v, learner, probable) for u, v in images], 0)
    excess, change = loss - entropy, untouched - entropy
    moves = _moves(method, z, groups, rng)
    few = (moves > IDLE * moves.max()).sum() < 2
    dead = change <= UNSEEN * flat  # a share of nothing would be a ratio of rounding errors
    return Translation(float(loss), float(excess), 1.0 if dead or few else max(0.0, float(excess / change)))


def _codes_of(method: Any, codes: Any, most: int, seed: int) -> np.ndarray:
    """(n, d): at most twice as many rows as a task learns from."""
    own = isinstance(method, Method)  # or any other estimator with scikit-learn's `inverse_transform`
    if not (method.has_decoder() if own else callable(getattr(method, "inverse_transform", None))):
        raise InputError(f"{type(method).__name__} has no decoder, and so no inverse_transform: translation needs one")
    codes = codes.load() if hasattr(codes, "load") else codes  # a recipe
    if hasattr(codes, "collect"):
        codes = method.transform(codes.collect(2 * most, Generator().manual_seed(seed)).x)
    z = as_matrix(codes, "codes")
    if len(z) < 4:
        raise InputError(f"{plural(len(z), 'row')} of codes: a translator needs two to learn from, and two more")
    return z[np.random.default_rng(seed).permutation(len(z))[: 2 * most]].astype(np.float32)


def _groups(method: Any, z: np.ndarray, features: Sequence[Sequence[int]] | None) -> list[np.ndarray]:
    """The codes of each feature."""
    if features is None and isinstance(method, Method):
        features = method.feature_groups()
    groups = in_groups(features, z)
    if len(groups) < 2:
        raise InputError("one feature only: to exchange it is to exchange everything; expected at least two")
    return groups


def _two(values: np.ndarray, rng: np.random.Generator) -> tuple[int, int]:
    """Two observations that have different values of a feature, which varies."""
    while True:
        a, b = rng.choice(len(values), 2, replace=False)
        if (values[a] != values[b]).any():
            return int(a), int(b)


def _decoded(method: Any, z: np.ndarray, group: np.ndarray, row: int) -> Tensor:
    """The observations with one feature as another observation has it."""
    z = z.copy()
    z[:, group] = z[row, group]
    return torch.as_tensor(np.asarray(method.inverse_transform(z), np.float32))


def _moves(method: Any, z: np.ndarray, groups: Sequence[np.ndarray], rng: np.random.Generator) -> np.ndarray:
    """How far pixels move where every observation has a feature of another one, squared, (groups,)."""

    def decoded(codes: np.ndarray) -> np.ndarray:
        return np.asarray(method.inverse_transform(codes), np.float64)

    still, found = decoded(z), []
    for group in groups:
        mixed = z.copy()
        mixed[:, group] = z[np.ix_(rng.permutation(len(z)), group)]
        found.append(np.mean((decoded(mixed) - still) ** 2))
    return np.array(found)


def _task(u: Tensor, v: Tensor, learner: Any, probable: bool) -> tuple[float, ...]:
    """Losses on the second half: of what was translated, of the truth, of what was not translated, of a flat image."""
    half = len(u) // 2
    found, v_test = learner(u[:half], v[:half], u[half:], probable), v[half:]
    flat = v_test.mean().expand_as(v_test)
    return tuple(float(_loss(v_test, w, probable)) for w in (found, v_test, u[half:], flat))


def _loss(v: Tensor, found: Tensor, probable: bool) -> Tensor:
    """Cross-entropy of pixels between 0 and 1, half the squared error of anything else, (n, ...) -> nats."""
    if probable:
        each = F.binary_cross_entropy(found.clamp(EDGE, 1 - EDGE), v, reduction="none")
    else:
        each = 0.5 * (found - v).square()
    return each.flatten(1).sum(1).mean()


def _linear(u: Tensor, v: Tensor, u_test: Tensor, probable: bool) -> Tensor:
    """Ridge regression in its dual form, between deviations from the means."""
    U, V, T = (x.flatten(1).double() for x in (u, v, u_test))
    center, middle = U.mean(0), V.mean(0)
    strength = 1e-3 * float((U - center).square().sum(1).mean()) + 1e-9
    model = KernelRidge(alpha=strength).fit((U - center).numpy(), (V - middle).numpy())
    return (torch.from_numpy(model.predict((T - center).numpy())) + middle).float().reshape(u_test.shape)


class Translator(nn.Module):
    """An encoder and a decoder beside the identity, with which it starts."""

    def __init__(self, shape: tuple[int, ...], probable: bool) -> None:
        super().__init__()
        self.probable = probable
        if len(shape) == 3 and min(shape[1:]) >= 4:
            encoder = conv_encoder(shape, INSIDE, widths=WIDTHS, hidden=())
            decoder = conv_decoder(INSIDE, shape, widths=WIDTHS[::-1], hidden=())
        else:
            features = int(np.prod(shape))
            encoder = nn.Sequential(nn.Flatten(), mlp(features, INSIDE, INSIDE))
            decoder = nn.Sequential(mlp(INSIDE, INSIDE, features), nn.Unflatten(1, shape))
        last = [m for m in decoder.modules() if isinstance(m, nn.Linear | nn.ConvTranspose2d | nn.Conv2d)][-1]
        for p in last.parameters():
            nn.init.zeros_(p)
        self.net, self.share = nn.Sequential(encoder, decoder), nn.Parameter(torch.ones(()))

    def forward(self, u: Tensor) -> Tensor:
        """(n, *shape) -> (n, *shape)."""
        if self.probable:
            return torch.sigmoid(self.share * torch.logit(u, EDGE) + self.net(u))
        return self.share * u + self.net(u)


def _network(u: Tensor, v: Tensor, u_test: Tensor, probable: bool, *, steps: int, seed: int, device: str) -> Tensor:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)  # every task starts from the same weights
        net = Translator(tuple(u.shape[1:]), probable).to(device)
    u, v, u_test = (x.to(device) for x in (u, v, u_test))
    optimizer, rng = torch.optim.Adam(net.parameters(), RATE), Generator().manual_seed(seed)
    for _ in range(steps):
        rows = torch.randint(len(u), (min(BATCH, len(u)),), generator=rng).to(device)
        optimizer.zero_grad()
        torch.autograd.backward(_loss(v[rows], net(u[rows]), probable))
        optimizer.step()
    with torch.no_grad():
        return net(u_test).cpu()
