"""Formulas of losses as pure functions of tensors."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.func import functional_call
from torch.nn import functional as F


class Normal(NamedTuple):
    """Diagonal Gaussians N(mean, exp(logvar)), (..., d) each."""

    mean: Tensor
    logvar: Tensor

    def sample(self, eps: Tensor) -> Tensor:
        """Compute mean + sigma eps for standard normal eps, (..., d)."""
        return self.mean + eps * (self.logvar / 2).exp()

    def log_prob(self, z: Tensor) -> Tensor:
        """Compute the log-density of every coordinate, (..., d)."""
        return -0.5 * (math.log(2 * math.pi) + self.logvar + (z - self.mean) ** 2 * (-self.logvar).exp())


def kl_to_standard(q: Normal) -> Tensor:
    """Compute KL(q || N(0, 1)) in nats of every coordinate, (..., d); Kingma and Welling (2014), App. B."""
    return 0.5 * (q.mean**2 + q.logvar.exp() - 1 - q.logvar)


def kl(q: Normal, p: Normal) -> Tensor:
    """Compute KL(q || p) in nats of every coordinate, (..., d)."""
    ratio = (q.logvar - p.logvar).exp()
    return 0.5 * (ratio + (q.mean - p.mean) ** 2 * (-p.logvar).exp() - 1 - q.logvar + p.logvar)


def total_correlation(log_q: Tensor, log_weight: Tensor) -> Tensor:
    """Estimate KL(q(z) || prod_k q(z_k)) for every sample, (b,); Chen et al. (2018), Eq. 2, middle term.

    This is the estimate of beta-TCVAE from a batch; FactorVAE has a critic for it.

    Args:
        log_q: log q(z_i,k | x_j), (b, b, d), from `pairwise_log_densities`.
        log_weight: Log-weight of x_j for z_i, (b, b), from `uniform_log_weights` or `stratified_log_weights`.
    """
    joint = (log_q.sum(-1) + log_weight).logsumexp(1)
    marginals = (log_q + log_weight[..., None]).logsumexp(1).sum(-1)
    return joint - marginals


def pairwise_log_densities(z: Tensor, q: Normal) -> Tensor:
    """Compute log q(z_i,k | x_j) of every sample under every posterior of the batch, (b, d) -> (b, b, d)."""
    return Normal(q.mean[None], q.logvar[None]).log_prob(z[:, None])


def uniform_log_weights(b: int, n: int, device: torch.device | None = None) -> Tensor:
    """Return log 1 / (n b), (b, b): minibatch-weighted sampling of n observations; Chen et al. (2018), App. C.1."""
    return torch.full((b, b), -math.log(n * b), device=device)


def stratified_log_weights(b: int, n: int, device: torch.device | None = None) -> Tensor:
    """Return the log-weights of minibatch stratified sampling, (b, b); Chen et al. (2018), App. C.2.

    With m = b - 1 other samples of n observations, the sample's own posterior has weight 1 / n, one other
    (n - m) / (n m), the rest 1 / m. Rows sum to one. The published code puts the special weights into the first
    columns instead of along the diagonal.
    """
    if b < 2 or n < b:
        raise ValueError(
            f"stratified weights of a batch of {b} from {n} observations: expected 2 <= batch <= observations"
        )
    m = b - 1
    index = torch.arange(b, device=device)
    distance = (index - index[:, None]) % b  # (b, b): 0 along the diagonal, 1 beside it
    return torch.where(distance == 0, 1 / n, torch.where(distance == 1, (n - m) / (n * m), 1 / m)).log()


def covariance(z: Tensor) -> Tensor:
    """Compute the covariance of columns, divided by the batch size, (b, d) -> (d, d).

    `torch.cov` reads a number on the host, which vmap and CUDA graphs do not allow.
    """
    centered = z - z.mean(0)
    return centered.T @ centered / len(z)


def covariance_penalty(C: Tensor, *, diagonal: Tensor | float, off_diagonal: Tensor | float) -> Tensor:
    """Compute the weighted squared distance of a covariance (d, d) to the identity; Kumar et al. (2018), Eq. 5."""
    squared = (C - torch.eye(len(C), device=C.device, dtype=C.dtype)) ** 2
    on_diagonal = squared.diagonal().sum()
    return off_diagonal * (squared.sum() - on_diagonal) + diagonal * on_diagonal


def permute_columns(z: Tensor, order: Tensor) -> Tensor:
    """Permute each column by its own order, (b, d) both: samples of the marginals; Kim and Mnih (2018), Alg. 1."""
    return z.gather(0, order)


def apply_frozen(net: Any, x: Tensor) -> Tensor:
    """Apply a network without a gradient to its weights; the gradient to x remains."""
    return functional_call(net, {k: p.detach() for k, p in net.named_parameters()}, (x,))


def scale_gradient(x: Tensor, weight: Any) -> Tensor:
    """Return x, and multiply its gradient by `weight`; a negative weight reverses it (Ganin and Lempitsky, 2015)."""
    return weight * x + (1 - weight) * x.detach()


def one_hot(index: Tensor, size: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return indices (...) one-hot, (..., size); `torch.nn.functional.one_hot` cannot be mapped over lanes by vmap."""
    return (index[..., None] == torch.arange(size, device=index.device)).to(dtype)


