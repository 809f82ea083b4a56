"""Advice: which methods suit the data and what the user knows, how to run them, and what cannot work."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from markupsafe import Markup

from unweave import catalog
from unweave.data.containers import Paired
from unweave.data.conversion import as_data
from unweave.data.core import FactorData
from unweave.data.dataset import Dataset
from unweave.experiments.advice_rules import DATA_ONLY, SIDE_INFORMATION, Obstacle, Rule, Situation, Suggestion, pca
from unweave.experiments.commands import fit_call, fit_command
from unweave.experiments.inspection import Inspection, inspect_data
from unweave.experiments.timing import estimate_seconds, format_duration
from unweave.utils import html
from unweave.utils.errors import InputError

MAX_RECOMMENDATIONS = 3


@dataclass(frozen=True)
class Recommendation:
    """A method that suits the data.

    Example:
        >>> Recommendation("pca", "30 rows", "unweave fit pca my.csv", 0.2).text()
        'pca: 30 rows (less than 5 s)'
    """

    method: str
    reason: str
    command: str
    """Command, or Python call, to copy."""
    seconds: float | None = None
    """Estimated time on this machine; None where it was not measured."""

    def text(self) -> str:
        """Return method, reason and time."""
        time = f" ({self.time()})" if self.time() else ""
        return f"{self.method}: {self.reason}{time}"

    def as_html(self) -> Markup:
        """Return method, reason and time, and the command below."""
        time = f" ({self.time()})" if self.time() else ""
        line = Markup("<strong>{}</strong>: {}{}<br>{}")
        return line.format(self.method, self.reason, time, html.code(self.command))

    def time(self) -> str:
        """Return the estimated time in words; '' where it was not measured."""
        return format_duration(self.seconds) if self.seconds is not None else ""


@dataclass(frozen=True)
class Advice:
    """Recommended methods with commands, what cannot work and why, and the facts behind both.

    Example:
        >>> import numpy as np
        >>> advice = advise(np.random.default_rng(0).uniform(size=(30, 4)))
        >>> advice.recommendations[0].method
        'pca'
    """

    facts: Inspection
    recommendations: tuple[Recommendation, ...]
    cannot: tuple[Obstacle, ...]
    hints: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        """Return recommendations with commands, facts and obstacles, for notebooks."""
        recommended = html.items(each.as_html() for each in self.recommendations)
        recommended = recommended or html.text("No method is recommended: see what cannot work.")
        cannot = html.items(f"{each.method}: {each.reason}" for each in self.cannot)
        obstacles = html.details("What cannot work here, and why", cannot) if self.cannot else ""
        facts = html.items(self.facts.lines())
        return html.page(
            "Advice",
            "Recommended methods",
            recommended,
            html.items(self.hints),
            html.text("The data:"),
            facts,
            obstacles,
        )

    def lines(self) -> list[str]:
        """Return facts, recommendations and obstacles as lines of text."""
        lines = ["The data:", *(f"- {line}" for line in self.facts.lines()), "", "Recommended:"]
        for i, each in enumerate(self.recommendations, 1):
            lines += [f"{i}. {each.text()}", f"   {each.command}"]
        if not self.recommendations:
            lines.append("nothing: see below")
        if self.cannot:
            lines += ["", "Cannot work here:", *(f"- {each.method}: {each.reason}" for each in self.cannot)]
        return [*lines, *(f"\n{hint}" for hint in self.hints)]

    def as_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "facts": self.facts.as_dict(),
            "recommendations": [asdict(each) for each in self.recommendations],
            "cannot": [each._asdict() for each in self.cannot],
            "hints": list(self.hints),
        }


def advise(
    data: Any,
    y: Any = None,
    *,
    labels: str | None = None,
    nuisances: Sequence[str] = (),
    pairs: bool = False,
    augmentations: bool = False,
    correlated: bool = False,
    timed: bool = True,
) -> Advice:
    """Recommend one to three methods for data and for what is known about them.

    Args:
        data: An array (n, d) or (n, ..., h, w), a `FactorData`, a `Dataset`, or the path of your own data.
        y: Labels of an array, (n,) or a table; the first discrete column is the class unless `labels` names another.
        labels: Factor of the data that is the class of each observation.
        nuisances: Factors that a classifier should ignore.
        pairs: Whether there are pairs of observations that share some factors.
        augmentations: Whether images may be moved, rotated and scaled without changing what matters.
        correlated: Whether the factors may be correlated.
        timed: Whether to estimate the time of each method by a few real steps, which takes seconds.

    Example:
        >>> import numpy as np
        >>> factors = np.random.default_rng(0).uniform(size=(400, 3))
        >>> advice = advise(factors @ np.array([[1.0, 2, 0, 1], [0, 1, 3, 1], [2, 0, 1, 1]]), timed=False)
        >>> print(advice.recommendations[0].command)
        unweave.methods.LinearICA(latent_dim=3).fit(X)
    """
    dataset = catalog.dataset(data) if isinstance(data, str) or hasattr(data, "__fspath__") else data
    source = dataset.load() if isinstance(dataset, Dataset) else as_data(dataset, y)
    if y is not None and labels is None:
        labels = next((factor.name for factor in source.factors if factor.size is not None), None)
        labels = labels or (source.factors[0].name if source.factors else None)
    for name in filter(None, (labels, *nuisances)):
        source.column(name)  # raises InputError for a factor that does not exist
    facts = inspect_data(source, label=labels, nuisances=nuisances)
    situation = Situation(facts, labels, tuple(nuisances), pairs, isinstance(source, Paired), augmentations, correlated)
    write = _writer(dataset, source, has_labels=y is not None)
    recommendations, cannot = _recommend(situation, write, source if timed else None)
    return Advice(facts, tuple(recommendations), tuple(merge_obstacles(cannot)), tuple(_hints(situation)))


def _recommend(
    situation: Situation, write: Callable[[Suggestion], str], data: FactorData | None
) -> tuple[list[Recommendation], list[Obstacle]]:
    """Return the first three methods that suit, and all obstacles; times are measured where data are given."""
    recommendations: list[Recommendation] = []
    cannot: list[Obstacle] = []
    for verdict in _verdicts(situation, recommendations):
        if isinstance(verdict, Obstacle):
            cannot.append(verdict)
        elif len(recommendations) < MAX_RECOMMENDATIONS:
            try:
                seconds = _estimate(verdict, data)
            except InputError as error:
                cannot.append(Obstacle(verdict.method, str(error)))
                continue
            recommendations.append(Recommendation(verdict.method, verdict.reason, write(verdict), seconds))
    return recommendations, cannot


def _verdicts(situation: Situation, recommendations: Sequence[Recommendation]) -> Iterator[Suggestion | Obstacle]:
    """Yield the verdicts of the rules; those that need the data alone only if side information led to nothing."""
    groups: tuple[tuple[Rule, ...], ...] = (SIDE_INFORMATION, DATA_ONLY, (pca,))
    for rules in groups:
        if not recommendations:
            yield from (verdict for rule in rules if (verdict := rule(situation)) is not None)


def _estimate(suggestion: Suggestion, data: FactorData | None) -> float | None:
    if data is None or (suggestion.method == "ada-gvae" and _lacks_pairs(data)):
        return None
    return estimate_seconds(catalog.methods()[suggestion.method](**suggestion.settings), data)


def _writer(given: Any, data: FactorData, *, has_labels: bool) -> Callable[[Suggestion], str]:
    """Return the function that writes the command of a suggestion: for a shell, or for Python if arrays were given."""
    arguments = "data" if isinstance(given, FactorData) else "X, y" if has_labels else "X"

    def write(suggestion: Suggestion) -> str:
        method, settings = suggestion.method, suggestion.settings
        if method == "ada-gvae" and _lacks_pairs(data):
            return fit_call(method, settings, "unweave.as_pairs(X, X2)")
        if isinstance(given, Dataset):
            return fit_command(method, settings, given)
        return fit_call(method, settings, arguments)

    return write


def _lacks_pairs(data: FactorData) -> bool:
    """Return whether there is nothing in the data by which pairs could be drawn."""
    return not data.factors and not isinstance(data, Paired)


def merge_obstacles(obstacles: Sequence[Obstacle]) -> list[Obstacle]:
    """Return obstacles with those of one reason as one.

    >>> merge_obstacles([Obstacle("gin", "few rows"), Obstacle("ivae", "few rows")])
    [Obstacle(method='gin, ivae', reason='few rows')]
    """
    methods: dict[str, list[str]] = {}
    for obstacle in obstacles:
        methods.setdefault(obstacle.reason, []).append(obstacle.method)
    return [Obstacle(", ".join(names), reason) for reason, names in methods.items()]


def _hints(situation: Situation) -> list[str]:
    """Return what else the user could use."""
    if situation.label or situation.pairs or situation.is_paired:
        return []
    names = [factor.name for factor in situation.facts.factors if factor.kind == "nominal"]
    if not names:
        return []
    return [f"The data have classes ({', '.join(names)}): with --labels {names[0]}, methods may learn from them."]
