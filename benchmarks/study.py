"""Which regularizer disentangles dSprites, and at which strength?

beta-VAE at six strengths, FactorVAE and beta-TCVAE at their papers' usual ones. Five seeds each, 30,000 steps.
"""

# unweave study run benchmarks/study.py --out runs/dsprites                # several processes share the work
# unweave study rows benchmarks/study.py --out runs/dsprites --csv benchmarks/results/study.csv
# unweave select runs/dsprites --by udr model-centrality likelihood isometry --json > benchmarks/results/select.json
# unweave report runs/dsprites --out runs/dsprites.html
# python benchmarks/shrink_report.py runs/dsprites.html docs/_static/reports/dsprites.html

from typing import Any

import unweave
from unweave.datasets import DSprites
from unweave.methods import BetaTCVAE, BetaVAE, FactorVAE

shared: Any = {"steps": 30_000, "precision": "bf16"}
seeds = range(5)
runs = [
    *unweave.sweep(DSprites(), BetaVAE(**shared), beta=[1, 2, 4, 6, 8, 16], seed=seeds),
    *unweave.sweep(DSprites(), FactorVAE(gamma=10.0, **shared), seed=seeds),
    *unweave.sweep(DSprites(), BetaTCVAE(beta=6.0, **shared), seed=seeds),
]
metrics = ["mig", "dci", "sap", "mcc", "factor-vae-score", "modularity"]