Terms = dict[str, tuple[Any, Tensor]]
"""Weight and value of each term of a loss, by name."""


def weighted_sum(terms: Terms) -> dict[str, Tensor]:
    """Return the weighted sum as 'loss', and every term without its weight, for the history.

    Example:
        >>> weighted_sum({"rec": (1, torch.tensor(3.0)), "kl": (4, torch.tensor(0.5))})
        {'loss': tensor(5.), 'rec': tensor(3.), 'kl': tensor(0.5000)}
    """
    total = sum(weight * value for weight, value in terms.values())
    return {"loss": torch.as_tensor(total)} | {name: value for name, (_, value) in terms.items()}


def mean_kl(q: Normal) -> Tensor:
    """Compute KL(q || N(0, I)) in nats, summed over codes and averaged over the batch: (n, d) -> scalar."""
    return kl_to_standard(q).sum(-1).mean()


def gaussian_js(q: Normal, p: Normal) -> Tensor:
    """Compute an upper bound on the Jensen-Shannon divergence of every coordinate, (..., d).

    The mixture (q + p) / 2 is replaced by the Gaussian with its mean and variance. The bound still grows where the
    divergence itself saturates at log 2, so that distant coordinates can be ranked.
    """
    q_var, p_var = q.logvar.exp(), p.logvar.exp()
    middle = Normal((q.mean + p.mean) / 2, ((q_var + p_var) / 2 + (q.mean - p.mean) ** 2 / 4).log())
    return (kl(q, middle) + kl(p, middle)) / 2


def average_by_class(q: Normal, labels: Tensor, classes: int) -> Normal:
    """Average means and variances over the rows of the same class: (n, d) and labels (n,) -> (n, d)."""
    same = one_hot(labels, classes)  # (n, classes)
    average = same @ (same / same.sum(0).clamp(min=1)).T  # (n, n): each row averages over its class
    return Normal(average @ q.mean, (average @ q.logvar.exp()).log())


def supervised_contrast(z: Tensor, labels: Tensor, temperature: Any) -> Tensor:
    """Compute the supervised contrastive loss of codes (n, d) and labels (n,): Khosla et al. (2020), Eq. 2.

    The loss of an observation is -log p of picking one of its own class, averaged over these. Codes are normalized to
    the unit sphere. A single code, whose sphere has only two points, is compared by squared distance instead.
    Observations without a partner of their class in the batch are left out.
    """
    similarity = -((z - z.T) ** 2) if z.shape[1] == 1 else F.normalize(z, dim=1) @ F.normalize(z, dim=1).T
    itself = torch.eye(len(z), dtype=torch.bool, device=z.device)
    log_p = torch.log_softmax((similarity / temperature).masked_fill(itself, -torch.inf), 1).masked_fill(itself, 0)
    partners = ((labels[:, None] == labels) & ~itself).float()
    count = partners.sum(1)
    losses = -(partners * log_p).sum(1) / count.clamp(min=1)
    return losses.sum() / (count > 0).sum().clamp(min=1)


def random_fourier_features(z: Tensor, frequencies: Tensor, phases: Tensor) -> Tensor:
    """Compute random features of a Gaussian kernel of width sqrt(d), (n, d) -> (n, features).

    Rahimi and Recht (2007); used by Louizos et al. (2016), Eq. 9. `frequencies` (features, d) are standard normal,
    `phases` (features,) uniform on [0, 2 pi].
    """
    return math.sqrt(2 / len(frequencies)) * torch.cos(F.linear(z, frequencies) / math.sqrt(z.shape[1]) + phases)


def mean_discrepancy(features: Tensor, groups: Tensor) -> Tensor:
    """Compute the squared MMD of every group to all rows, averaged over the groups in the batch: a scalar.

    `features` (n, f) are kernel features of the rows, `groups` (n, g) their group memberships, ones and zeros.
    """
    count = groups.sum(0)  # (g,)
    group_means = groups.T @ features / count.clamp(min=1)[:, None]
    present = (count > 0).to(features.dtype)
    return ((group_means - features.mean(0)).square().sum(1) * present).sum() / present.sum().clamp(min=1)


def squared_distance(x: Tensor, y: Tensor) -> Tensor:
    """Compute the squared differences summed over each observation, (n, ...) -> (n,)."""
    return (x - y).square().flatten(1).sum(1)
