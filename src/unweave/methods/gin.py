"""GIN: nonlinear ICA with labels, by a flow that keeps volumes."""

from __future__ import annotations

import sys
from typing import Any, Literal, final

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Generator, Tensor, nn

from ..checks import as_array, as_classes, check_finite
from ..data import Factor, FactorData, as_float
from ..errors import InputError, plural
from ..families import FAMILIES, Coefficients, Family, FamilyName
from ..supervision import Plan, labelled
from ._flow import FlowMethod

COUNTED = 100_000  # labels that classes are found in, where the data have no end
APART = 3.0  # deviations between two neighbouring classes from which on nothing fills the gap between them
ALONE = 0.2  # of the larger deviation, below which a class does not vary along a code


@final
class GIN(FlowMethod):
    """GIN: labels tell the latent variables apart, deviations tell the informative ones from noise.

    Labels are classes, or rows of class probabilities. A class has means and deviations of its own along every latent
    variable, taken from each batch, or learned.
    """

    paper = "Sorrenson, Rother and Koethe (2020), Eqs. 8 to 12"
    needs = "labels"

    label: str = ""
    """the factor that is the label; the first discrete one unless named"""
    family: FamilyName = "normal"
    """of the latent variables, given the label"""
    statistics: Literal["batch", "learned"] = "batch"
    """where each class's parameters come from: the observations of a batch, or gradient descent"""

    def as_labels(self, y: Any) -> Any:
        """Classes; or floats (n, classes) whose rows sum to one: probabilities."""
        return np.asarray(y, np.float64) if soft(y) else as_classes(y)

    def prepare(self, data: FactorData) -> None:
        super().prepare(data)
        given = self._given(data)
        if given.ndim == 2:
            self.names_ = [f.name for f in data.factors]
            counts = given.sum(0)
        else:
            factor = self._factor(data)
            self.levels_ = torch.unique(given).tolist()
            self.names_ = [str(factor.values[k] if factor.values else k) for k in self.levels_]
            counts = torch.stack([(given == k).sum() for k in self.levels_])
        if len(self.names_) < 2:
            raise InputError(f"one class only ({self.names_[0]!r}): GIN tells variables apart by how classes differ")
        few = [name for name, count in zip(self.names_, counts.tolist(), strict=True) if count < 2]
        if few:
            raise InputError(f"class {few[0]!r} has fewer than two observations: it has no deviation; leave it out")

    def _points(self, data: FactorData) -> Tensor:
        """All points, or many where there is no end to them."""
        points = data.observed(sys.maxsize)
        device = self.found_device()
        return data.sample(COUNTED, Generator(device).manual_seed(0)) if points is None else points

    def _given(self, data: FactorData) -> Tensor:
        """Class numbers, (n,), or probabilities, (n, classes), of all points."""
        c = data.labels(self._points(data))
        probable = _probabilities(data, c)
        return c.float() if probable else c[:, data.column(self._factor(data).name)].long()

    def _factor(self, data: FactorData) -> Factor:
        name = self.label or next((f.name for f in data.factors if f.size is not None), None)
        if name is None:
            labelled(data, 1, Generator())  # which says what is wrong
        return data.factors[data.column(str(name))]

    def build(self, shape: tuple[int, ...]) -> nn.Module:
        net = super().build(shape)
        if self.statistics == "learned":
            features = int(np.prod(shape))
            net.location = nn.Parameter(torch.zeros(len(self.names_), features))
            net.spread = nn.Parameter(torch.zeros(len(self.names_), features))
        return net

    def stays(self) -> bool:
        return True

    def plan(self, data: FactorData, n: int, rng: Generator) -> Plan:
        if not hasattr(self, "levels_"):
            points = data.sample(n, rng)
            return Plan({"x": points}, {"r": data.labels(points).float()})
        plan = labelled(data, n, rng, factor=self.label or None)
        u = plan.given["u"]
        levels = torch.tensor(self.levels_, device=u.device)
        return Plan(plan.views, {"r": (u[:, None] == levels).float()})  # (n, classes)

    def draws(self, n: int, rng: Generator) -> dict[str, Tensor]:
        return {"eps": torch.randn(n, *self.shape_, generator=rng, device=rng.device)}

    def loss(self, net: Any, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        r = batch["r"]  # (n, classes): the condition u
        y, log_det = net.flow(self.shaped(batch["x"] + self.noise * batch["eps"]))  # (n, d), (n,)
        count = r.sum(0)
        c = self.coefficients(net, y, r / count.clamp(min=1))
        known = r * (count >= 2)  # a class that is alone in its batch has no deviation
        share = known.sum(1)  # (n,): one, or zero for an observation of such a class, which then does not count
        u = torch.where(share[:, None] > 0, known / share[:, None].clamp(min=1e-6), 1 / r.shape[1])
        nats = -self.law().log_prob(y, c.of(u)).sum(1) - log_det
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
    def summarise(self, data: FactorData, rng: Generator) -> Tensor:
        points, x = self.observe(data, rng)
        c = data.labels(points).cpu()
        if hasattr(self, "levels_"):
            u = c[:, data.column(self._factor(data).name)].long()
            r = (u[:, None] == torch.tensor(self.levels_)).float()
        else:
            r = c.float()
        self.shares_ = r.mean(0)  # (classes,)
        y = self.outputs(x)
        fitted = self.coefficients(self.net_, y, r / r.sum(0).clamp(min=1e-6))
        self.first_, self.second_ = (v.detach().clone() for v in fitted)
        self.merit_ = float(self._log_prob(x, self.fitted().of(r)).mean())
        p = r / r.sum(0).clamp(min=1e-6)
        self.means_ = (p.T.double() @ y.double()).float()  # (classes, features), of y
        squares = p.T.double() @ y.double().square() - self.means_.double().square()
        self.deviations_ = squares.clamp(min=0).sqrt().float()
        return y

    def merit(self) -> float:
        """The mean log-likelihood."""
        return self.merit_

    def fitted(self) -> Coefficients:
        """Those of the classes, from all the data, (classes, features)."""
        return Coefficients(self.first_, self.second_)

    def _log_prob(self, x: Tensor, c: Coefficients) -> Tensor:
        """In nats, (n,)."""

        def both(net: Any, part: Tensor) -> Tensor:
            y, log_det = net.flow(self.shaped(part))
            return torch.cat([y, log_det[:, None]], 1)

        y, log_det = self.applied(both, x).tensor_split([-1], 1)
        return self.law().log_prob(y, c).sum(1) + log_det[:, 0]

    def encode(self, x: Tensor) -> Tensor:
        return self.law().latent(self.outputs(x)[:, self.order_[: self.latent_dim_]])

    def decode(self, z: Tensor) -> Tensor:
        return self.pixels(self.filled(self.law().free(z)))

    @torch.no_grad()
    def log_prob(self, X: Any, y: Any = None) -> np.ndarray:
        """Log-density of observations given their labels, in nats, (n,); without labels, that of the mixture."""
        x = self._observed(X)
        if y is not None:
            return self._log_prob(x, self.fitted().of(self._rows(y, len(x)))).numpy()
        each = [self._log_prob(x, Coefficients(*(v[[k]] for v in self.fitted()))) for k in range(len(self.names_))]
        return torch.logsumexp(torch.stack(each, 1) + self.shares_.log(), 1).numpy()

    @torch.no_grad()
    def sample(
        self, label: Any, n: int = 1, *, temperature: float = 1.0, informative: bool = False, seed: int = 0
    ) -> np.ndarray:
        """n observations of a class, (n, *shape); the same seed gives the same styles in every class.

        Deviations are multiplied by the temperature. With `informative`, the other variables stay at their means.
        """
        check_is_fitted(self)
        if n < 1 or temperature < 0:
            raise InputError(f"n={n}, temperature={temperature}: wanted at least 1, and at least 0")
        e = temperature * torch.randn(n, len(self.order_), generator=Generator().manual_seed(seed))
        if informative:
            e[:, self.order_[self.n_informative_ :]] = 0
        c = self.fitted().of(self._rows([label] * n, n))
        return self.pixels(self.law().colour(e, c)).numpy()

    @torch.no_grad()
    def transfer(self, X: Any, to_label: Any, *, from_label: Any = None) -> np.ndarray:
        """The same styles in another class: each variable keeps its place among those of its class.

        Without `from_label` each observation is taken to be of its likeliest class.
        """
        x = self._observed(X)
        n = len(x)
        old = self._likeliest(x) if from_label is None else self._rows(from_label, n)
        e = self.law().whiten(self.outputs(x), self.fitted().of(old))
        return self.pixels(self.law().colour(e, self.fitted().of(self._rows(to_label, n)))).numpy()

    def _likeliest(self, x: Tensor) -> Tensor:
        each = [self._log_prob(x, Coefficients(*(v[[k]] for v in self.fitted()))) for k in range(len(self.names_))]
        return torch.eye(len(self.names_))[(torch.stack(each, 1) + self.shares_.log()).argmax(1)]

    def _observed(self, X: Any) -> Tensor:
        check_is_fitted(self)
        array = as_array(X, "Input X")
        check_finite(array)
        if array.shape[1:] != self.shape_:
            raise InputError(f"GIN learned from observations of shape {self.shape_} and is given {array.shape[1:]}")
        return as_float(torch.from_numpy(array)).float()

    def _rows(self, y: Any, n: int) -> Tensor:
        """Labels as probabilities, (n, classes); one label stands for all."""
        if soft(y):
            r = torch.as_tensor(np.asarray(y, np.float32))
            if r.shape[1] != len(self.names_):
                raise InputError(f"rows of {r.shape[1]} probabilities for {len(self.names_)} classes")
        else:
            given = [str(v) for v in np.atleast_1d(np.asarray(y)).tolist()]
            unknown = [v for v in given if v not in self.names_]
            if unknown:
                raise InputError(f"no class {unknown[0]!r} (there are: {', '.join(self.names_)})")
            r = torch.eye(len(self.names_))[[self.names_.index(v) for v in given]]
        if len(r) not in (1, n):
            raise InputError(f"{plural(len(r), 'label')} for {plural(n, 'observation')}")
        return r.expand(n, -1)

    # Diagnosis --------------------------------------------------------------------------------------------------

    def diagnose(self, y: Tensor) -> list[str]:
        return [self._conditions(), *few(self._gaps()), *few(self._splits()), *self._degenerate()]

    def _conditions(self) -> str:
        n, classes = self.n_informative_, len(self.names_)
        if not hasattr(self, "levels_"):
            return "Labels are probabilities: there are as many conditions as different rows of them."
        if classes >= 2 * n + 1:
            return f"{classes} classes are enough for {plural(n, 'informative variable')} (2 n + 1 = {2 * n + 1})."
        most = (classes - 1) // 2
        text = f"{classes} classes guarantee {plural(most, 'variable')} (2 n + 1 conditions for n), and {n} were found"
        return f"{text}: outside the theorem, which is sufficient and not necessary."

    def _gaps(self) -> list[str]:
        """Classes that nothing connects along a code: then the code may be two variables, or one of two."""
        said = []
        for j, i in enumerate(self.informative_):
            order = self.means_[:, i].argsort()
            mean, deviation = self.means_[order, i], self.deviations_[order, i]
            reach = (mean + deviation).cummax(0).values[:-1]  # how far the classes before reach
            gap = (mean[1:] - deviation[1:] - reach) / torch.maximum(deviation[1:], deviation[:-1]).clamp(min=1e-9)
            for k in (gap > APART).nonzero()[:, 0].tolist():
                a, b = self.names_[order[k]], self.names_[order[k + 1]]
                text = f"Nothing lies between classes {a!r} and {b!r} along code {j + 1}"
                said.append(f"{text}: what they share there is a guess.")
        return said

    def _splits(self) -> list[str]:
        """Pairs of codes of which no class varies along both: one variable, taken for two."""
        said = []
        s = self.deviations_[:, self.informative_]
        for a in range(s.shape[1]):
            for b in range(a + 1, s.shape[1]):
                pair = s[:, [a, b]]
                if (
                    bool((pair.min(1).values < ALONE * pair.max(1).values).all())
                    and len(set(pair.argmax(1).tolist())) > 1
                ):
                    said.append(
                        f"No class varies along both code {a + 1} and code {b + 1}: one variable is split in two; "
                        "more observations, or another start (restarts=10), can join it."
                    )
        return said

    def _degenerate(self) -> list[str]:
        if not self.still_:
            return []
        text = f"{self.still_} of {len(self.order_)} features are constant: a flow cannot keep volumes along them"
        return [f"{text}, so what it sees there is the added noise (deviation {self.noise:g})."]


def few(said: list[str], most: int = 3) -> list[str]:
    """The first sentences, and how many more there are like them."""
    return said if len(said) <= most else [*said[:most], f"(And {len(said) - most} more of this kind.)"]


def soft(y: Any) -> bool:
    """Whether labels are rows of probabilities: floats (n, classes), not negative, that sum to one."""
    if hasattr(y, "columns"):
        y = y.to_numpy()
    array = np.asarray(y)
    if array.ndim != 2 or array.shape[1] < 2 or array.dtype.kind != "f" or not np.isfinite(array).all():
        return False
    return bool((array >= 0).all() and np.allclose(array.sum(1), 1, atol=1e-4))


def _probabilities(data: FactorData, c: Tensor) -> bool:
    return all(f.size is None for f in data.factors) and soft(c.numpy(force=True))
