"""Base classes of classifiers: classes read from the data, a head on the codes, and scikit-learn's interface."""

from __future__ import annotations

import copy
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, final

import numpy as np
import torch
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import column_or_1d
from torch import Generator, Tensor
from torch.nn import functional as F

from unweave.data.core import FactorData, split_rows
from unweave.data.dataset import Dataset
from unweave.data.supervision import Plan, label_column, labeled
from unweave.nn.functional import one_hot
from unweave.utils.errors import InputError, plural
from unweave.utils.validation import as_classes

if TYPE_CHECKING:  # see `unweave.methods.mixins`: mixins stand beside `Neural`, not above it
    from unweave.methods.neural import Neural
else:
    Neural = object

CHECKED_OBSERVATIONS = 1_000  # training observations that are classified after training
MAX_LABELS = 100_000  # labels that classes are read from, and at most that a score is computed from
RENDERED_ROWS = 10_000  # observations rendered at a time


@dataclass(kw_only=True, eq=False, repr=False)
class LatentClassifierMixin(ClassifierMixin, Neural):
    """Classification from codes: mix into a `Neural` method whose network has a head `net.classifier`."""

    renamed = MappingProxyType({"width_": "n_factors_", "learned_": "train_accuracy_"})
    needs = "labels"

    label: str = ""
    """Factor that is the class; the first discrete one by default."""

    def as_labels(self, y: Any) -> Any:
        """Return classes; a single column is flattened with scikit-learn's warning."""
        labels = as_classes(y)
        if not hasattr(labels, "columns") and labels.ndim == 2 and labels.shape[1] == 1:
            return column_or_1d(labels, warn=True)
        return labels

    def prepare(self, data: FactorData) -> None:
        """Read the classes from the data."""
        rng = Generator(self.resolve_device()).manual_seed(0)
        column = label_column(data, self.label or None)
        points = data.points_or_sample(MAX_LABELS, rng, limit=sys.maxsize)
        factor = data.factors[column]
        self.label_, self.column_, self.n_factors_ = factor.name, column, len(data.factors)
        self.levels_ = torch.unique(data.labels(points)[:, column].long()).tolist()
        if len(self.levels_) < 2:
            raise InputError(f"label {factor.name!r} has one class only: expected at least two classes")
        self.values_ = [factor.values[k] if factor.values else k for k in self.levels_]

    def plan(self, data: FactorData, n: int, rng: Generator) -> Plan:
        plan = labeled(data, n, rng, factor=self.label or None)
        return Plan(plan.views, {"u": self.class_index(plan.extras["u"])})

    def is_cacheable(self) -> bool:
        return True

    @final
    def class_index(self, u: Tensor) -> Tensor:
        """Return the index of the class of each level of the label, (n,)."""
        return torch.searchsorted(torch.tensor(self.levels_, device=u.device), u.contiguous())

    def named_codes(self) -> dict[str, list[int]]:
        """Return the codes that predict the class and the others, if there are others."""
        codes = super().named_codes()
        predictive = self.select_predictive(torch.arange(self.latent_dim_)[None])[0].tolist()
        others = [j for j in range(self.latent_dim_) if j not in predictive]
        return {"class codes": predictive, "nuisance codes": others} if others else codes

    def select_predictive(self, z: Tensor) -> Tensor:
        """Return the codes that the classifier takes, (n, d) -> (n, d or fewer); all by default."""
        return z

    def cross_entropy(self, net: Any, z: Tensor, u: Tensor) -> Tensor:
        """Return the mean of -log p(u | z) in nats, for codes z (n, d) and classes u (n,)."""
        return F.cross_entropy(net.classifier(self.select_predictive(z)), u)

    @torch.no_grad()
    def after_training(self, data: FactorData) -> None:
        """Measure the accuracy on training observations."""
        net: Any = self.net_
        column = label_column(data, self.label or None)
        points = data.sample(CHECKED_OBSERVATIONS, Generator().manual_seed(0))
        logits = net.classifier(self.select_predictive(self.encode(data.render(points).float().cpu())))
        classes = self.class_index(data.labels(points)[:, column].long())
        self.train_accuracy_ = float((logits.argmax(1).cpu() == classes).float().mean())
        text = f"Training accuracy for {data.factors[column].name!r}: {self.train_accuracy_:.1%}"
        text += f" ({len(self.levels_)} classes); for other observations, call score."
        self.diagnosis_: list[str] = [*getattr(self, "diagnosis_", []), text]

    # Final ------------------------------------------------------------------------------------------------------

    @property
    def classes_(self) -> np.ndarray:
        """The values of the label, (classes,)."""
        return np.array(self.values_)

    @final
    @torch.no_grad()
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class, (n, classes), in the order of `classes_`."""
        z = torch.tensor(np.asarray(self.transform(X)), dtype=torch.float64)
        net: Any = self.net_
        head = copy.deepcopy(net.classifier).double()  # large weights would lose digits in single precision
        return torch.softmax(head(self.select_predictive(z)), 1).numpy()

    @final
    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class, (n,)."""
        probabilities = self.predict_proba(X)  # first, since it refuses what is not fitted
        return self.classes_[probabilities.argmax(1)]

    @final
    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the accuracy; `FactorData` and datasets bring their own labels."""
        if isinstance(X, Dataset):
            X = X.load()
        if isinstance(X, FactorData):
            return self._score_data(X, sample_weight)
        if y is None:
            raise InputError("score needs the classes: pass y, or data that have labels")
        y = self._select_column(as_classes(y))
        self._check_classes(y)
        return float(super().score(X, y, sample_weight))

    def _score_data(self, data: FactorData, sample_weight: Any) -> float:
        named = any(f.name == self.label_ for f in data.factors)
        column = label_column(data, self.label_ if named else self.label or None)
        points = data.points_or_sample(MAX_LABELS, Generator().manual_seed(0))
        values, levels = data.factors[column].values, data.labels(points)[:, column].long().tolist()
        y = np.array([values[k] for k in levels] if values else levels)  # a level of other data may be another class
        self._check_classes(y)
        predictions = np.concatenate([self.predict(data.render(rows)) for rows in split_rows(points, RENDERED_ROWS)])
        return float(accuracy_score(y, predictions, sample_weight=sample_weight))

    def _check_classes(self, y: np.ndarray) -> None:
        learned = set(self.classes_.tolist())
        unknown = [v for v in y.tolist() if v not in learned]
        if unknown:
            names = ", ".join(sorted(map(str, learned)))
            raise InputError(f"class {str(unknown[0])!r} was not learned (there are: {names})")

    def _select_column(self, y: Any) -> np.ndarray:
        """Return the class, (n,), where y may hold nuisances too: the column that it was in training."""
        is_table = hasattr(y, "columns")
        if y.ndim == 1 or y.shape[1] == 1:
            return np.asarray(y).reshape(-1)
        if is_table and self.label_ not in y.columns:
            raise InputError(f"y has no column {self.label_!r} (there are: {', '.join(y.columns)})")
        if not is_table and y.shape[1] != self.n_factors_:
            text = f"y has {plural(y.shape[1], 'column')}, and {plural(self.n_factors_, 'factor')} were learned from"
            raise InputError(f"{text}: expected as many, or the classes alone")
        return y[self.label_].to_numpy() if is_table else y[:, self.column_]


@dataclass(kw_only=True, eq=False, repr=False)
class NuisanceClassifierMixin(LatentClassifierMixin):
    """Classification with nuisance labels in training: all discrete factors but the class, or those named.

    Without nuisances it is an ordinary classifier, and the diagnosis reports that.
    """

    renamed = MappingProxyType(
        {
            **LatentClassifierMixin.renamed,
            "known": "nuisances",
            "columns_": "nuisance_columns_",
            "sizes_": "nuisance_sizes_",
            "seen_": "nuisance_levels_",
        }
    )

    nuisances: tuple[str, ...] = ()
    """Nuisance factors to be invariant to; all discrete factors but the label by default."""

    def prepare(self, data: FactorData) -> None:
        super().prepare(data)
        self.nuisance_columns_ = nuisance_columns(data, self.label, self.nuisances)
        self.nuisance_sizes_ = [int(data.factors[j].size or 0) for j in self.nuisance_columns_]
        self.nuisance_levels_ = [data.levels(j).tolist() for j in self.nuisance_columns_]
        names = ", ".join(data.factors[j].name for j in self.nuisance_columns_)
        self.diagnosis_ = [
            f"Nuisances: {names}." if names else "No nuisance labels: there is nothing to be invariant to."
        ]

    def plan(self, data: FactorData, n: int, rng: Generator) -> Plan:
        plan = super().plan(data, n, rng)
        s = data.labels(plan.views["x"])[:, self.nuisance_columns_].long()
        return Plan(plan.views, plan.extras | {"s": s})

    @final
    def one_hot(self, s: Tensor) -> Tensor:
        """Return the nuisances (n, factors) one-hot, side by side, (n, sum of their sizes)."""
        columns = [one_hot(s[:, i], size) for i, size in enumerate(self.nuisance_sizes_)]
        return torch.cat(columns, 1) if columns else s.new_zeros((len(s), 0), dtype=torch.float32)

    @final
    def uniform_nuisances(self, z: Tensor) -> Tensor:
        """Return equal probabilities of all nuisance values of the training data, (n, sum of their sizes)."""
        both = zip(self.nuisance_sizes_, self.nuisance_levels_, strict=True)
        shares = [(k in levels) / len(levels) for size, levels in both for k in range(size)]
        return z.new_tensor(shares).expand(len(z), -1)


def nuisance_columns(data: FactorData, label: str, names: Sequence[str] = ()) -> list[int]:
    """Return the columns of the named nuisances; of all discrete factors but the class where none is named."""
    own = label_column(data, label or None)
    columns = {f.name: j for j, f in enumerate(data.factors) if f.size is not None and j != own and not f.noise}
    for name in names:
        if name not in columns:
            have = ", ".join(columns) or "none"
            raise InputError(f"nuisances={name!r}: no nuisance of these data (there are: {have})")
        if list(names).count(name) > 1:
            raise InputError(f"nuisances={name!r}: named twice")
    return [columns[name] for name in names or columns]
