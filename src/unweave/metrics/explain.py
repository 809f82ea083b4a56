"""Explanation of low scores: which codes are constant, duplicate or mixed, and which factors are split or missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from unweave.metrics.dci import code_importances, mean_purity
from unweave.metrics.factors import BINS, PreparedFactors, active_codes, factor_code_information, prepare_factors
from unweave.metrics.mcc import associations, correlations
from unweave.utils import html
from unweave.utils.errors import InputError, plural

if TYPE_CHECKING:
    from markupsafe import Markup

MIN_INFORMATION = 0.05  # share of a factor's entropy from which a code is informative
MIN_DUPLICATE_CORRELATION = 0.95  # |rank correlation| from which two codes are duplicates
MIN_MIG, MIN_DCI, MIN_MCC = 0.5, 0.75, 0.9  # scores from which every factor has a code of its own
MAX_SHOWN_CODES = 12  # columns of the tables in a notebook
MIN_RATIO = 2.0  # of the information in the best and the second-best code, from which a factor is not split


class Explanation(NamedTuple):
    """Factor-code matrices and findings in words."""

    names: list[str]
    """Names of the factors."""
    information: np.ndarray
    """Mutual information as a share of the factor's entropy, minus that of shuffled codes, (k, d)."""
    importance: np.ndarray
    """Importance of each code for predicting each factor, as in DCI, (k, d); rows sum to 1, or to 0."""
    findings: list[str]
    """Sentences about codes and factors."""

    def _repr_html_(self) -> str:
        """Return the findings and both matrices as tables, for notebooks."""
        codes = _shown_codes(self.information)
        more = self.information.shape[1] - len(codes)
        parts = [
            html.items(self.findings),
            _matrix_html(self.names, self.information, codes),
            html.text("Share of a factor's entropy that a code contains, above chance."),
            html.text(f"Not shown: {plural(more, 'less informative code')}.") if more else "",
            html.details("Importance for predicting the factor", _matrix_html(self.names, self.importance, codes)),
        ]
        summary = f"{plural(len(self.names), 'factor')}, {plural(self.information.shape[1], 'code')}"
        return html.page("Explanation", summary, *parts)


def explain(factors: Any, codes: Any, *, names: Sequence[str] | None = None, seed: int = 0) -> Explanation:
    """Explain why codes score low: which are constant, duplicate or mixed, and which factors are split or missing.

    Args:
        factors: True factors, (n, k), or the result of `prepared`.
        codes: Codes, (n, d).
        names: Names of the factors, for the findings.
        seed: Seed of the shuffle that estimates the chance level.

    Example:
        >>> import numpy as np
        >>> factors = np.random.default_rng(0).integers(4, size=(200, 2))
        >>> explain(factors, np.zeros((200, 1)), names=["x", "y"]).findings[0]
        'Code 1 never changes: dead.'
    """
    c, z = prepare_factors(factors, codes)
    labels = [str(name) for name in names] if names is not None else [f"factor {j + 1}" for j in range(c.count)]
    if len(labels) != c.count:
        raise InputError(f"{len(labels)} names for {c.count} factors")
    shuffled = z[np.random.default_rng(seed).permutation(len(z))]
    shares = [factor_code_information(c, codes) / c.entropies(BINS)[:, None] for codes in (z, shuffled)]
    information = np.maximum(shares[0] - shares[1], 0)
    importance, _ = code_importances(c, z, estimator="trees", depth=None, train=2 / 3, seed=seed)
    findings = _findings(z, labels, information) or [_describe_agreement(c, z, information, importance)]
    return Explanation(labels, information, importance.T, findings)


def _shown_codes(information: np.ndarray) -> list[int]:
    """Return the most informative codes, in order, as many as a table on a page can have."""
    strongest = np.argsort(-information.max(0), kind="stable")[:MAX_SHOWN_CODES]
    return sorted(int(i) for i in strongest)


def _matrix_html(names: list[str], matrix: np.ndarray, codes: list[int]) -> Markup:
    """Return some columns of a matrix (k, d) as a table with a tint by value."""
    rows = [
        [name, *(html.Cell(f"{value:.0%}", is_number=True, tint=float(value)) for value in row)]
        for name, row in zip(names, matrix[:, codes], strict=True)
    ]
    return html.table(["", *(f"code {i + 1}" for i in codes)], rows)


