"""GIN: nonlinear ICA with labels, by a volume-preserving flow."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Literal, final

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Generator, Tensor, nn

from unweave.data.core import FactorData
from unweave.data.supervision import Plan
from unweave.methods.base import FigureName
from unweave.methods.encoding import log_volume, to_units
from unweave.methods.flows import class_diagnosis as diagnosis
from unweave.methods.flows import class_statistics as per_class
from unweave.methods.flows.base import NormalizingFlow
from unweave.methods.flows.families import FAMILIES, FamilyName, check_family, check_support
from unweave.methods.flows.family import Coefficients, Family
from unweave.methods.flows.features import sample_points
from unweave.methods.flows.labels import (
    as_floats,
    check_classes,
    check_label_loss,
    find_classes,
    is_soft,
    label_points,
    regression_weights,
    to_probabilities,
)
from unweave.nn.functional import one_hot
from unweave.utils.errors import InputError
from unweave.utils.validation import as_classes


@final
class GIN(NormalizingFlow):
    """General incompressible-flow network: labels identify the latent variables, deviations the informative ones.

    Sorrenson, Rother and Koethe (2020). Labels are classes, or rows of class probabilities. Every class has its own
    mean and deviation along every latent variable, computed from each batch, or learned.

    Learned attributes, besides those of `NormalizingFlow`:
        class_names_, class_shares_: Names of the classes, and their shares of the data, (classes,).
        means_, deviations_: Of the outputs in every class, (classes, features).
        first_, second_: Coefficients of the family for every class, (classes, features).
        log_likelihood_: Mean log-likelihood per observation, in nats.
        rank_: Independent ways in which soft labels vary the coefficients.
        label_cross_entropy_: Mean of -log p(class | y), in nats.

    Example:
        >>> import numpy as np
        >>> labels = np.arange(100) % 5
        >>> x = np.random.default_rng(0).normal(size=(100, 4)) + labels[:, None]
        >>> method = GIN(latent_dim=2, steps=5, batch_size=50, blocks=2).fit(x, labels)
        >>> method.transform(x).shape
        (100, 2)
    """

    name = "gin"
    paper = "Sorrenson, Rother and Koethe (2020), Eqs. 8 to 12"
    needs = "labels"
    renamed = MappingProxyType({
        **NormalizingFlow.renamed, "names_": "class_names_", "soft_": "has_soft_labels_", "column_": "label_column_",
        "shares_": "class_shares_", "merit_": "log_likelihood_",
    })  # fmt: skip

    label: str = ""
    """Name of the factor that is the label. Default: the first discrete one."""
    family: FamilyName = "normal"
    """Distribution of the latent variables given the label."""
    statistics: Literal["batch", "learned"] = "batch"
    """Source of every class's parameters: the observations of a batch, or gradient descent."""
    label_weight: float = 0.0
    """Weight of the labels' cross-entropy in the loss. Restarts are then compared by it, and not by likelihood."""
    label_dim: int = 0
    """Number of outputs that predict the label in it: the number of informative variables. 0: all outputs."""

    # Loss -------------------------------------------------------------------------------------------------------

    def loss(self, net: Any, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """Compute Eq. 10, the negative log-likelihood in nats: the mean of -log p(y | u) - log|det J|.

        `nats` is Eq. 10; `loss` is Eq. 10 per feature, so that one learning rate fits all sizes. A class with
        one observation in the batch has no deviation: it is left out, and counted as "alone".
        """
        y, log_det = net.flow(self.to_network_input(batch["x"], batch["eps"]))  # (n, d), (n,)
        coefficients, counted = self._condition_coefficients(net, y, batch)  # (n, d) each, (n,)
        # normal family: (y - mu)^2 / (2 sigma^2) + log sigma + const, per feature
        nats = -self.latent_family().log_prob(y, coefficients).sum(1) - log_det
        mean = (nats * counted).sum() / counted.sum().clamp(min=1)  # Eq. 10
        terms = {"loss": mean / y.shape[1], "nats": mean, "alone": (1 - counted).sum()}
        if not self.label_weight:
            return terms
        r = batch["r"] * counted[:, None]
        entropy = self.label_cross_entropy(y, self._class_coefficients(net, y, r / r.sum(0).clamp(min=1)), r)
        return terms | {"loss": terms["loss"] + self.label_weight * entropy, "cross_entropy": entropy}

    def label_cross_entropy(self, y: Tensor, c: Coefficients, r: Tensor) -> Tensor:
        """Compute the mean of -log p(label | y) in nats from all outputs y (n, d), of which the first predict it."""
        s = slice(self.label_dim or None)
        return per_class.label_cross_entropy(self.latent_family(), y[:, s], c.columns(s), r)

    def _condition_coefficients(self, net: Any, y: Tensor, batch: dict[str, Tensor]) -> tuple[Coefficients, Tensor]:
        """Return the coefficients of every observation's condition u, (n, d), and which observations count, (n,)."""
        r = batch["r"]  # (n, classes): one-hot classes, or their probabilities
        if self.has_soft_labels_:
            c = self._class_coefficients(net, y, batch["p"])
            return self.latent_family().mix(c, r), torch.ones_like(r[:, 0])
        count = r.sum(0)
        usable = r * (count >= 2)
        counted = usable.sum(1)  # (n,): one, or zero for an observation that is alone with its class
        c = self._class_coefficients(net, y, r / count.clamp(min=1))
        return c.select(torch.where(counted[:, None] > 0, usable, 1 / r.shape[1])), counted

    def _class_coefficients(self, net: Any, y: Tensor, p: Tensor) -> Coefficients:
        """Return the coefficients of every class, (classes, d): Eqs. 11 and 12 with weights p, or learned."""
        if self.statistics == "learned":
            return self.latent_family().from_location_spread(net.location, net.spread)
        return self.latent_family().fit(y, p)

    def latent_family(self) -> Family:
        """Return the family of distributions of the latent variables."""
        return FAMILIES[self.family]

    def build(self, shape: tuple[int, ...]) -> nn.Module:
        net = super().build(shape)
        if self.statistics == "learned":
            for parameter in ("location", "spread"):
                setattr(net, parameter, nn.Parameter(torch.zeros(len(self.class_names_), int(np.prod(shape)))))
        return net

    def sample_noise(self, n: int, rng: Generator) -> dict[str, Tensor]:
        return {"eps": torch.randn(n, *self.shape_, generator=rng, device=rng.device)}

    # Labels -----------------------------------------------------------------------------------------------------

    def as_labels(self, y: Any) -> Any:
        """Return classes, or rows of probabilities (n, classes) as floats."""
        return as_floats(y) if is_soft(y) else as_classes(y)

    def prepare(self, data: FactorData) -> None:
        super().prepare(data)
        counts = self.conditions(data, label_points(data, self._rng())).sum(0)
        check_classes(self.class_names_, counts, self.batch_size)
        check_label_loss(self.label_weight, self.label_dim, self.shape_, soft=self.has_soft_labels_)
        largest = float(data.draw(self.observations, self._rng()).x.abs().max())
        check_family(self.family, soft=self.has_soft_labels_, largest=largest)
        if self.has_soft_labels_:
            self.outlook_.append("Labels are probabilities.")
            return
        points = sample_points(data, self._rng())
        x, r = data.render(points).float().flatten(1).cpu(), self.conditions(data, points).cpu()
        self.outlook_ += diagnosis.describe_outlook(x, r, self.class_names_)

    def conditions(self, data: FactorData, points: Tensor) -> Tensor:
        """Return class probabilities of points, (n, classes); one-hot where labels are classes."""
        c = data.labels(points)
        if not hasattr(self, "class_names_"):
            classes = find_classes(data, c, self.label)
            self.class_names_, self.has_soft_labels_ = classes.names, classes.column is None
            if not self.has_soft_labels_:
                self.label_column_, self.levels_ = classes.column, classes.levels
        if self.has_soft_labels_:
            return c.float() / c.float().sum(1, keepdim=True)
        u = c[:, self.label_column_].long()
        return (u[:, None] == torch.tensor(self.levels_, device=u.device)).float()

    def is_cacheable(self) -> bool:
        return True

    def plan(self, data: FactorData, n: int, rng: Generator) -> Plan:
        points = data.sample(n, rng)
        r = self.conditions(data, points)
        if not self.has_soft_labels_:
            return Plan({"x": points}, {"r": r})
        batches = r.reshape(-1, min(self.batch_size, n), r.shape[1])
        return Plan({"x": points}, {"r": r, "p": regression_weights(batches).reshape(r.shape)})

    # After training ---------------------------------------------------------------------------------------------

    @torch.no_grad()
    def summarize(self, data: FactorData, rng: Generator) -> Tensor:
        points, every = sample_points(data, rng), label_points(data, self._rng())
        r, every_r = self.conditions(data, points), self.conditions(data, every)
        self.class_shares_ = every_r.mean(0)  # (classes,)
        if not self.has_soft_labels_:
            points, r = per_class.fill_rare_classes(points, r, every, every_r)
        y, log_det = self.noisy_outputs_and_log_det(data, points, rng).tensor_split([-1], 1)
        family = self.latent_family()
        if self.statistics == "learned":
            net: Any = self.net_
            self.first_, self.second_ = (v.clone() for v in family.from_location_spread(net.location, net.spread))
        else:
            self.first_, self.second_ = per_class.fit_classes(family, y, r, soft=self.has_soft_labels_)
        c = Coefficients(self.first_, self.second_)
        if self.has_soft_labels_:
            self.means_, self.deviations_ = self.first_ / self.second_, self.second_.rsqrt()
            chosen = y.std(0).argsort(descending=True)[: self.find_informative(y).informative]
            self.rank_ = per_class.coefficient_rank(family, c.columns(chosen), r)
        else:
            self.means_, self.deviations_ = per_class.class_moments(y, r)
            self.label_cross_entropy_ = float(self.label_cross_entropy(y, c, r))
        self.log_likelihood_ = float((family.log_prob(y, self.coefficients(r)).sum(1) + log_det[:, 0]).mean())
        return y

    def coefficients(self, r: Tensor) -> Coefficients:
        """Return the learned coefficients of observations with class probabilities r, (n, classes) -> (n, features)."""
        c = Coefficients(self.first_, self.second_)
        if self.has_soft_labels_ or bool((r.amax(1) < 1).any()):
            return self.latent_family().mix(c, r)
        return Coefficients(*(v[r.argmax(1)] for v in c))

    def restart_score(self) -> float:
        return -self.label_cross_entropy_ if self.label_weight else self.log_likelihood_

    def figures(self) -> tuple[FigureName, ...]:
        names = tuple("class-variables" if name == "variables" else name for name in super().figures())
        return (*names, "samples") if "class-variables" in names else names

    def class_statistics(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        both = zip(self.means_.numpy(), self.deviations_.numpy(), strict=True)
        return dict(zip(self.class_names_, both, strict=True))

    def encode(self, x: Tensor) -> Tensor:
        return self.latent_family().to_latent(self.outputs(x)[:, self.order_[: self.latent_dim_]])

    def decode(self, z: Tensor) -> Tensor:
        check_support(self.family, z)
        return self.to_observations(self.to_outputs(self.latent_family().from_latent(z)))

    # Densities and samples --------------------------------------------------------------------------------------

    @torch.no_grad()
    def log_prob(self, X: Any, y: Any = None) -> np.ndarray:
        """Return log-densities of observations given their labels y, in nats, (n,); without y, of the mixture.

        This is the density of observations with the noise that training adds. Add it to clean ones first.
        """
        x = self.to_tensor(X)
        outputs = self.outputs_and_log_det(x)
        outputs[:, -1] -= log_volume(self)
        if y is not None:
            coefficients = self.coefficients(to_probabilities(y, self.class_names_, len(x)))
            return (self.latent_family().log_prob(outputs[:, :-1], coefficients).sum(1) + outputs[:, -1]).numpy()
        return torch.logsumexp(self._joint_log_prob(outputs), 1).numpy()

    def _joint_log_prob(self, outputs: Tensor) -> Tensor:
        """Return log p(x, class), (n, classes), from outputs with log|det J| in the last column."""
        family, c = self.latent_family(), Coefficients(self.first_, self.second_)
        return per_class.joint_log_prob(family, c, self.class_shares_, outputs)

    @torch.no_grad()
    def sample(
        self, label: Any, n: int = 1, *, temperature: float = 1.0, informative: bool = False, seed: int = 0
    ) -> np.ndarray:
        """Draw n observations of a class, (n, *shape); the same seed gives the same styles in every class.

        Deviations are multiplied by the temperature. With `informative`, all other variables are at their means.
        """
        check_is_fitted(self)
        if n < 1 or temperature < 0:
            raise InputError(f"n={n}, temperature={temperature}: expected at least 1, and at least 0")
        e = temperature * torch.randn(n, len(self.order_), generator=Generator().manual_seed(seed))
        return self._color(e, label, informative=informative)

    @torch.no_grad()
    def transfer(self, X: Any, to_label: Any, *, from_label: Any = None, informative: bool = False) -> np.ndarray:
        """Return observations with the same style in another class: each variable keeps its quantile, (n, *shape).

        Without `from_label`, each observation is taken to be of its most probable class. With `informative`, all other
        variables are at the means of the new class. Prefer this for images: where the old class hardly varies and the
        new one does, hundreds of small deviations would grow large.
        """
        x = self.to_tensor(X)
        if from_label is None:
            eps = torch.randn(x.shape, generator=Generator().manual_seed(0))  # densities are of noisy observations
            likeliest = self._joint_log_prob(self.outputs_and_log_det(x, eps)).argmax(1)
            source = one_hot(likeliest, len(self.class_names_))
        else:
            source = to_probabilities(from_label, self.class_names_, len(x))
        e = self.latent_family().whiten(self.outputs(x), self.coefficients(source))
        return self._color(e, to_label, informative=informative)

    def _color(self, e: Tensor, label: Any, *, informative: bool) -> np.ndarray:
        """Return observations of a class from standard normal variables e, (n, features) -> (n, *shape)."""
        if informative:
            e[:, self.order_[self.n_informative_ :]] = 0
        coefficients = self.coefficients(to_probabilities(label, self.class_names_, len(e)))
        return to_units(self, self.to_observations(self.latent_family().color(e, coefficients))).numpy()

    # Diagnosis --------------------------------------------------------------------------------------------------

    def diagnose(self) -> list[str]:
        omitted = float(self.history["alone"].mean()) / self.batch_size
        moments = self.means_[:, self.informative_], self.deviations_[:, self.informative_]
        rank = self.rank_ if self.has_soft_labels_ else None
        return diagnosis.describe_classes(self.class_names_, moments, rank, omitted)
