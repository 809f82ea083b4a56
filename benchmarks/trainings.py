"""How sure are the leads in the tables of the last two papers, given what was chosen by looking at them?

python benchmarks/trainings.py

From the stored results alone: Welch's test (one-sided) of each lead, as it is and times the number of settings it was
picked from; of the seeds that had no part in the choice; with an earlier training of the same seeds, one mean a seed;
and how far two trainings of one seed are apart.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from scipy.stats import ttest_ind

RESULTS = Path("src/unweave/papers")
OURS, RIDGE = "swap and contrast", "intervention, ridge"
SCHEMES = (OURS, f"{OURS}, joint", f"{OURS}, cross-entropy", f"{OURS}, as printed")


def lead(a: pd.Series, b: pd.Series, tried: int = 1) -> str:
    """Means, lead and how likely it is by chance; `tried`: of so many settings this one was picked after the fact."""
    p = float(ttest_ind(a, b, equal_var=False, alternative="greater").pvalue)
    more = f", times {tried} settings {min(1.0, tried * p):.3f}" if tried > 1 else ""
    return f"{a.mean():.3f} ({len(a)}) to {b.mean():.3f} ({len(b)}): {a.mean() - b.mean():+.3f}, p {p:.3f}{more}"


def table(name: str, column: str, only: dict[str, object], file: str = "scores.csv") -> pd.DataFrame:
    """One column of a stored table, of some rows: seeds down, methods across."""
    rows = pd.read_csv(RESULTS / name / file)
    for key, value in only.items():
        rows = rows[rows[key].isna() if value is None else rows[key] == value]
    return rows.pivot(index="seed", columns="method", values=column)


def digits(angle: float | None, name: str) -> None:
    """Swap and contrast against the plain network in the worst group."""
    new, old = (
        table(f"swap_contrast/results/{name}", "worst", {"angle": angle}, f) for f in ("scores.csv", "scores-first.csv")
    )
    print(f"\n{name}" + ("" if angle is None else f" at {angle:+g}") + ", worst group, to CNN")
    for scheme in SCHEMES:
        if scheme in new:
            print(f"  {scheme}: {lead(new[scheme].dropna(), new['CNN'].dropna(), len(SCHEMES))}")
    both = pd.concat([new, old]).groupby("seed").mean()
    print(f"  {OURS}, both trainings, one mean a seed: {lead(both[OURS].dropna(), both['CNN'].dropna())}")
    apart = (new - old).abs().stack()
    spread = new.std().mean()
    print(
        f"  one seed trained twice: {apart.mean():.3f} apart, {apart.max():.3f} at most; seeds: deviation {spread:.3f}"
    )


def correlated(column: str) -> None:
    """The model by ridge against FactorVAE; it was chosen on seeds 0 to 2, in an earlier training."""
    found = table("intervention/results/cmnist", column, {"part": "correlated"})
    print(f"\nCMNIST, correlated factors, {column.upper()}")
    for name in ("FactorVAE, gamma = 10", "FactorVAE, gamma = 40"):
        for told, some in (("nine seeds", found), ("seeds 3 to 8, no part in the choice", found.loc[3:])):
            print(f"  {RIDGE} to {name}, {told}: {lead(some[RIDGE], some[name])}")


if __name__ == "__main__":
    digits(None, "colored-mnist")
    for angle in (-75.0, -65.0, 65.0, 75.0):
        digits(angle, "rotation-colored-mnist")
    for column in ("sap", "dci"):
        correlated(column)
