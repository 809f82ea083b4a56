"""The metric suite on 10,000 samples, 10 codes, factors of 3, 6, 40, 32 and 32 values; and DCI against its reference.

The reference protocol for DCI is scikit-learn's GradientBoostingClassifier for each factor; it grows with the number of
classes, so it is timed on a stated fraction of the samples and one factor of each size, and scaled up.
Run alone: python benchmarks/metrics.py
"""

import time
from typing import Any

import numpy as np
from sklearn.ensemble import GradientBoostingClassifier

from unweave.metrics import dci, factor_vae_score, irs, mcc, mig, modularity, sap, score_many

SIZES = (3, 6, 40, 32, 32)
FRACTION = 0.05
MANY = 50


def main() -> None:
    rng = np.random.default_rng(0)
    c = rng.integers(0, SIZES, (10_000, 5)).astype(float)
    z = np.column_stack([c / np.array(SIZES) + 0.05 * rng.normal(size=c.shape), rng.normal(size=(10_000, 5))])
    taken = {}
    for scorer in (mig, sap, dci, irs, factor_vae_score, modularity, mcc):
        start = time.perf_counter()
        value = scorer(c, z)
        seconds = taken[scorer.__name__] = time.perf_counter() - start
        shown = ", ".join(f"{v:.3f}" for v in value) if isinstance(value, tuple) else f"{value:.3f}"
        print(f"{scorer.__name__:18}{seconds:7.2f} s   {shown}")
    print(f"{'the suite':18}{sum(taken.values()):7.2f} s")
    rows = int(FRACTION * 10_000)
    start = time.perf_counter()
    for j in range(5):
        GradientBoostingClassifier(random_state=0).fit(z[:rows], c[:rows, j])
    slow = (time.perf_counter() - start) / FRACTION
    print(f"gradient boosting for DCI: about {slow:,.0f} s (timed on {FRACTION:.0%} of the rows, all factors, scaled)")
    _many(c, z)
    print(f"the fast default of DCI takes {taken['dci']:.1f} s: {slow / taken['dci']:.0f} times as fast")


def _many(c: np.ndarray, z: np.ndarray) -> None:
    """Fifty codes of the same data: one call that prepares the factors once, against fifty calls on arrays."""
    rng = np.random.default_rng(1)
    codes = {str(i): z + 0.1 * rng.normal(size=z.shape) for i in range(MANY)}
    suite: dict[str, Any] = {f.__name__: f for f in (mig, irs, factor_vae_score, modularity, mcc)}
    for name, scorers in (("without DCI and SAP", suite), ("the suite", suite | {"sap": sap, "dci": dci})):
        start = time.perf_counter()
        score_many(c, codes, metrics=scorers, n_jobs=1 if scorers is suite else 2)  # processes take seconds to start
        together = time.perf_counter() - start
        start = time.perf_counter()
        sample = list(codes.values())[: MANY // 10]
        for code in sample:
            for scorer in scorers.values():
                scorer(c, code)
        one_by_one = (time.perf_counter() - start) * MANY / len(sample)
        print(f"{MANY} codes, {name}: {together:.1f} s in one call, {one_by_one:.1f} s one by one (every tenth timed)")


if __name__ == "__main__":
    main()
