"""Our scores beside the reference library's, case by case: python benchmarks/oracle.py [FOLDER]

FOLDER holds metric_cases.npz and metric_reference.json; without it, the two cases in tests/reference are used. Gradient
boosting takes about half a minute a case.
"""

import json
import sys
from pathlib import Path

import numpy as np

from unweave.metrics import dci, explicitness, irs, mig, modularity, sap


def main() -> None:
    default = Path(__file__).parent.parent / "tests" / "reference"
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else default
    reference = json.loads((folder / "metric_reference.json").read_text())
    worst: dict[str, float] = {}
    with np.load(folder / "metric_cases.npz", allow_pickle=False) as arrays:
        for name, expected in reference.items():
            f, z = arrays[f"{name}_f"], arrays[f"{name}_z"]
            boosted = dci(f, z, estimator="gbt", seed=None)
            ours = {
                "mig": mig(f, z),
                "irs": irs(f, z),
                "modularity": modularity(f, z),
                "sap_discrete": sap(f, z, standardize=False, seed=None),
                "sap_continuous": sap(f, z, predictor="r2"),
                "explicitness_test": explicitness(f, z, seed=None),
                "dci_disentanglement": boosted.disentanglement,
                "dci_completeness": boosted.completeness,
                "dci_informativeness_test": boosted.informativeness,
            }
            gaps = {k: abs(v - expected[k]) for k, v in ours.items() if expected[k] is not None}
            worst = {k: max(gap, worst.get(k, 0.0)) for k, gap in gaps.items()} | {
                k: v for k, v in worst.items() if k not in gaps
            }
            print(name, " ".join(f"{k} {gap:.4f}" for k, gap in gaps.items()), flush=True)
    print("largest difference:", " ".join(f"{k} {gap:.4f}" for k, gap in worst.items()))


if __name__ == "__main__":
    main()
