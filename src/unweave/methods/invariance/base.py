"""What classifiers share: classes found in the data, a head on the codes, scikit-learn's manners."""

from __future__ import annotations

import copy
import sys
from collections.abc import Sequence
from typing import Any, final

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
from unweave.methods._autoencoding import Autoencoding
from unweave.nn.functional import one_hot
from unweave.utils.errors import InputError, plural
from unweave.utils.validation import as_classes

LOOKED_AT = 1_000  # observations that it is asked for the class of, after training
COUNTED = 100_000  # labels that classes are found in, and most that a score is of
AT_ONCE = 10_000  # observations rendered together


def nuisances(data: FactorData, label: str, known: Sequence[str] = ()) -> list[int]:
    """The columns of the known nuisances: all discrete factors but the class, unless they are named."""
    own = label_column(data, label or None)
    found = {f.name: j for j, f in enumerate(data.factors) if f.size is not None and j != own and not f.noise}
    for name in known:
        if name not in found or list(known).count(name) > 1:
            text = (
                "named twice"
                if name in found
                else f"no nuisance of these data (there are: {', '.join(found) or 'none'})"
            )
            raise InputError(f"known={name!r}: {text}")
    return [found[name] for name in known or found]


class Classifying(ClassifierMixin, Autoencoding):
    """Abstract: learns codes and, from them, the class of an observation; `net.classifier` is the head."""

    needs = "labels"

    label: str = ""
    """the factor that is the class; the first discrete one unless named"""

    def as_labels(self, y: Any) -> Any:
        """Classes; a single column of them may stand upright, which scikit-learn wants to be warned of."""
        labels = as_classes(y)
        if not hasattr(labels, "columns") and labels.ndim == 2 and labels.shape[1] == 1:
            return column_or_1d(labels, warn=True)
        return labels

    def prepare(self, data: FactorData) -> None:
        rng = Generator(self.resolve_device()).manual_seed(0)
        column = label_column(data, self.label or None)
        points = data.points_or_sample(COUNTED, rng, limit=sys.maxsize)
        factor = data.factors[column]
        self.label_, self.column_, self.width_ = factor.name, column, len(data.factors)
        self.levels_ = torch.unique(data.labels(points)[:, column].long()).tolist()
        if len(self.levels_) < 2:
            raise InputError(
                f"label {factor.name!r} has one class only: there is nothing to tell apart; expected two at least"
            )
        self.values_ = [factor.values[k] if factor.values else k for k in self.levels_]

    def plan(self, data: FactorData, n: int, rng: Generator) -> Plan:
        plan = labeled(data, n, rng, factor=self.label or None)
        return Plan(plan.views, {"u": self.index(plan.extras["u"])})

    def is_cacheable(self) -> bool:
        return True

    @final
    def index(self, u: Tensor) -> Tensor:
        """Which of the classes a level of the label is, (n,)."""
        return torch.searchsorted(torch.tensor(self.levels_, device=u.device), u.contiguous())

    def predictive(self, z: Tensor) -> Tensor:
        """The codes that the classifier looks at: all, unless you say otherwise."""
        return z

    def cross_entropy(self, net: Any, z: Tensor, u: Tensor) -> Tensor:
        """Of the classes, in nats."""
        return F.cross_entropy(net.classifier(self.predictive(z)), u)

    @torch.no_grad()
    def after_training(self, data: FactorData) -> None:
        net: Any = self.net_
        column, points = label_column(data, self.label or None), data.sample(LOOKED_AT, Generator().manual_seed(0))
        guess = net.classifier(self.predictive(self.encode(data.render(points).float().cpu()))).argmax(1).cpu()
        self.learned_ = float((guess == self.index(data.labels(points)[:, column].long())).float().mean())
        name = data.factors[column].name
        text = f"Of observations that it learned from, it tells {name!r} right in {self.learned_:.1%}"
        text += f" ({len(self.levels_)} classes); of others, see score."
        self.diagnosis_ = [*getattr(self, "diagnosis_", []), text]

    # Final ------------------------------------------------------------------------------------------------------

    @property
    def classes_(self) -> np.ndarray:
        """What the classes are called, (classes,)."""
        return np.array(self.values_)

    @final
    @torch.no_grad()
    def predict_proba(self, X: Any) -> np.ndarray:
        """How likely each class is, (n, classes), in the order of `classes_`."""
        z = torch.tensor(np.asarray(self.transform(X)), dtype=torch.float64)
        net: Any = self.net_
        head = copy.deepcopy(net.classifier).double()  # a head may be steep: what is left of doubles stays
        return torch.softmax(head(self.predictive(z)), 1).numpy()

    @final
    def predict(self, X: Any) -> np.ndarray:
        """The likeliest class, (n,)."""
        proba = self.predict_proba(X)
        return self.classes_[proba.argmax(1)]

    @final
    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The share of observations whose class is predicted right; data bring their own labels."""
        if isinstance(X, Dataset):
            X = X.load()
        if isinstance(X, FactorData):
            return self._score_of(X, sample_weight)
        if y is None:
            raise InputError("score needs the classes: pass y, or data that have labels")
        y = self._column(as_classes(y))
        self._check_learned(y)
        return float(super().score(X, y, sample_weight))

    def _score_of(self, data: FactorData, sample_weight: Any) -> float:
        """The same of data, in parts: all of their images at once may be too many."""
        named = any(f.name == self.label_ for f in data.factors)
        column = label_column(data, self.label_ if named else self.label or None)
        points = data.points_or_sample(COUNTED, Generator().manual_seed(0))
        values, level = data.factors[column].values, data.labels(points)[:, column].long().tolist()
        y = np.array([values[k] for k in level] if values else level)  # a level of other data may be another class
        self._check_learned(y)
        guess = np.concatenate([self.predict(data.render(part)) for part in split_rows(points, AT_ONCE)])
        return float(accuracy_score(y, guess, sample_weight=sample_weight))

    def _check_learned(self, y: np.ndarray) -> None:
        known = set(self.classes_.tolist())
        unknown = [v for v in y.tolist() if v not in known]
        if unknown:
            there = ", ".join(sorted(map(str, known)))
            raise InputError(f"class {str(unknown[0])!r} was not learned (there are: {there})")

    def _column(self, y: Any) -> np.ndarray:
        """The class, where y holds nuisances as well: the column that it was when this was learned."""
        table = hasattr(y, "columns")
        if y.ndim == 1 or y.shape[1] == 1:
            return np.asarray(y).reshape(-1)
        if table and self.label_ not in y.columns:
            raise InputError(f"y has no column {self.label_!r} (there are: {', '.join(y.columns)})")
        if not table and y.shape[1] != self.width_:
            text = f"y has {plural(y.shape[1], 'column')}, and {plural(self.width_, 'factor')} were learned from"
            raise InputError(f"{text}: expected as many, or the classes alone")
        return y[self.label_].to_numpy() if table else y[:, self.column_]


class Informed(Classifying):
    """Abstract: a classifier that is told the nuisances of its training data, all discrete factors but the label.

    Without any it is the classifier that it is made of, and says so.
    """

    known: tuple[str, ...] = ()
    """nuisances that it is told of; all discrete factors but the label unless named"""

    def prepare(self, data: FactorData) -> None:
        super().prepare(data)
        self.columns_ = nuisances(data, self.label, self.known)
        self.sizes_ = [int(data.factors[j].size or 0) for j in self.columns_]
        self.seen_ = [data.levels(j).tolist() for j in self.columns_]
        told = ", ".join(data.factors[j].name for j in self.columns_)
        self.diagnosis_ = [f"Nuisances: {told}." if told else "No nuisances are known: nothing to be invariant to."]

    def plan(self, data: FactorData, n: int, rng: Generator) -> Plan:
        plan = super().plan(data, n, rng)
        s = data.labels(plan.views["x"])[:, self.columns_].long()
        return Plan(plan.views, plan.extras | {"s": s})

    @final
    def one_hot(self, s: Tensor) -> Tensor:
        """Return the nuisances (n, factors) one-hot, side by side, (n, sum of their sizes)."""
        parts = [one_hot(s[:, i], size) for i, size in enumerate(self.sizes_)]
        return torch.cat(parts, 1) if parts else s.new_zeros((len(s), 0), dtype=torch.float32)

    @final
    def any_nuisance(self, z: Tensor) -> Tensor:
        """All values of every nuisance that it was taught with equally likely, (n, sum of their sizes)."""
        both = zip(self.sizes_, self.seen_, strict=True)
        return z.new_tensor([(k in seen) / len(seen) for size, seen in both for k in range(size)]).expand(len(z), -1)
