"""How significant are the leads in the tables of the last two papers?

python benchmarks/trainings.py

From the stored results: Welch's one-sided test of each lead, also corrected for the number of settings it was chosen
from; on the seeds that had no part in the choice; with an earlier training of the same seeds, one mean per seed; and
the difference between two trainings of a seed.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from scipy.stats import ttest_ind

RESULTS = Path("src/unweave/papers")
OURS, RIDGE = "swap and contrast", "intervention, ridge"
SCHEMES = (OURS, f"{OURS}, joint", f"{OURS}, cross-entropy", f"{OURS}, as printed")


def lead(a: pd.Series, b: pd.Series, candidates: int = 1) -> str:
    """Return means, lead and p-value; `candidates`: number of settings that this one was chosen from."""
    p = float(ttest_ind(a, b, equal_var=False, alternative="greater").pvalue)
    more = f", times {candidates} settings {min(1.0, candidates * p):.3f}" if candidates > 1 else ""
    return f"{a.mean():.3f} ({len(a)}) to {b.mean():.3f} ({len(b)}): {a.mean() - b.mean():+.3f}, p {p:.3f}{more}"


def table(name: str, column: str, only: dict[str, object], file: str = "scores.csv") -> pd.DataFrame:
    """Return one column of a stored table for some rows: seeds down, methods across."""
    rows = pd.read_csv(RESULTS / name / file)
    for key, value in only.items():
        rows = rows[rows[key].isna() if value is None else rows[key] == value]
    return rows.pivot(index="seed", columns="method", values=column)


def digits(angle: float | None, name: str) -> None:
    """Compare swap and contrast with the CNN in the worst group."""
    new, old = (
        table(f"swap_contrast/results/{name}", "worst", {"angle": angle}, f) for f in ("scores.csv", "scores-first.csv")
    )
    print(f"\n{name}" + ("" if angle is None else f" at {angle:+g}") + ", worst group, to CNN")
    for scheme in SCHEMES:
        if scheme in new:
            print(f"  {scheme}: {lead(new[scheme].dropna(), new['CNN'].dropna(), len(SCHEMES))}")
    both = pd.concat([new, old]).groupby("seed").mean()
    print(f"  {OURS}, both trainings, one mean per seed: {lead(both[OURS].dropna(), both['CNN'].dropna())}")
    differences = (new - old).abs().stack()
    spread = new.std().mean()
    text = f"  one seed trained twice: mean difference {differences.mean():.3f}, largest {differences.max():.3f}"
    print(f"{text}; standard deviation over seeds {spread:.3f}")


def correlated(column: str) -> None:
    """Compare ridge with FactorVAE; ridge was chosen on seeds 0 to 2, in an earlier training."""
    scores = table("intervention/results/cmnist", column, {"part": "correlated"})
    print(f"\nCMNIST, correlated factors, {column.upper()}")
    for name in ("FactorVAE, gamma = 10", "FactorVAE, gamma = 40"):
        for seeds, rows in (("nine seeds", scores), ("seeds 3 to 8, no part in the choice", scores.loc[3:])):
            print(f"  {RIDGE} to {name}, {seeds}: {lead(rows[RIDGE], rows[name])}")


if __name__ == "__main__":
    digits(None, "colored-mnist")
    for angle in (-75.0, -65.0, 65.0, 75.0):
        digits(angle, "rotation-colored-mnist")
    for column in ("sap", "dci"):
        correlated(column)