def _describe_agreement(c: PreparedFactors, z: np.ndarray, information: np.ndarray, importance: np.ndarray) -> str:
    """Return whether the scores agree that every factor has a code of its own, where no code or factor stands out."""
    ordered = np.sort(information, 1)
    gap = float((ordered[:, -1] - (ordered[:, -2] if z.shape[1] > 1 else 0)).mean())
    scores = {"MIG": (gap, MIN_MIG), "DCI": (mean_purity(importance), MIN_DCI)}
    if not all(c.nominal):
        r = associations(c, z)[~np.array(c.nominal)]  # classes without an order have no correlation
        scores["MCC"] = float(r[linear_sum_assignment(-r)].sum() / len(r)), MIN_MCC
    numbers = ", ".join(f"{name} {value:.2f}" for name, (value, _) in scores.items())
    if all(value >= least for value, least in scores.values()):
        return f"Every factor has a code of its own, and every code one factor ({numbers})."
    low = _join([name for name, (value, least) in scores.items() if value < least])
    return (
        f"No code and no factor stands out as the cause, but {low} {'is' if ' ' not in low else 'are'} low ({numbers})."
    )


def _findings(z: np.ndarray, names: list[str], information: np.ndarray) -> list[str]:
    active = active_codes(z)
    duplicates = _duplicate_groups(z, active)
    repeated = {i for group in duplicates for i in group[1:]}
    distinct = [i for i in np.flatnonzero(active).tolist() if i not in repeated]
    findings = [*_unused_codes(active, information), *(_describe_duplicates(g, information, names) for g in duplicates)]
    findings += _missing_or_split_factors(distinct, information, names)
    return findings + _mixed_codes(distinct, information, names)


def _missing_or_split_factors(codes: list[int], information: np.ndarray, names: list[str]) -> list[str]:
    findings = []
    for j, name in enumerate(names):
        order = sorted(codes, key=lambda i: -information[j, i])
        informative = [i for i in order if information[j, i] >= MIN_INFORMATION]
        if not informative:
            best = f" (at most {information[j, order[0]]:.0%} of it, by code {order[0] + 1})" if order else ""
            text = f"No code is informative about {name}{best}"
            findings.append(f"{text}: it is not in the codes, or not in a form that one code has.")
        elif _is_shared(information[j, informative]):
            shares = _join([f"code {i + 1} ({information[j, i]:.0%})" for i in informative])
            findings.append(f"{name} is split: {shares} each contain part of it.")
    return findings


def _mixed_codes(codes: list[int], information: np.ndarray, names: list[str]) -> list[str]:
    findings = []
    for i in codes:
        order = sorted(range(len(names)), key=lambda j: -information[j, i])
        about = [j for j in order if information[j, i] >= MIN_INFORMATION]
        if _is_shared(information[about, i]):
            shares = _join([f"{names[j]} ({information[j, i]:.0%})" for j in about])
            findings.append(f"Code {i + 1} is mixed: it contains information about {shares}.")
    return findings


def _is_shared(information: np.ndarray) -> bool:
    """Return whether the second of some descending values is close to the first."""
    return len(information) > 1 and bool(information[0] < MIN_RATIO * information[1])


def _unused_codes(active: np.ndarray, information: np.ndarray) -> list[str]:
    dead, idle = np.flatnonzero(~active), np.flatnonzero(active & (information.max(0) < MIN_INFORMATION))
    findings = [f"{_codes(dead)} never {'changes' if len(dead) == 1 else 'change'}: dead."] if len(dead) else []
    verb = "varies but is" if len(idle) == 1 else "vary but are"
    return findings + ([f"{_codes(idle)} {verb} informative about no factor."] if len(idle) else [])


def _duplicate_groups(z: np.ndarray, active: np.ndarray) -> list[list[int]]:
    """Return groups of codes that are equal up to a monotonic map, each with its first code first."""
    r = np.abs(correlations(z, z, "spearman"))
    groups: list[list[int]] = []
    for i in np.flatnonzero(active).tolist():
        group = next((group for group in groups if r[i, group[0]] >= MIN_DUPLICATE_CORRELATION), None)
        if group is None:
            groups.append([i])
        else:
            group.append(i)
    return [group for group in groups if len(group) > 1]


def _describe_duplicates(group: list[int], information: np.ndarray, names: list[str]) -> str:
    about = information[:, group[0]]
    what = f", {'both' if len(group) == 2 else 'all'} of {names[about.argmax()]}"
    what = what if about.max() >= MIN_INFORMATION else ""
    return f"{_codes(np.array(group))} are duplicates{what} (rank correlation above {MIN_DUPLICATE_CORRELATION})."


def _codes(which: np.ndarray) -> str:
    return ("Code " if len(which) == 1 else "Codes ") + _join([str(i + 1) for i in which])


def _join(words: list[str]) -> str:
    """Return 'a', 'a and b', or 'a, b and c'."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
