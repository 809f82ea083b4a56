"""Metrics: `unweave.metrics.mcc(factors, codes)`, truth first, (n, k) and (n, d), numpy or torch; one file each."""

from unweave.metrics.accuracy import average_accuracy, worst_group_accuracy
from unweave.metrics.angle_error import angle_error
from unweave.metrics.beta_vae_score import beta_vae_score
from unweave.metrics.dci import dci
from unweave.metrics.explicitness import explicitness
from unweave.metrics.factor_vae_score import factor_vae_score
from unweave.metrics.factors import prepared
from unweave.metrics.infomec import infomec
from unweave.metrics.irs import irs
from unweave.metrics.local_isometry import local_isometry
from unweave.metrics.mcc import mcc
from unweave.metrics.mig import mig
from unweave.metrics.model_centrality import model_centrality
from unweave.metrics.modularity import modularity
from unweave.metrics.nuisance_probe import nuisance_probe
from unweave.metrics.sap import sap
from unweave.metrics.score_tables import score_all, score_many
from unweave.metrics.translation import translation_difficulty
from unweave.metrics.udr import udr
from unweave.metrics.unsupervised import unsupervised

__all__ = [
    "angle_error",
    "average_accuracy",
    "beta_vae_score",
    "dci",
    "explicitness",
    "factor_vae_score",
    "infomec",
    "irs",
    "local_isometry",
    "mcc",
    "mig",
    "model_centrality",
    "modularity",
    "nuisance_probe",
    "prepared",
    "sap",
    "score_all",
    "score_many",
    "translation_difficulty",
    "udr",
    "unsupervised",
    "worst_group_accuracy",
]
