"""Swap and contrast: codes that predict the class and ignore nuisances, and codes that disentangle the nuisances."""

from __future__ import annotations

import sys
from types import MappingProxyType
from typing import Any, Literal, final

import numpy as np
import torch
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted
from torch import Generator, Tensor, nn

from unweave.data.core import FactorData, split_rows
from unweave.data.supervision import Plan, find_pair_table, label_column, labeled, pairs
from unweave.methods.invariance.base import LatentClassifierMixin, nuisance_columns
from unweave.methods.invariance.logistic import fit_classifier
from unweave.methods.neural import Lane
from unweave.methods.vae.base import VAE, posterior
from unweave.nn.functional import (
    Normal,
    Terms,
    average_by_class,
    gaussian_js,
    kl,
    mean_kl,
    squared_distance,
    supervised_contrast,
    weighted_sum,
)
from unweave.training.adam import Adam
from unweave.utils.errors import InputError, plural

REFIT_OBSERVATIONS = 10_000  # at most, for the final fit of the classifier
RENDERED_ROWS = 1_000  # observations rendered at a time
MIN_EXPLAINED_VARIANCE = 0.1  # of reconstructions, below which the decoder has learned nothing
MIN_ACCURACY = 0.8  # on training observations, below which the class is not learned
PLANNED_PAIRS = 256  # pairs drawn before training, to see whether observations have partners


