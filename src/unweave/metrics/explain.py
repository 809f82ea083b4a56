"""Why a score is low: what each code knows of each factor; which codes are dead, doubled, mixed, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from unweave.metrics.dci import importances
from unweave.metrics.factors import BINS, PreparedFactors, alive, factor_code_information, prepare_factors
from unweave.metrics.mcc import correlations
from unweave.utils.errors import InputError

TELLS = 0.05  # a code tells of a factor from this share of its entropy on
SAME = 0.95  # |rank correlation| from which two codes say the same
CLEARLY = 2.0  # a factor's best code must tell so many times as much as its second


class Explanation(NamedTuple):
    """Two matrices and what they mean."""

    names: list[str]
    """of the factors"""
    information: np.ndarray  # (k, d): mutual information as a share of the factor's entropy, less what chance gives
    importance: np.ndarray  # (k, d): of each code for predicting each factor, as in DCI; rows sum to 1, or to 0
    findings: list[str]


def explain(factors: Any, codes: Any, *, names: Sequence[str] | None = None, seed: int = 0) -> Explanation:
    """Look at codes (n, d) of known factors (n, k); `names` are those of the factors."""
    c, z = prepare_factors(factors, codes)
    called = [str(name) for name in names] if names is not None else [f"factor {j + 1}" for j in range(c.count)]
    if len(called) != c.count:
        raise InputError(f"{len(called)} names for {c.count} factors")
    shuffled = z[np.random.default_rng(seed).permutation(len(z))]
    shares = [factor_code_information(c, codes) / c.entropies(BINS)[:, None] for codes in (z, shuffled)]
    information = np.maximum(shares[0] - shares[1], 0)
    relevant, _ = importances(c, z, estimator="trees", depth=None, train=2 / 3, seed=seed)
    return Explanation(called, information, relevant.T, _findings(c, z, called, information))


def _findings(c: PreparedFactors, z: np.ndarray, names: list[str], information: np.ndarray) -> list[str]:
    living = alive(z)
    doubled = _doubled(z, living)
    first = [i for i in range(z.shape[1]) if living[i] and not any(i in group[1:] for group in doubled)]
    said = [*_dead(living, information), *(_double(group, information, names) for group in doubled)]
    for j, name in enumerate(names):
        order = sorted(first, key=lambda i: -information[j, i])
        knowing = [i for i in order if information[j, i] >= TELLS]
        if not knowing:
            best = f" (at most {information[j, order[0]]:.0%} of it, by code {order[0] + 1})" if order else ""
            said.append(f"No code tells of {name}{best}: it is not in the codes, or not in a form that one code has.")
        elif len(knowing) > 1 and information[j, knowing[0]] < CLEARLY * information[j, knowing[1]]:
            shares = _listed([f"code {i + 1} ({information[j, i]:.0%})" for i in knowing])
            said.append(f"{name} is split: {shares} each tell a part of it.")
    for i in first:
        about = sorted((j for j in range(len(names)) if information[j, i] >= TELLS), key=lambda j: -information[j, i])
        if len(about) > 1 and information[about[0], i] < CLEARLY * information[about[1], i]:
            shares = _listed([f"{names[j]} ({information[j, i]:.0%})" for j in about])
            said.append(f"Code {i + 1} is mixed: it tells of {shares}.")
    return said or ["Every factor has a code of its own, and every code one factor."]


def _dead(living: np.ndarray, information: np.ndarray) -> list[str]:
    dead, idle = np.flatnonzero(~living), np.flatnonzero(living & (information.max(0) < TELLS))
    said = [f"{_codes(dead)} never {'changes' if len(dead) == 1 else 'change'}: dead."] if len(dead) else []
    tells = "changes, and tells" if len(idle) == 1 else "change, and tell"
    return said + ([f"{_codes(idle)} {tells} of no factor."] if len(idle) else [])


def _doubled(z: np.ndarray, living: np.ndarray) -> list[list[int]]:
    """Groups of codes that say the same, each with the code that came first."""
    r = np.abs(correlations(z, z, "spearman"))
    groups: list[list[int]] = []
    for i in np.flatnonzero(living).tolist():
        home = next((group for group in groups if r[i, group[0]] >= SAME), None)
        if home is None:
            groups.append([i])
        else:
            home.append(i)
    return [group for group in groups if len(group) > 1]


def _double(group: list[int], information: np.ndarray, names: list[str]) -> str:
    about = information[:, group[0]]
    of = f", both of {names[about.argmax()]}" if len(group) == 2 else f", all of {names[about.argmax()]}"
    return f"{_codes(np.array(group))} say the same{of if about.max() >= TELLS else ''}: duplicates."


def _codes(which: np.ndarray) -> str:
    return ("Code " if len(which) == 1 else "Codes ") + _listed([str(i + 1) for i in which])


def _listed(words: list[str]) -> str:
    """'a', 'a and b', 'a, b and c'."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
