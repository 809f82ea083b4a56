"""A face generator: a StyleGAN2 distilled for small machines (MobileStyleGAN), with its principal directions.

Letters as in the StyleGAN papers: z is standard normal, (n, 512). The mapping network turns it into w, (n, 512). The
synthesis network turns w into an image. W+ gives every layer that reads w its own, (n, slots, 512), coarse to fine.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Generator, Tensor
from torch.nn import functional as F

from unweave.data.downloads import MissingData, PublishedFile
from unweave.datasets.openvino import OpenVinoNetwork
from unweave.utils.errors import InputError

PACKAGE = "random_face"  # random-face 2021.7.21.1
FILES = (
    PublishedFile("data/MappingNetwork.xml", "sha256:73e2096cad6e696e4af47df2477e048ab4c42c0e0dec83c7c66604822689e55b"),
    PublishedFile("data/MappingNetwork.bin", "sha256:212dd716bdb556e18db603ea97300d4fa3c872b878c726b2402fea80820e7305"),
    PublishedFile(
        "data/SynthesisNetwork.xml", "sha256:7918fce515243954d3e06628cb39a23902d6b1d5d02932cc0c2faee7a2aeeedd"
    ),
    PublishedFile(
        "data/SynthesisNetwork.bin", "sha256:c7da15fa22d508c82e1c30dd6b4cdf67fe3ccdddaf85b310ee764dbf0c289645"
    ),
)


class Weights(NamedTuple):
    """Paths of the .xml files of both networks; each has its .bin beside it."""

    mapping: Path
    synthesis: Path


def find_weights() -> Weights:
    """Return the verified networks in the installed package `random_face`, which is not imported."""
    spec = importlib.util.find_spec(PACKAGE)
    folders = [Path(place) for place in (spec.submodule_search_locations or ())] if spec else []
    folder = next((f for f in folders if all((f / file.file).is_file() for file in FILES)), None)
    if folder is None:
        raise MissingData(
            "the weights of the face generator are missing: pip install 'unweave[faces]' (research use only), "
            "or, without its dependencies, pip install --no-deps random-face==2021.7.21.1"
        )
    for file in FILES:
        file.check(folder / file.file)
    return Weights(folder / FILES[0].file, folder / FILES[2].file)


class Directions(NamedTuple):
    """Principal directions of W, by decreasing variance."""

    mean: Tensor  # (512,)
    components: Tensor  # (count, 512), unit vectors
    deviations: Tensor  # (count,), standard deviations of w along them


def principal_directions(
    mapping: Callable[[Tensor], Tensor], samples: int = 10_000, count: int = 10, seed: int = 0, *, width: int = 512
) -> Directions:
    """Compute the PCA of w = mapping(z) for standard normal z (GANSpace: Haerkoenen et al., 2020, Sec. 2.2).

    The sign of a component is arbitrary; here its entry of largest absolute value is positive.
    """
    if not 1 <= count <= width or samples <= count:
        raise InputError(
            f"count={count}, samples={samples}: expected 1 to {width} directions of more samples than that"
        )
    rng = Generator().manual_seed(seed)
    total, products = torch.zeros((), dtype=torch.float64), torch.zeros((), dtype=torch.float64)
    for start in range(0, samples, 1_000):  # sums only, since a million samples would take gigabytes
        with torch.no_grad():
            w = mapping(torch.randn(min(1_000, samples - start), width, generator=rng)).double().cpu()
        total, products = total + w.sum(0), products + w.T @ w  # (512,), (512, 512)
    mean = total / samples
    covariance = (products - samples * mean.outer(mean)) / (samples - 1)
    variances, vectors = torch.linalg.eigh(covariance)  # ascending; vectors in columns
    components = vectors.T.flip(0)[:count]
    largest = components.gather(1, components.abs().argmax(1, keepdim=True))  # (count, 1)
    deviations = variances.flip(0)[:count].clamp(min=0).sqrt()
    return Directions(mean.float(), (components * largest.sign()).float(), deviations.float())


def face_generator(
    synthesis: OpenVinoNetwork | None = None, *, size: int = 64, batch: int = 1
) -> Callable[[Tensor], Tensor]:
    """Return a function from w, (n, 512), or W+, (n, slots, 512), to images (n, 3, size, size) in [0, 1].

    Args:
        synthesis: Synthesis network; by default the installed one, on the CPU.
        size: Width and height of the images, averaged down from 1024.
        batch: Images rendered at a time, which bounds the memory. One is fastest on a CPU; a GPU needs more.

    Returns:
        A function whose images have the dtype and device of w.
    """
    if size < 1 or batch < 1:
        raise InputError(f"size={size}, batch={batch}: expected at least 1 for both")
    network = OpenVinoNetwork(find_weights().synthesis) if synthesis is None else synthesis

    def render(w: Tensor) -> Tensor:
        parts = [w.new_zeros(0, 3, size, size)]
        with torch.no_grad():
            for part in torch.split(w, batch) if len(w) else ():
                images = F.interpolate(network(part), size=(size, size), mode="area")  # values about -1 to 1
                parts.append(images.clamp(-1, 1).add(1).div(2).to(w))
        return torch.cat(parts)

    return render
