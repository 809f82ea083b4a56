"""GIN: nonlinear ICA with labels, by a flow that keeps volumes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Literal, final

import numpy as np
import torch
from sklearn.decomposition import PCA
from sklearn.utils.validation import check_is_fitted
from torch import Generator, Tensor, nn

from unweave.data.core import FactorData, as_float
from unweave.data.supervision import Plan, labeled
from unweave.methods.base import FigureName
from unweave.methods.flows.base import NormalizingFlow, few
from unweave.methods.flows.families import FAMILIES, Coefficients, Family, FamilyName, weights
from unweave.nn.functional import one_hot
from unweave.utils.errors import InputError, plural
from unweave.utils.validation import as_classes

COUNTED = 100_000  # labels that classes are found in, where the data have no end
FILLED = 1_000  # observations of a class that statistics after training are made of, if the data have them
PRINCIPAL = 10  # directions along which classes are compared before training
APART = 3.0  # deviations between two neighboring classes from which on nothing fills the gap between them
ALONE = 0.2  # of the larger deviation, below which a class does not vary along a code
POSITIVE = 20.0  # the largest |x| that a family on a half-line can start from, its variables being exponentials


@final
class GIN(NormalizingFlow):
    """GIN: labels tell the latent variables apart, deviations tell the informative ones from noise.

    Labels are classes, or rows of class probabilities. A class has means and deviations of its own along every latent
    variable, taken from each batch, or learned.
    """

    name = "gin"
    paper = "Sorrenson, Rother and Koethe (2020), Eqs. 8 to 12"
    needs = "labels"

    label: str = ""
    """the factor that is the label; the first discrete one unless named"""
    family: FamilyName = "normal"
    """of the latent variables, given the label"""
    statistics: Literal["batch", "learned"] = "batch"
    """where each class's parameters come from: the observations of a batch, or gradient descent"""

    # Labels -----------------------------------------------------------------------------------------------------

    def as_labels(self, y: Any) -> Any:
        """Classes; or rows that sum to one, (n, classes): probabilities, or ones among zeros."""
        if not soft(y):
            return as_classes(y)
        return y.astype(float) if hasattr(y, "columns") else np.asarray(y, np.float64)

    def prepare(self, data: FactorData) -> None:
        super().prepare(data)
        given = self.conditions(data, self._points(data))
        counts = given.sum(0)
        if len(self.names_) < 2:
            raise InputError(f"one class only ({self.names_[0]!r}): GIN tells variables apart by how classes differ")
        lonely = [name for name, count in zip(self.names_, counts.tolist(), strict=True) if count < 2]
        if lonely:
            raise InputError(f"class {lonely[0]!r} has fewer than two observations: it has no deviation; leave it out")
        if self.batch_size < 2 * len(self.names_):
            text = f"batch_size={self.batch_size}: a batch wants two observations of each of {len(self.names_)} classes"
            raise InputError(f"{text}, so at least {2 * len(self.names_)}; take many more")
        if self.soft():
            self.law().mixed(self.law().learned(torch.zeros(1, 1), torch.zeros(1, 1)), torch.ones(1, 1))  # or refuse
        largest = float(data.draw(self.observations, self._rng()).x.abs().max())
        if self.family not in ("normal", "log-normal") and largest > POSITIVE:
            text = f"family={self.family!r} starts from exponentials of the observations, which reach {largest:.3g}"
            raise InputError(f"{text}: standardize them first (standardize=True)")
        most = (len(self.names_) - 1) // 2
        text = f"{len(self.names_)} classes guarantee {plural(most, 'informative variable')}"
        self.outlook_.append("Labels are probabilities." if self.soft() else f"{text} (2 n + 1 conditions for n).")
        self.outlook_ += [] if self.soft() else self._overlap(data)

    def _overlap(self, data: FactorData) -> list[str]:
        """Whether the classes overlap along the directions in which the observations vary most."""
        points = self.some(data, self._rng())
        x, r = data.render(points).float().flatten(1).cpu(), self.conditions(data, points).cpu()
        seen = [k for k in range(len(self.names_)) if r[:, k].sum() >= 2]  # a rare class may not be among them
        count = min(PRINCIPAL, *x.shape)
        z = torch.from_numpy(PCA(count, svd_solver="randomized", random_state=0).fit_transform(x))
        own = [z[r[:, k] > 0] for k in seen]
        means, deviations = torch.stack([w.mean(0) for w in own]), torch.stack([w.std(0) for w in own])
        names = [self.names_[k] for k in seen]
        empty = [
            f"Nothing lies between classes {a!r} and {b!r} along principal direction {j + 1} of the observations: a "
            "flow may bend there as it likes."
            for j in range(count)
            for a, b in gaps(means[:, j], deviations[:, j], names)
        ]
        return few(empty) or [f"Classes overlap along each of the first {plural(count, 'principal direction')}."]

    def soft(self) -> bool:
        """Whether the labels are probabilities."""
        return bool(self.soft_)

    def _points(self, data: FactorData) -> Tensor:
        """All points, or many where there is no end to them."""
        return data.points_or_sample(COUNTED, self._rng(), limit=sys.maxsize)

    def conditions(self, data: FactorData, points: Tensor) -> Tensor:
        """Class probabilities of points, (n, classes); ones among zeros where labels are classes."""
        c = data.labels(points)
        if not hasattr(self, "names_"):
            self._find_classes(data, c)
        if self.soft():
            return c.float() / c.float().sum(1, keepdim=True)
        u = c[:, self.column_].long()
        return (u[:, None] == torch.tensor(self.levels_, device=u.device)).float()

    def _find_classes(self, data: FactorData, c: Tensor) -> None:
        if all(f.size is None for f in data.factors) and soft(c.numpy(force=True)):
            if self.label:
                raise InputError(f"label={self.label!r}: labels that are probabilities are all columns together")
            self.names_, self.soft_ = [f.name for f in data.factors], True
            return
        name = self.label or next((f.name for f in data.factors if f.size is not None), "")
        if not name or data.factors[data.column(name)].size is None:
            labeled(data, 1, self._rng(), factor=name or None)  # which says what is wrong
        self.column_, self.soft_ = data.column(name), False
        self.levels_ = torch.unique(c[:, self.column_].long()).tolist()
        values = data.factors[self.column_].values
        self.names_ = [str(values[k] if values else k) for k in self.levels_]

    def is_cacheable(self) -> bool:
        return True

    def plan(self, data: FactorData, n: int, rng: Generator) -> Plan:
        points = data.sample(n, rng)
        r = self.conditions(data, points)
        if not self.soft():
            return Plan({"x": points}, {"r": r})
        batches = r.reshape(-1, min(self.batch_size, n), r.shape[1])
        return Plan({"x": points}, {"r": r, "p": weights(batches).reshape(r.shape)})

    def sample_noise(self, n: int, rng: Generator) -> dict[str, Tensor]:
        return {"eps": torch.randn(n, *self.shape_, generator=rng, device=rng.device)}

    # Learning ---------------------------------------------------------------------------------------------------

    def build(self, shape: tuple[int, ...]) -> nn.Module:
        net = super().build(shape)
        if self.statistics == "learned":
            features = int(np.prod(shape))
            net.location = nn.Parameter(torch.zeros(len(self.names_), features))
            net.spread = nn.Parameter(torch.zeros(len(self.names_), features))
        return net

    def loss(self, net: Any, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        r = batch["r"]  # (n, classes): the condition u
        y, log_det = net.flow(self.shaped(batch["x"], batch["eps"]))  # (n, d), (n,)
        if self.soft():
            own = self.law().mixed(self.coefficients(net, y, batch["p"]), r)
            share = torch.ones_like(r[:, 0])
        else:
            count = r.sum(0)
            known = r * (count >= 2)  # a class that is alone in its batch has no deviation
            share = known.sum(1)  # (n,): one, or zero for an observation of such a class, which then does not count
            c = self.coefficients(net, y, r / count.clamp(min=1))
            own = c.of(torch.where(share[:, None] > 0, known, 1 / r.shape[1]))
        nats = -self.law().log_prob(y, own).sum(1) - log_det
        mean = (nats * share).sum() / share.sum().clamp(min=1)  # Eq. 10
        return {"loss": mean / y.shape[1], "nats": mean, "alone": (1 - share).sum()}

    def coefficients(self, net: Any, y: Tensor, p: Tensor) -> Coefficients:
        """Of every class, (classes, d): Eqs. 11 and 12, or learned."""
        if self.statistics == "learned":
            return self.law().learned(net.location, net.spread)
        return self.law().fit(y, p)

    def law(self) -> Family:
        """The family by its name."""
        return FAMILIES[self.family]

    # After training ---------------------------------------------------------------------------------------------

    @torch.no_grad()
    def summarize(self, data: FactorData, rng: Generator) -> Tensor:
        points, every = self.some(data, rng), self._points(data)
        r, all_r = self.conditions(data, points), self.conditions(data, every)
        self.shares_ = all_r.mean(0)  # (classes,)
        for k in range(len(self.names_)) if not self.soft() else ():
            if r[:, k].sum() < FILLED:  # a rare class: all of it that there is, up to a bound
                more = every[all_r[:, k] > 0][:FILLED]
                points = torch.cat([points[r[:, k] == 0], more])
                r = self.conditions(data, points)
        y = self.outputs_with_noise(data, points, rng)
        self.first_, self.second_ = self._classes(y, r)
        self.means_, self.deviations_ = self._moments(y, r)
        own = self.own(r)
        self.merit_ = float((self.law().log_prob(y[:, :-1], own).sum(1) + y[:, -1]).mean())
        if self.soft():
            self.rank_ = self._rank(y[:, :-1], r)
        return y[:, :-1]

    def _classes(self, y: Tensor, r: Tensor) -> Coefficients:
        """Of each class, (classes, features), class by class, since all at once would be large."""
        y = y[:, :-1]
        if self.statistics == "learned":
            net: Any = self.net_
            return Coefficients(*(v.clone() for v in self.law().learned(net.location, net.spread)))
        if self.soft():
            return self.law().fit(y, weights(r))
        each = [self.law().fit(y[u > 0], torch.full((int(u.sum()), 1), 1 / float(u.sum()))) for u in r.T]
        return Coefficients(*(torch.cat([getattr(c, name) for c in each]) for name in ("first", "second")))

    def _moments(self, y: Tensor, r: Tensor) -> tuple[Tensor, Tensor]:
        """Means and deviations of the outputs of each class, (classes, features) each."""
        if self.soft():
            return self.first_ / self.second_, self.second_.rsqrt()
        own = [y[u > 0, :-1] for u in r.T]
        return torch.stack([w.mean(0) for w in own]), torch.stack([w.std(0, correction=0) for w in own])

    def own(self, r: Tensor) -> Coefficients:
        """Those of observations with class probabilities r, (n, classes), from all the data."""
        c = Coefficients(self.first_, self.second_)
        if self.soft() or bool((r.amax(1) < 1).any()):
            return self.law().mixed(c, r)
        u = r.argmax(1)
        return Coefficients(c.first[u], c.second[u])

    def figures(self) -> tuple[FigureName, ...]:
        names = tuple("class-variables" if name == "variables" else name for name in super().figures())
        return (*names, "samples") if "class-variables" in names else names

    def class_statistics(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        both = zip(self.means_.numpy(), self.deviations_.numpy(), strict=True)
        return dict(zip(self.names_, both, strict=True))

    def restart_score(self) -> float:
        """The mean log-likelihood."""
        return self.merit_

    def encode(self, x: Tensor) -> Tensor:
        return self.law().latent(self.outputs(x)[:, self.order_[: self.latent_dim_]])

    def decode(self, z: Tensor) -> Tensor:
        y = self.law().free(z)
        if not bool(y.isfinite().all()):
            kind = "between 0 and 1" if self.family == "beta" else "above 0"
            raise InputError(f"latent variables of the {self.family} family are {kind}, and some codes are not")
        return self.pixels(self.filled(y))

    @torch.no_grad()
    def log_prob(self, X: Any, y: Any = None) -> np.ndarray:
        """Log-density of observations given their labels, in nats, (n,); without labels, that of the mixture.

        It is the density of observations with the noise that training adds: to clean ones add it yourself.
        """
        x = self._observed(X)
        outputs = self.outputs_and_volume(x)
        if y is not None:
            own = self.own(self._rows(y, len(x)))
            return (self.law().log_prob(outputs[:, :-1], own).sum(1) + outputs[:, -1]).numpy()
        return torch.logsumexp(self._joint(outputs), 1).numpy()

    def _joint(self, outputs: Tensor) -> Tensor:
        """log p(x, class), (n, classes)."""
        c = zip(self.first_, self.second_, strict=True)
        each = [self.law().log_prob(outputs[:, :-1], Coefficients(a[None], b[None])).sum(1) for a, b in c]
        return torch.stack(each, 1) + outputs[:, -1:] + self.shares_.log()

    @torch.no_grad()
    def sample(
        self, label: Any, n: int = 1, *, temperature: float = 1.0, informative: bool = False, seed: int = 0
    ) -> np.ndarray:
        """n observations of a class, (n, *shape); the same seed gives the same styles in every class.

        Deviations are multiplied by the temperature. With `informative`, the other variables stay at their means.
        """
        check_is_fitted(self)
        if n < 1 or temperature < 0:
            raise InputError(f"n={n}, temperature={temperature}: expected at least 1, and at least 0")
        e = temperature * torch.randn(n, len(self.order_), generator=Generator().manual_seed(seed))
        if informative:
            e[:, self.order_[self.n_informative_ :]] = 0
        return self.pixels(self.law().color(e, self.own(self._rows(label, n)))).numpy()

    @torch.no_grad()
    def transfer(self, X: Any, to_label: Any, *, from_label: Any = None, informative: bool = False) -> np.ndarray:
        """The same styles in another class: each variable keeps its place among those of its class.

        Without `from_label` each observation is taken to be of its likeliest class. With `informative`, the other
        variables take the means of the new class, which for images is what to look at: where an old class hardly
        varies and the new one does, hundreds of small oddities would grow large.
        """
        x = self._observed(X)
        outputs = self.outputs_and_volume(x)
        old = self._likeliest(x) if from_label is None else self._rows(from_label, len(x))
        e = self.law().whiten(outputs[:, :-1], self.own(old))
        if informative:
            e[:, self.order_[self.n_informative_ :]] = 0
        return self.pixels(self.law().color(e, self.own(self._rows(to_label, len(x))))).numpy()

    def _likeliest(self, x: Tensor) -> Tensor:
        """The likeliest class of each observation, one among zeros, (n, classes)."""
        eps = torch.randn(x.shape, generator=Generator().manual_seed(0))  # the densities are of noisy observations
        return one_hot(self._joint(self.outputs_and_volume(x, eps)).argmax(1), len(self.names_))

    def _observed(self, X: Any) -> Tensor:
        check_is_fitted(self)
        x = self._checked(X, reset=False)
        if x.shape[1:] != self.shape_:
            raise InputError(f"GIN learned from observations of shape {self.shape_} and is given {x.shape[1:]}")
        return as_float(torch.from_numpy(x)).float()

    def _rows(self, y: Any, n: int) -> Tensor:
        """Labels as probabilities, (n, classes); one label, or one row of probabilities, stands for all."""
        if np.asarray(y).ndim == 1 and len(np.asarray(y)) == len(self.names_) and soft([y]):
            y = [y]
        if soft(y):
            r = torch.as_tensor(np.asarray(y, np.float32))
            if r.shape[1] != len(self.names_):
                raise InputError(f"rows of {r.shape[1]} probabilities for {len(self.names_)} classes")
            r = r / r.sum(1, keepdim=True)
        else:
            given = as_classes(np.atleast_1d(np.asarray(y)).ravel())
            named = [str(v) for v in given.tolist()]
            unknown = [v for v in named if v not in self.names_]
            if unknown:
                raise InputError(f"no class {unknown[0]!r} (there are: {', '.join(self.names_)})")
            r = one_hot(torch.tensor([self.names_.index(v) for v in named]), len(self.names_))
        if len(r) not in (1, n):
            raise InputError(f"{plural(len(r), 'label')} for {plural(n, 'observation')}")
        return r.expand(n, -1)

    # Diagnosis --------------------------------------------------------------------------------------------------

    def diagnose(self) -> list[str]:
        return [self._enough(), *few(self._gaps()), *few(self._splits()), *self._left_out()]

    def _enough(self) -> str:
        n, classes = self.n_informative_, len(self.names_)
        if self.soft():
            ways = (
                f"Probabilities vary the coefficients of {plural(n, 'informative variable')} in {self.rank_} of {2 * n}"
            )
            return f"{ways} independent ways{': fewer than the theorem asks' if self.rank_ < 2 * n else ''}."
        if classes >= 2 * n + 1:
            return f"{classes} classes are enough for {plural(n, 'informative variable')} (2 n + 1 = {2 * n + 1})."
        most = (classes - 1) // 2
        text = f"{classes} classes guarantee {plural(most, 'variable')} (2 n + 1 conditions for n), and {n} were found"
        return f"{text}: outside the theorem, which is sufficient and not necessary."

    def _rank(self, y: Tensor, r: Tensor) -> int:
        """In how many independent ways the conditions vary the coefficients of the informative variables."""
        chosen = y.std(0).argsort(descending=True)[: self.found(y).informative]
        c = Coefficients(self.first_[:, chosen], self.second_[:, chosen])
        rows = torch.cat([*self.law().mixed(c, torch.unique(r, dim=0)[:2_000])], 1).double()
        return int(torch.linalg.matrix_rank((rows - rows[0]) / rows.std(0).clamp(min=1e-9), rtol=1e-4))

    def _gaps(self) -> list[str]:
        """Classes that nothing connects along a code: then the code may be two variables, or one of two."""
        return [
            f"Nothing lies between classes {a!r} and {b!r} along code {j + 1}: what they share there is a guess."
            for j, i in enumerate(self.informative_)
            for a, b in gaps(self.means_[:, i], self.deviations_[:, i], self.names_)
        ]

    def _splits(self) -> list[str]:
        """Pairs of codes of which no class varies along both: one variable, taken for two."""
        said = []
        s = self.deviations_[:, self.informative_]
        for a in range(s.shape[1]):
            for b in range(a + 1, s.shape[1]):
                pair = s[:, [a, b]]
                apart = bool((pair.min(1).values < ALONE * pair.max(1).values).all())
                if apart and len(set(pair.argmax(1).tolist())) > 1:
                    text = f"No class varies along both code {a + 1} and code {b + 1}: one variable is split in two"
                    said.append(f"{text}; more observations, or another start (restarts=10), can join it.")
        return said

    def _left_out(self) -> list[str]:
        share = float(self.history["alone"].mean()) / self.batch_size
        if share < 0.01:
            return []
        text = f"{share:.0%} of the observations did not count, being alone with their class in a batch"
        return [f"{text}: raise batch_size, or leave rare classes out."]


def gaps(means: Tensor, deviations: Tensor, names: Sequence[str]) -> list[tuple[str, str]]:
    """Neighboring classes, of those with these means and deviations along a line, that nothing connects."""
    order = means.argsort()
    mean, deviation = means[order], deviations[order]
    reach = (mean + deviation).cummax(0).values[:-1]  # how far the classes before reach
    gap = (mean[1:] - deviation[1:] - reach) / torch.maximum(deviation[1:], deviation[:-1]).clamp(min=1e-9)
    rank = order.tolist()
    return [(names[rank[k]], names[rank[k + 1]]) for k in (gap > APART).nonzero()[:, 0].tolist()]


def soft(y: Any) -> bool:
    """Whether labels are rows of probabilities: (n, classes), not negative, that sum to one but for rounding."""
    array = np.asarray(y.to_numpy() if hasattr(y, "columns") else y)
    if array.ndim != 2 or array.shape[1] < 2 or array.dtype.kind not in "fiub" or not np.isfinite(array).all():
        return False
    return bool((array >= 0).all() and np.allclose(array.sum(1), 1, atol=0.02))
