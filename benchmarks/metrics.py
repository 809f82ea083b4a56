"""The metric suite on 10,000 samples, 10 codes, factors of 3, 6, 40, 32 and 32 values; and DCI against its reference.

The reference protocol for DCI is scikit-learn's GradientBoostingClassifier for each factor; it grows with the number of
classes, so it is timed on a stated fraction of the samples and one factor of each size, and scaled up.
Run alone: python benchmarks/metrics.py
"""

import time

import numpy as np
from sklearn.ensemble import GradientBoostingClassifier

from unweave.metrics import dci, factor_vae_score, irs, mcc, mig, modularity, sap

SIZES = (3, 6, 40, 32, 32)
FRACTION = 0.05


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
    print(f"the fast default of DCI takes {taken['dci']:.1f} s: {slow / taken['dci']:.0f} times as fast")


if __name__ == "__main__":
    main()
