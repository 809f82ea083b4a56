"""The datasets, one file per family. `unweave list datasets` shows them."""

from unweave.datasets.colored import ColoredMNIST, RotationColoredMNIST
from unweave.datasets.digits import EMNIST, MNIST, FashionMNIST
from unweave.datasets.dsprites import ContinuousSprites, DSprites
from unweave.datasets.faces import Faces, GeneratedFaces
from unweave.datasets.flowers import Flowers102
from unweave.datasets.mixture import GaussianMixture
from unweave.datasets.mpi3d import MPI3D
from unweave.datasets.mpi3d_like import MPI3DLike
from unweave.datasets.resampled import Resampled
from unweave.datasets.shapes3d import Shapes3D
from unweave.datasets.sheets import FlatSheet, SwissRoll
from unweave.datasets.slices import Slice
from unweave.datasets.squares import SquaresXC, SquaresXY
from unweave.datasets.toys import Cars3D, SmallNORB
from unweave.datasets.unseen import Unseen

__all__ = [
    "EMNIST",
    "MNIST",
    "MPI3D",
    "Cars3D",
    "ColoredMNIST",
    "ContinuousSprites",
    "DSprites",
    "Faces",
    "FashionMNIST",
    "FlatSheet",
    "Flowers102",
    "GaussianMixture",
    "GeneratedFaces",
    "MPI3DLike",
    "Resampled",
    "RotationColoredMNIST",
    "Shapes3D",
    "Slice",
    "SmallNORB",
    "SquaresXC",
    "SquaresXY",
    "SwissRoll",
    "Unseen",
]
