"""The methods: one file each, families in folders. `unweave list methods` shows them."""

from unweave.methods.autoencoder import IRMAE, Autoencoder, HessianAutoencoder
from unweave.methods.flows.gin import GIN
from unweave.methods.flows.self_supervised_gin import SelfSupervisedGIN
from unweave.methods.infogan_cr import InfoGANCR
from unweave.methods.intervention import InterventionAutoencoder
from unweave.methods.invariance.cai import CAI
from unweave.methods.invariance.classifiers import CNNClassifier, VAEClassifier
from unweave.methods.invariance.cvib import CVIB
from unweave.methods.invariance.swap_contrast import SwapContrast
from unweave.methods.invariance.uai import UAI
from unweave.methods.invariance.vfae import VFAE
from unweave.methods.linear import PCA, LinearICA
from unweave.methods.spectral.hessian import HessianICA
from unweave.methods.spectral.laplacian import LaplacianICA
from unweave.methods.spectral.tangent import TangentICA
from unweave.methods.vae.ada_vae import AdaGVAE, AdaMLVAE
from unweave.methods.vae.annealed_vae import AnnealedVAE
from unweave.methods.vae.beta_tc_vae import BetaTCVAE
from unweave.methods.vae.beta_vae import BetaVAE
from unweave.methods.vae.dip_vae import DIPVAE
from unweave.methods.vae.factor_vae import FactorVAE
from unweave.methods.vae.ivae import IVAE

__all__ = [
    "CAI",
    "CVIB",
    "DIPVAE",
    "GIN",
    "IRMAE",
    "IVAE",
    "PCA",
    "UAI",
    "VFAE",
    "AdaGVAE",
    "AdaMLVAE",
    "AnnealedVAE",
    "Autoencoder",
    "BetaTCVAE",
    "BetaVAE",
    "CNNClassifier",
    "FactorVAE",
    "HessianAutoencoder",
    "HessianICA",
    "InfoGANCR",
    "InterventionAutoencoder",
    "LaplacianICA",
    "LinearICA",
    "SelfSupervisedGIN",
    "SwapContrast",
    "TangentICA",
    "VAEClassifier",
]
