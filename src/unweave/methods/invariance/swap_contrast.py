"""Swap and contrast: codes that predict the class and ignore the nuisances, and codes that take the nuisances apart."""

from __future__ import annotations

import sys
from typing import Any, Literal, final

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from unweave.data.core import FactorData, split_rows
from unweave.data.supervision import Plan, label_column, labeled, paired, pairs
from unweave.methods.invariance.base import Classifying, nuisances
from unweave.methods.neural import Lane
from unweave.methods.vae.base import VAE, Terms, divergence, posterior, weighed
from unweave.nn.functional import Normal, kl
from unweave.training.adam import Adam
from unweave.utils.errors import InputError, plural

SETTLED, PART, SHRUNK = 10_000, 1_000, 1e-4  # observations the classifier is settled on, at once, and its weight decay
DEAD = 0.1  # share of the variance of observations below which a decoder shows nothing
POOR = 0.8  # share of what it learned from that it tells right, below which something may be wrong with the weights


@final
class SwapContrast(Classifying, VAE):
    """Swap and contrast: z_p predicts and ignores nuisances, z_n takes them apart, from pairs that share a class."""

    name = "swap-contrast"
    paper = "Reconstruction for disentanglement, contrast for invariance (2022), Eqs. 3 to 10"

    latent_dim: int | Literal["auto"] = "auto"  # type: ignore[assignment]
    """codes: predictive_dim and nuisance_dim together"""
    predictive_dim: int | Literal["auto"] = "auto"
    """codes of z_p, which come first: 16, or what latent_dim leaves"""
    nuisance_dim: int | Literal["auto"] = "auto"
    """codes of z_n: 16, or what latent_dim leaves; half of it where nothing else is said"""
    known: tuple[str, ...] = ()
    """factors that differ in pairs; all discrete ones but the label unless named"""
    changed: int = 0
    """k, the most of them that differ in a pair; 0: all"""
    divergence: Literal["kl", "js"] = "kl"
    """how far apart a code of a pair is: Eq. 3, or a bound on Eq. 4: a Gaussian stands for the mixture"""
    scheme: Literal["alternate", "joint", "ce"] = "alternate"
    """cross-entropy teaches the classifier alone; or the encoder too; or it does so in the place of the contrast"""
    settle: bool = True
    """whether the classifier is trained to the end once the codes no longer move, beside which it is always late; else
    it stays as it was beside them"""
    alpha: Lane = 1.0
    """weight of L_dis: exchanging shared codes changes nothing"""
    beta: Lane = 300.0
    """weight of L_sup, the supervised contrastive loss of z_p; right for 3 x 28 x 28 pixels, more for more of them"""
    gamma: Lane = 1.0
    """weight of L_zp: the mean z_p of the class is as good as one's own"""
    prediction: Lane = 300.0
    """weight of the cross-entropy where it teaches the encoder (joint, ce); Eq. 10 has 1, nothing beside the bound"""
    generative: Lane = 1.0
    """weight of the KL term of the VAE"""
    temperature: Lane = 0.1
    """tau of L_sup"""
    classifier_lr: Lane = 1e-2
    """Adam's learning rate of the classifier, which must follow codes that move; of no effect where it teaches nobody
    (alternate) and is settled"""
    warm_amount: float = 0.5
    """share of the steps in which the number of exchanged codes grows from 1 to all but k; 0: all from the start"""
    warm_difficulty: float = 0.5
    """share of the steps in which the number of factors that may differ grows from 1 to k; 0: k from the start"""

    # Settings ---------------------------------------------------------------------------------------------------

    def prepare(self, data: FactorData) -> None:
        super().prepare(data)
        p, n = self.parts()
        self.latent_dim_ = p + n
        own = paired(data)
        if own is not None and (self.known or self.changed):
            raise InputError("known and changed are for data that draw pairs; these are pairs, and say how they differ")
        self.pairs_ = [] if own else [data.factors[j].name for j in nuisances(data, self.label, self.known)]
        self.most_ = int(own.changed.max()) if own else self.changed or len(self.pairs_)
        if not own and not 0 <= self.changed <= len(self.pairs_):
            raise InputError(f"changed={self.changed}: {plural(len(self.pairs_), 'factor')} may differ, not more")
        if self.most_ > n:
            text = f"pairs that differ in up to {plural(self.most_, 'factor')}, and {plural(n, 'code')} for them"
            raise InputError(f"{text}: expected nuisance_dim={self.most_} at least, or a smaller `changed`")
        if self.temperature <= 0:
            raise InputError(f"temperature={self.temperature}: expected a positive number")
        if not (0 <= self.warm_amount <= 1 and 0 <= self.warm_difficulty <= 1):
            text = f"warm_amount={self.warm_amount}, warm_difficulty={self.warm_difficulty}"
            raise InputError(f"{text}: expected shares of the steps, from 0 to 1")
        self.diagnosis_ = [self.told(data)]

    def told(self, data: FactorData) -> str:
        """What pairs tell, in words; an error where they tell nothing."""
        if not self.most_:
            return "No nuisances are known: nothing is exchanged."
        rng = Generator(self.resolve_device()).manual_seed(0)
        alone = float((self.plan(data, 256, rng).extras["changed"] == 0).float().mean())
        names = ", ".join(self.pairs_) or "what your pairs differ in"
        if alone == 1:
            text = f"no two observations of a class differ in {names} alone"
            raise InputError(f"{text}: each class has its own; name others as known, or bring data that are mixed")
        return f"Pairs differ in: {names}." + (f" {alone:.0%} of observations have no partner." if alone else "")

    def parts(self) -> tuple[int, int]:
        """How many codes z_p and z_n have."""
        whole, p, n = self.latent_dim, self.predictive_dim, self.nuisance_dim
        if n == "auto":
            n = 16 if whole == "auto" else whole // 2 if p == "auto" else whole - p
        if p == "auto":
            p = 16 if whole == "auto" else whole - n
        if p < 1 or n < 1 or whole not in ("auto", p + n):
            text = f"predictive_dim={p} and nuisance_dim={n}" + (f" in latent_dim={whole}" if whole != "auto" else "")
            raise InputError(f"{text}: expected one code of each at least, and their sum or nothing as latent_dim")
        return p, n

    def predictive(self, z: Tensor) -> Tensor:
        return z[:, : self.parts()[0]]

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """The names of the codes: predictive and nuisance ones."""
        check_is_fitted(self)
        p, n = self.parts()
        names = [f"predictive{i + 1}" for i in range(p)] + [f"nuisance{i + 1}" for i in range(n)]
        return np.array(names, dtype=object)

    def build(self, shape: tuple[int, ...]) -> nn.Module:
        p, n = self.parts()
        net = self.coder(shape, 2 * (p + n), latent=p + n)
        net.classifier = nn.Linear(p, len(self.levels_))
        return net

    def optimizers(self) -> dict[str, Adam]:
        return {"": Adam(self.lr), "classifier.": Adam(self.classifier_lr)}

    def plan(self, data: FactorData, n: int, rng: Generator) -> Plan:
        if not self.most_:  # another observation of the class, from which nothing is to be exchanged
            plan = labeled(data, n, rng, factor=self.label or None)
            return Plan(plan.views, {"u": self.index(plan.extras["u"])})
        plan = pairs(data, n, rng, k=(1, self.most_), among=self.pairs_, alone="self")
        u = data.labels(plan.views["x"])[:, label_column(data, self.label or None)].long()
        return Plan(plan.views, {"u": self.index(u), "changed": plan.extras["k"]})

    def is_cacheable(self) -> bool:
        return False

    def sample_noise(self, n: int, rng: Generator) -> dict[str, Tensor]:
        p, d = self.parts()[0], sum(self.parts())
        sizes = {f"{name}{i}": size for name, size in (("eps", d), ("zeta", p)) for i in range(2 if self.most_ else 1)}
        return {name: torch.randn(n, size, generator=rng, device=rng.device) for name, size in sizes.items()}

    def prior(self, n: int, rng: Generator) -> Tensor:
        return torch.randn(n, sum(self.parts()), generator=rng)

    def after_training(self, data: FactorData) -> None:
        net: Any = self.net_
        points, u = self.typical(data)
        with torch.no_grad():
            some = torch.randperm(len(points), generator=Generator().manual_seed(self.seed))[:PART]  # not one class
            x = data.render(points[some]).float()
            seen = self.mean(net.decoder(self.encode(x)))
        shown = r2_score(x.flatten(1), seen.flatten(1), multioutput="variance_weighted")
        if shown < DEAD:
            text = f"The decoder shows next to nothing: {max(shown, 0):.0%} of the variance of the observations"
            self.diagnosis_ = [*self.diagnosis_, f"{text}. A smaller beta, or a smaller lr, may help."]
        if self.settle and len(torch.unique(u)) == len(self.levels_):
            with torch.no_grad():
                z = torch.cat([self.encode(data.render(part).float()) for part in split_rows(points, PART)])
            net.classifier.load_state_dict(settled(self.predictive(z), u))
        super().after_training(data)
        if self.learned_ < POOR:
            text = f"The class is hardly learned. More steps, or a larger beta, may help: beta={float(self.beta):g} is"
            self.diagnosis_ = [*self.diagnosis_, f"{text} weighed against a sum over {x[0].numel():,} numbers."]

    def typical(self, data: FactorData) -> tuple[Tensor, Tensor]:
        """Points to settle the classifier on, and their classes, (n,): all, or many of them and one of every class."""
        rng, column = Generator().manual_seed(self.seed), label_column(data, self.label or None)
        points = data.points_or_sample(SETTLED, rng, limit=sys.maxsize)
        u = self.index(data.labels(points)[:, column].long())
        if len(points) <= SETTLED:
            return points, u
        first = [int((u == k).nonzero()[0, 0]) for k in range(len(self.levels_))]
        rows = torch.cat([torch.randperm(len(points), generator=rng)[:SETTLED], torch.tensor(first)])
        return points[rows], u[rows]

    # Eq. 10 -----------------------------------------------------------------------------------------------------

    def loss(self, net: Any, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        views = ("x", "x2") if self.most_ else ("x",)
        x, u = (torch.cat(parts) for parts in ([batch[v] for v in views], [batch["u"] for _ in views]))
        eps, zeta = (torch.cat([batch[f"{name}{i}"] for i in range(len(views))]) for name in ("eps", "zeta"))
        q = posterior(net, x)  # of both halves of the pairs, (2 n, d)
        z = q.sample(eps)
        z_p, z_n = z[:, : self.parts()[0]], z[:, self.parts()[0] :]
        out = net.decoder(z)
        x_rec = self.mean(out)
        alone = self.scheme == "alternate"
        terms: Terms = {
            "rec": (1, self.reconstruction(x, out).mean()),
            "kl": (self.generative, divergence(q)),
            "ce": (1 if alone else self.prediction, self.cross_entropy(net, z.detach() if alone else z, u)),
        }
        mean_p = class_mean(Normal(*(v[:, : z_p.shape[1]] for v in q)), u, len(self.levels_))
        other = self.mean(net.decoder(torch.cat([mean_p.sample(zeta), z_n], 1)))
        terms["zp"] = self.gamma, apart(other, x_rec).mean()
        if self.scheme != "ce":
            terms["sup"] = self.beta, contrast(z_p, u, self.temperature)
        if self.most_:
            terms["dis"] = self.alpha, self.disentangle(net, q, z, x_rec, batch)
        return weighed(terms)

    def disentangle(self, net: Any, q: Normal, z: Tensor, x_rec: Tensor, batch: dict[str, Tensor]) -> Tensor:
        """L_dis, Eqs. 3 to 6: what exchanging all but the k most different codes of z_n changes, z_p always."""
        p, _ = self.parts()
        first, second = (Normal(*half) for half in zip(*(v[:, p:].chunk(2) for v in q), strict=True))
        order = self.distance(first, second).argsort(1, descending=True).argsort(1)  # 0: the most different one
        k = batch["changed"]
        swapped = order >= order.shape[1] - self.amount(k, batch["progress"], order.shape[1])[:, None]  # (n, |z_n|)
        swapped = torch.cat([torch.ones_like(swapped[:, :1]).expand(-1, p), swapped], 1)
        a, b = z.chunk(2)
        exchanged = torch.cat([torch.where(swapped, b, a), torch.where(swapped, a, b)])
        change = apart(self.mean(net.decoder(exchanged)), x_rec)  # (2 n,)
        easy = (k <= self.allowed(batch["progress"])).float().repeat(2)  # pairs that are not too difficult yet
        return (easy * change).sum() / easy.sum().clamp(min=1)

    def distance(self, q: Normal, q2: Normal) -> Tensor:
        """D_m of every code of a pair, (n, d).

        JS is to the Gaussian that is nearest to the mixture: more than to the mixture itself, by the divergence of the
        two. It goes on where that to the mixture has come to its end, log 2, and all codes that differ look alike.
        """
        if self.divergence == "kl":
            return kl(q, q2)
        var, var2 = q.logvar.exp(), q2.logvar.exp()
        middle = Normal((q.mean + q2.mean) / 2, ((var + var2) / 2 + (q.mean - q2.mean) ** 2 / 4).log())
        return (kl(q, middle) + kl(q2, middle)) / 2

    def amount(self, k: Tensor, progress: Tensor, d: int) -> Tensor:
        """How many codes are exchanged, (n,): from 1 to d - k."""
        most = (d - k).float()
        return torch.minimum(1 + ((most - 1) * warmed(progress, self.warm_amount)).floor(), most)

    def allowed(self, progress: Tensor) -> Tensor:
        """In how many factors pairs may differ by now."""
        return 1 + ((self.most_ - 1) * warmed(progress, self.warm_difficulty)).floor()


def settled(z_p: Tensor, u: Tensor) -> dict[str, Tensor]:
    """The linear classifier with the least cross-entropy of classes u, which are all there, given z_p (n, p)."""
    decay = SHRUNK * float(z_p.double().square().mean())  # which means the same for large codes and small ones
    model = LogisticRegression(C=1 / (2 * len(u) * max(decay, 1e-12)), max_iter=1_000).fit(
        z_p.double().numpy(), u.numpy()
    )
    weight, bias = torch.from_numpy(model.coef_), torch.from_numpy(model.intercept_)
    if len(weight) == 1:  # two classes have one row, their difference
        weight, bias = torch.cat([-weight, weight]) / 2, torch.cat([-bias, bias]) / 2
    return {"weight": weight, "bias": bias}


def warmed(progress: Tensor, share: float) -> Tensor:
    """How much of a warm-up over this share of the steps is done, from 0 to 1."""
    return (progress / share).clamp(max=1) if share else torch.ones_like(progress)


def apart(x: Tensor, x_rec: Tensor) -> Tensor:
    """D of Eqs. 6 and 10: squared differences, summed over an observation, (n, ...) -> (n,)."""
    return (x - x_rec).square().flatten(1).sum(1)


def class_mean(q: Normal, u: Tensor, classes: int) -> Normal:
    """Means and variances averaged over the observations of the same class, Eq. 8, (n, d)."""
    same = (u[:, None] == torch.arange(classes, device=u.device)).float()  # (n, classes)
    average = same @ (same / same.sum(0).clamp(min=1)).T  # (n, n): each row averages over its class
    return Normal(average @ q.mean, (average @ q.logvar.exp()).log())


def contrast(z: Tensor, u: Tensor, temperature: Any) -> Tensor:
    """L_sup, Eq. 9, per observation: how unlikely it is to pick one of the own class.

    Codes are put on the unit sphere, as Khosla et al. (2020) do; a single code, whose sphere is two points, is compared
    by squared distance. An observation that is alone of its class in the batch has none to pick, and does not count.
    """
    alike = -((z - z.T) ** 2) if z.shape[1] == 1 else F.normalize(z, dim=1) @ F.normalize(z, dim=1).T
    itself = torch.eye(len(z), dtype=torch.bool, device=z.device)
    log_p = torch.log_softmax((alike / temperature).masked_fill(itself, -torch.inf), 1).masked_fill(itself, 0)
    own = ((u[:, None] == u) & ~itself).float()
    count = own.sum(1)
    each = -(own * log_p).sum(1) / count.clamp(min=1)
    return each.sum() / (count > 0).sum().clamp(min=1)