@final
class SwapContrast(LatentClassifierMixin, VAE):
    """Swap and contrast (2022, Eqs. 3 to 10): a classifier that is invariant to nuisances.

    The codes z_p predict the class and ignore nuisances; the codes z_n disentangle the nuisances. Learns from pairs of
    observations that share a class. Minimizes `L_VAE + alpha L_dis + beta L_sup + gamma L_zp + L_CE`.

    Example:
        >>> import numpy as np
        >>> x, y = np.random.default_rng(0).normal(size=(50, 4)), np.arange(50) % 2
        >>> SwapContrast(latent_dim=4, steps=2, layers=(8,)).fit(x, y).predict(x).shape
        (50,)
    """

    name = "swap-contrast"
    renamed = MappingProxyType({
        **LatentClassifierMixin.renamed, "known": "nuisances", "settle": "refit_classifier",
        "warm_amount": "swap_warmup", "warm_difficulty": "difficulty_warmup",
        "pairs_": "changing_factors_", "most_": "max_changed_",
    })  # fmt: skip
    paper = "Reconstruction for disentanglement, contrast for invariance (2022), Eqs. 3 to 10"

    latent_dim: int | Literal["auto"] = "auto"  # type: ignore[assignment]
    """Number of codes: predictive_dim and nuisance_dim together."""
    predictive_dim: int | Literal["auto"] = "auto"
    """Codes of z_p, which come first: 16, or what latent_dim leaves."""
    nuisance_dim: int | Literal["auto"] = "auto"
    """Codes of z_n: 16, or what latent_dim leaves; half of it where predictive_dim is not set."""
    nuisances: tuple[str, ...] = ()
    """Factors that differ in pairs; all discrete ones but the label by default."""
    changed: int = 0
    """k, maximum number of factors that differ in a pair; 0: all."""
    divergence: Literal["kl", "js"] = "kl"
    """Distance between the codes of a pair: KL (Eq. 3), or a bound on JS (Eq. 4) with a Gaussian as mixture."""
    scheme: Literal["alternate", "joint", "ce"] = "alternate"
    """Cross-entropy trains the classifier only ('alternate'), the encoder too ('joint'), or replaces L_sup ('ce')."""
    refit_classifier: bool = True
    """Refit the classifier on the frozen codes after training until convergence; it lags behind while they move."""
    alpha: Lane = 1.0
    """Weight of L_dis: swapping shared codes changes nothing."""
    beta: Lane = 300.0
    """Weight of L_sup, the supervised contrastive loss of z_p; for 3 x 28 x 28 pixels, larger for more pixels."""
    gamma: Lane = 1.0
    """Weight of L_zp: the mean z_p of a class reconstructs as well as the own z_p."""
    prediction: Lane = 300.0
    """Weight of L_CE of Eq. 10 where it trains the encoder (joint, ce); 1 in the paper, which is far too small."""
    generative: Lane = 1.0
    """Weight of the KL term of the VAE."""
    kl_warmup: float = 0.0
    """Share of the steps in which that weight grows from 0, so that the decoder is used from the start."""
    per_number: bool = False
    """Divide L_VAE, L_dis and L_zp by the number of observed numbers: the same weights serve images of any size."""
    temperature: Lane = 0.1
    """tau of L_sup."""
    classifier_lr: Lane = 1e-2
    """Learning rate of the classifier; has no effect if it is refitted and does not train the encoder (alternate)."""
    swap_warmup: float = 0.5
    """Share of the steps in which the number of swapped codes grows from 1 to all but k; 0: all from the start."""
    difficulty_warmup: float = 0.5
    """Share of the steps in which the number of factors that may differ grows from 1 to k; 0: k from the start."""

    # Settings ---------------------------------------------------------------------------------------------------

    def prepare(self, data: FactorData) -> None:
        super().prepare(data)
        p_dim, n_dim = self.split_sizes()
        self.latent_dim_ = p_dim + n_dim
        own_pairs = find_pair_table(data)
        if own_pairs is not None and (self.nuisances or self.changed):
            raise InputError(
                "these data are pairs that already define how they differ: leave out `nuisances` and `changed`"
            )
        columns = [] if own_pairs else nuisance_columns(data, self.label, self.nuisances)
        self.changing_factors_ = [data.factors[j].name for j in columns]
        self.max_changed_ = int(own_pairs.changed.max()) if own_pairs else self.changed or len(columns)
        if not own_pairs and not 0 <= self.changed <= len(columns):
            raise InputError(f"changed={self.changed}: {plural(len(columns), 'factor')} may differ, not more")
        if self.max_changed_ > n_dim:
            changed, codes = plural(self.max_changed_, "factor"), plural(n_dim, "code")
            text = f"pairs that differ in up to {changed}, and {codes} for them"
            raise InputError(f"{text}: expected nuisance_dim={self.max_changed_} at least, or a smaller `changed`")
        if self.temperature <= 0:
            raise InputError(f"temperature={self.temperature}: expected a positive number")
        for name in ("swap_warmup", "difficulty_warmup", "kl_warmup"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"{name}={getattr(self, name)}: expected a share of the steps, from 0 to 1")
        self.diagnosis_ = [self.describe_pairs(data)]

    def describe_pairs(self, data: FactorData) -> str:
        """Return in which factors pairs differ, as a sentence; raise an error where no observation has a partner."""
        if not self.max_changed_:
            return "No nuisance labels: no codes are exchanged."
        rng = Generator(self.resolve_device()).manual_seed(0)
        unpaired = float((self.plan(data, PLANNED_PAIRS, rng).extras["changed"] == 0).float().mean())
        names = ", ".join(self.changing_factors_) or "what your pairs differ in"
        if unpaired == 1:
            text = f"no two observations of a class differ in {names} alone"
            raise InputError(f"{text}: each class has its own; name other nuisances, or bring data that are mixed")
        return f"Pairs differ in: {names}." + (f" {unpaired:.0%} of observations have no partner." if unpaired else "")

    def split_sizes(self) -> tuple[int, int]:
        """Return the numbers of codes of z_p and z_n."""
        total, p_dim, n_dim = self.latent_dim, self.predictive_dim, self.nuisance_dim
        if n_dim == "auto":
            n_dim = 16 if total == "auto" else total // 2 if p_dim == "auto" else total - p_dim
        if p_dim == "auto":
            p_dim = 16 if total == "auto" else total - n_dim
        if p_dim < 1 or n_dim < 1 or total not in ("auto", p_dim + n_dim):
            sum_text = f" in latent_dim={total}" if total != "auto" else ""
            text = f"predictive_dim={p_dim} and nuisance_dim={n_dim}{sum_text}"
            raise InputError(f"{text}: expected one code of each at least, and their sum or nothing as latent_dim")
        return p_dim, n_dim

    def select_predictive(self, z: Tensor) -> Tensor:
        return z[:, : self.split_sizes()[0]]

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the names of the codes: predictive1, ..., nuisance1, ..."""
        check_is_fitted(self)
        p_dim, n_dim = self.split_sizes()
        names = [f"predictive{i + 1}" for i in range(p_dim)] + [f"nuisance{i + 1}" for i in range(n_dim)]
        return np.array(names, dtype=object)

    def build(self, shape: tuple[int, ...]) -> nn.Module:
        p_dim, n_dim = self.split_sizes()
        net = self.make_autoencoder(shape, 2 * (p_dim + n_dim), p_dim + n_dim)
        net.classifier = nn.Linear(p_dim, len(self.levels_))
        return net

    def optimizers(self) -> dict[str, Adam]:
        return {"": Adam(self.lr), "classifier.": Adam(self.classifier_lr)}

    def plan(self, data: FactorData, n: int, rng: Generator) -> Plan:
        if not self.max_changed_:  # single observations: there is nothing to swap
            plan = labeled(data, n, rng, factor=self.label or None)
            return Plan(plan.views, {"u": self.class_index(plan.extras["u"])})
        plan = pairs(data, n, rng, k=(1, self.max_changed_), among=self.changing_factors_, no_partner="self")
        u = data.labels(plan.views["x"])[:, label_column(data, self.label or None)].long()
        return Plan(plan.views, {"u": self.class_index(u), "changed": plan.extras["k"]})

    def is_cacheable(self) -> bool:
        return False

    def sample_noise(self, n: int, rng: Generator) -> dict[str, Tensor]:
        p_dim, n_dim = self.split_sizes()
        views = range(2 if self.max_changed_ else 1)
        sizes = {f"{name}{i}": size for name, size in (("eps", p_dim + n_dim), ("zeta", p_dim)) for i in views}
        return {name: torch.randn(n, size, generator=rng, device=rng.device) for name, size in sizes.items()}

    def sample_prior(self, n: int, rng: Generator) -> Tensor:
        return torch.randn(n, sum(self.split_sizes()), generator=rng)

    # After training ---------------------------------------------------------------------------------------------

    def after_training(self, data: FactorData) -> None:
        """Refit the classifier, measure its accuracy, and advise where the decoder or the classifier learned little."""
        net: Any = self.net_
        points, u = self.refit_points(data)
        shown = torch.randperm(len(points), generator=Generator().manual_seed(self.seed))[:RENDERED_ROWS]
        x = data.render(points[shown]).float()
        with torch.no_grad():
            x_rec = self.decoder_mean(net.decoder(self.encode(x)))
        explained = r2_score(x.flatten(1), x_rec.flatten(1), multioutput="variance_weighted")
        if self.refit_classifier and len(torch.unique(u)) == len(self.levels_):
            with torch.no_grad():
                z = torch.cat([self.encode(data.render(rows).float()) for rows in split_rows(points, RENDERED_ROWS)])
            net.classifier.load_state_dict(fit_classifier(self.select_predictive(z), u))
        super().after_training(data)
        self.diagnosis_ = [*self.diagnosis_, *self.advise(max(0.0, explained), x[0].numel())]

    def advise(self, explained: float, elements: int) -> list[str]:
        """Return at most one piece of advice, from the share of variance that is reconstructed of so many numbers."""
        weight, share = "prediction" if self.scheme == "ce" else "beta", f"{explained:.0%} of the variance"
        setting = f"{weight}={float(getattr(self, weight)):g}"
        is_accurate, is_alive = self.train_accuracy_ >= MIN_ACCURACY, explained >= MIN_EXPLAINED_VARIANCE
        smaller = f"Use a smaller {weight}: with {setting} the class is learned, but the decoder explains {share}."
        larger = f"Use a larger {weight}: {setting} weighs little against a reconstruction of {elements:,} numbers."
        longer = f"Train longer: after {self.steps:,} steps, the class is not learned; the decoder explains {share}."
        return [] if is_accurate and is_alive else [smaller if is_accurate else larger if is_alive else longer]

    def refit_points(self, data: FactorData) -> tuple[Tensor, Tensor]:
        """Return points for the final classifier and their classes, (n,): all, or a sample with every class in it."""
        rng, column = Generator().manual_seed(self.seed), label_column(data, self.label or None)
        points = data.points_or_sample(REFIT_OBSERVATIONS, rng, limit=sys.maxsize)
        u = self.class_index(data.labels(points)[:, column].long())
        if len(points) <= REFIT_OBSERVATIONS:
            return points, u
        first = [int((u == k).nonzero()[0, 0]) for k in range(len(self.levels_))]
        rows = torch.cat([torch.randperm(len(points), generator=rng)[:REFIT_OBSERVATIONS], torch.tensor(first)])
        return points[rows], u[rows]

    # Eq. 10 -----------------------------------------------------------------------------------------------------

    def loss(self, net: Any, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """Compute Eq. 10: L_VAE + alpha L_dis + beta L_sup + gamma L_zp + prediction L_CE."""
        views = ("x", "x2") if self.max_changed_ else ("x",)
        x, u = (torch.cat(rows) for rows in ([batch[v] for v in views], [batch["u"] for _ in views]))
        eps, zeta = (torch.cat([batch[f"{name}{i}"] for i in range(len(views))]) for name in ("eps", "zeta"))
        q = posterior(net, x)  # of both observations of the pairs, (2 n, d)
        z = q.sample(eps)
        p_dim, _ = self.split_sizes()
        z_p, z_n = z[:, :p_dim], z[:, p_dim:]
        class_p = average_by_class(Normal(*(v[:, :p_dim] for v in q)), u, len(self.levels_))  # Eq. 8
        codes = [z, torch.cat([class_p.sample(zeta), z_n], 1)]
        if self.max_changed_:
            codes.append(self.swap_codes(q, z, batch))
        outputs = net.decoder(torch.cat(codes)).chunk(len(codes))  # one pass: few large products instead of many
        x_rec, x_class, *x_swapped = map(self.decoder_mean, outputs)
        alternate = self.scheme == "alternate"
        unit = 1 / x[0].numel() if self.per_number else 1  # weight of what is summed over observed numbers
        terms: Terms = {
            "rec": (unit, self.reconstruction_loss(x, outputs[0]).mean()),
            "kl": (unit * self.generative * warmup(batch["progress"], self.kl_warmup), mean_kl(q)),
            "ce": (1 if alternate else self.prediction, self.cross_entropy(net, z.detach() if alternate else z, u)),
            "zp": (unit * self.gamma, squared_distance(x_class, x_rec).mean()),  # D of Eq. 10
        }
        if self.scheme != "ce":
            terms["sup"] = self.beta, supervised_contrast(z_p, u, self.temperature)  # Eq. 9
        if self.max_changed_:
            terms["dis"] = unit * self.alpha, self.swap_loss(x_swapped[0], x_rec, batch)
        return weighted_sum(terms)

    def swap_codes(self, q: Normal, z: Tensor, batch: dict[str, Tensor]) -> Tensor:
        """Return the codes of pairs, (2 n, d), with their shared codes swapped, Eqs. 3 to 6.

        z_p is always swapped, and of z_n all but the k codes that differ most.
        """
        p_dim, n_dim = self.split_sizes()
        first, second = (Normal(*half) for half in zip(*(v[:, p_dim:].chunk(2) for v in q), strict=True))
        distance = kl(first, second) if self.divergence == "kl" else gaussian_js(first, second)  # (n, n_dim)
        rank = distance.argsort(1, descending=True).argsort(1)  # 0: the most different code
        is_swapped = rank >= n_dim - self.count_swapped(batch["changed"], batch["progress"], n_dim)[:, None]
        is_swapped = torch.cat([torch.ones_like(is_swapped[:, :1]).expand(-1, p_dim), is_swapped], 1)  # (n, d)
        a, b = z.chunk(2)
        return torch.cat([torch.where(is_swapped, b, a), torch.where(is_swapped, a, b)])

    def swap_loss(self, x_swapped: Tensor, x_rec: Tensor, batch: dict[str, Tensor]) -> Tensor:
        """Return L_dis: how much swapping changes the reconstructions of pairs that are not too difficult yet."""
        change = squared_distance(x_swapped, x_rec)  # (2 n,)
        is_used = (batch["changed"] <= self.max_difficulty(batch["progress"])).float().repeat(2)
        return (is_used * change).sum() / is_used.sum().clamp(min=1)

    def count_swapped(self, k: Tensor, progress: Tensor, n_dim: int) -> Tensor:
        """Return how many of the n_dim codes are swapped, (n,): it grows from 1 to n_dim - k."""
        largest = (n_dim - k).float()
        return torch.minimum(1 + ((largest - 1) * warmup(progress, self.swap_warmup)).floor(), largest)

    def max_difficulty(self, progress: Tensor) -> Tensor:
        """Return in how many factors the pairs in the loss may differ, a scalar: it grows from 1 to k."""
        return 1 + ((self.max_changed_ - 1) * warmup(progress, self.difficulty_warmup)).floor()


def warmup(progress: Tensor, share: float) -> Tensor:
    """Return the completed part, from 0 to 1, of a warm-up over this share of the steps."""
    return (progress / share).clamp(max=1) if share else torch.ones_like(progress)
