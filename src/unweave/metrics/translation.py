"""Translation difficulty: how hard is it to learn what exchanging the value of a code does to an image?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from sklearn.kernel_ridge import KernelRidge
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from unweave.methods.base import Method
from unweave.methods.encoding import to_scaled
from unweave.metrics.contract import as_matrix, metric
from unweave.metrics.factors import active_codes, group_columns
from unweave.nn.autoencoder import conv_decoder, conv_encoder, mlp
from unweave.utils.errors import InputError, plural

MIN_PROBABILITY = 1e-4  # probabilities are clipped to this distance from 0 and 1
MIN_CHANGE = 1e-4  # relative to the loss of a flat image: smaller changes are rounding errors
MIN_EFFECT = 1e-3  # mean squared change of pixels relative to the strongest feature; weaker features are inactive
WIDTHS, HIDDEN_SIZE, BATCH_SIZE, LEARNING_RATE = (16, 16, 32, 32), 64, 64, 2e-3  # of the translator network


Translate = Callable[[Tensor, Tensor, Tensor, bool], Tensor]
"""Trains on images and their targets, and predicts the targets of test images."""


class Translation(NamedTuple):
    """Losses in nats per observation; 0 is best."""

    difficulty: float
    """Translation loss on test pairs (Algorithm 1); it includes the entropy of the images."""
    excess: float
    """Translation loss minus the entropy of the images."""
    relative: float
    """Excess as a share of the loss without translation, from 0 on; 1 if fewer than two features change anything."""


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
    """Loss of learning the effect of exchanging one value of a feature for another (Algorithm 1 of the paper).

    For each feature and some pairs of its values (a, b), observations are decoded with a and with b. A translator
    learns to map the first image to the second; the score is its loss on test observations. No labels are needed.

    Args:
        method: A fitted method with a decoder, or any estimator with `inverse_transform`.
        codes: Its codes (n, d), or the observations as `FactorData`.
        features: Groups of codes that belong together. Default: `method.feature_groups()`, or each code alone.
        translator: `linear`: ridge regression between pixels, fast. `network`: encoder and decoder, as in the paper.
        pairs: Pairs of values per feature.
        observations: Largest number of training observations per pair.
        steps: Adam steps of the network, which starts as the identity.
        seed: Seed of pairs and network.

    Example:
        >>> import numpy as np, unweave
        >>> images = np.random.default_rng(0).uniform(size=(40, 4))
        >>> method = unweave.methods.PCA(latent_dim=2).fit(images)
        >>> translation_difficulty(method, method.transform(images)).relative < 0.1
        True
    """
    if translator not in ("network", "linear"):
        raise InputError(f"translator={translator!r}: expected 'network' or 'linear'")
    if pairs < 1 or observations < 2 or steps < 0:
        text = f"pairs={pairs}, observations={observations}, steps={steps}"
        raise InputError(f"{text}: expected at least one pair of values, two observations, and no negative steps")
    z = _select_codes(method, codes, 2 * observations, seed)
    rng, active = np.random.default_rng(seed), active_codes(z)
    groups = [group for group in _feature_groups(method, z, features) if active[group].any()]
    if not groups:
        raise InputError(f"no code of {z.shape[1]} varies: there is nothing to exchange")
    images = []
    for group in groups:
        for a, b in (_draw_pair(z[:, group], rng) for _ in range(pairs)):
            images.append((_decode_with(method, z, group, a), _decode_with(method, z, group, b)))
    bernoulli = all(float(x.min()) >= 0 and float(x.max()) <= 1 for pair in images for x in pair)
    device = method.resolve_device() if isinstance(method, Method) else "cpu"
    translate: Translate = _translate_linearly
    if translator == "network":
        translate = partial(_translate_by_network, steps=steps, seed=seed, device=device)
    losses = [_translation_losses(u, v, translate, bernoulli) for u, v in images]
    loss, entropy, untranslated, flat = np.mean(losses, 0)
    excess, change = loss - entropy, untranslated - entropy
    effects = _effects(method, z, groups, rng)
    too_few = (effects > MIN_EFFECT * effects.max()).sum() < 2  # exchanging everything is easy, and separates nothing
    no_change = change <= MIN_CHANGE * flat  # the share would be a ratio of rounding errors
    return Translation(float(loss), float(excess), 1.0 if no_change or too_few else max(0.0, float(excess / change)))


def _select_codes(method: Any, codes: Any, max_rows: int, seed: int) -> np.ndarray:
    """Return the codes of some observations in random order, (n, d)."""
    own = isinstance(method, Method)  # or any other estimator with scikit-learn's `inverse_transform`
    if not (method.has_decoder() if own else callable(getattr(method, "inverse_transform", None))):
        raise InputError(f"{type(method).__name__} has no decoder, and so no inverse_transform: translation needs one")
    codes = codes.load() if hasattr(codes, "load") else codes  # a recipe
    if hasattr(codes, "collect"):
        codes = method.transform(codes.collect(max_rows, Generator().manual_seed(seed)).x)
    z = as_matrix(codes, "codes")
    if len(z) < 4:
        raise InputError(f"{plural(len(z), 'row')} of codes: a translator needs two to learn from, and two more")
    return z[np.random.default_rng(seed).permutation(len(z))[:max_rows]].astype(np.float32)


def _feature_groups(method: Any, z: np.ndarray, features: Sequence[Sequence[int]] | None) -> list[np.ndarray]:
    """Return the columns of each feature."""
    if features is None and isinstance(method, Method):
        features = method.feature_groups()
    groups = group_columns(features, z)
    if len(groups) < 2:
        raise InputError("one feature only: to exchange it is to exchange everything; expected at least two")
    return groups


def _draw_pair(values: np.ndarray, rng: np.random.Generator) -> tuple[int, int]:
    """Draw two observations with different values of a feature that is not constant."""
    while True:
        a, b = rng.choice(len(values), 2, replace=False)
        if (values[a] != values[b]).any():
            return int(a), int(b)


def _decode_with(method: Any, z: np.ndarray, group: np.ndarray, row: int) -> Tensor:
    """Decode all observations with the value that one of them has of a feature."""
    z = z.copy()
    z[:, group] = z[row, group]
    return _decode(method, z).float()


def _decode(method: Any, z: np.ndarray) -> Tensor:
    """Return observations, with scaled columns if the method has learned to scale them: units must not count."""
    x = torch.as_tensor(np.asarray(method.inverse_transform(z)))
    return to_scaled(method, x) if isinstance(method, Method) else x


def _effects(method: Any, z: np.ndarray, groups: Sequence[np.ndarray], rng: np.random.Generator) -> np.ndarray:
    """Return the mean squared change of pixels if a feature is shuffled among observations, (groups,)."""
    original, effects = _decode(method, z).double().numpy(), []
    for group in groups:
        mixed = z.copy()
        mixed[:, group] = z[np.ix_(rng.permutation(len(z)), group)]
        effects.append(np.mean((_decode(method, mixed).double().numpy() - original) ** 2))
    return np.array(effects)


def _translation_losses(u: Tensor, v: Tensor, translate: Translate, bernoulli: bool) -> tuple[float, ...]:
    """Return losses on the second half: of the translation, of the truth, of the input, of a flat image."""
    half = len(u) // 2
    translated, v_test = translate(u[:half], v[:half], u[half:], bernoulli), v[half:]
    flat = v_test.mean().expand_as(v_test)
    return tuple(float(_loss(v_test, w, bernoulli)) for w in (translated, v_test, u[half:], flat))


def _loss(v: Tensor, prediction: Tensor, bernoulli: bool) -> Tensor:
    """Return the cross-entropy of pixels between 0 and 1, else half the squared error, (n, ...) -> nats."""
    if bernoulli:
        clipped = prediction.clamp(MIN_PROBABILITY, 1 - MIN_PROBABILITY)
        each = F.binary_cross_entropy(clipped, v, reduction="none")
    else:
        each = 0.5 * (prediction - v).square()
    return each.flatten(1).sum(1).mean()


def _translate_linearly(u: Tensor, v: Tensor, u_test: Tensor, bernoulli: bool) -> Tensor:
    """Predict by ridge regression in its dual form, between deviations from the means."""
    U, V, T = (x.flatten(1).double() for x in (u, v, u_test))
    u_mean, v_mean = U.mean(0), V.mean(0)
    penalty = 1e-3 * float((U - u_mean).square().sum(1).mean()) + 1e-9
    model = KernelRidge(alpha=penalty).fit((U - u_mean).numpy(), (V - v_mean).numpy())
    return (torch.from_numpy(model.predict((T - u_mean).numpy())) + v_mean).float().reshape(u_test.shape)


class Translator(nn.Module):
    """A residual network: the identity plus an encoder and decoder whose last layer starts at zero."""

    def __init__(self, shape: tuple[int, ...], bernoulli: bool) -> None:
        super().__init__()
        self.bernoulli = bernoulli
        if len(shape) == 3 and min(shape[1:]) >= 4:
            encoder = conv_encoder(shape, HIDDEN_SIZE, widths=WIDTHS, hidden=())
            decoder = conv_decoder(HIDDEN_SIZE, shape, widths=WIDTHS[::-1], hidden=())
        else:
            features = int(np.prod(shape))
            encoder = nn.Sequential(nn.Flatten(), mlp(features, HIDDEN_SIZE, HIDDEN_SIZE))
            decoder = nn.Sequential(mlp(HIDDEN_SIZE, HIDDEN_SIZE, features), nn.Unflatten(1, shape))
        last = [m for m in decoder.modules() if isinstance(m, nn.Linear | nn.ConvTranspose2d | nn.Conv2d)][-1]
        for p in last.parameters():
            nn.init.zeros_(p)
        self.net, self.share = nn.Sequential(encoder, decoder), nn.Parameter(torch.ones(()))

    def forward(self, u: Tensor) -> Tensor:
        """Translate images, (n, *shape) -> (n, *shape)."""
        if self.bernoulli:
            return torch.sigmoid(self.share * torch.logit(u, MIN_PROBABILITY) + self.net(u))
        return self.share * u + self.net(u)


def _translate_by_network(
    u: Tensor, v: Tensor, u_test: Tensor, bernoulli: bool, *, steps: int, seed: int, device: str
) -> Tensor:
    """Predict by a network that is trained on (u, v)."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)  # every task starts from the same weights
        net = Translator(tuple(u.shape[1:]), bernoulli).to(device)
    u, v, u_test = (x.to(device) for x in (u, v, u_test))
    optimizer, rng = torch.optim.Adam(net.parameters(), LEARNING_RATE), Generator().manual_seed(seed)
    for _ in range(steps):
        rows = torch.randint(len(u), (min(BATCH_SIZE, len(u)),), generator=rng).to(device)
        optimizer.zero_grad()
        torch.autograd.backward(_loss(v[rows], net(u[rows]), bernoulli))
        optimizer.step()
    with torch.no_grad():
        return net(u_test).cpu()
