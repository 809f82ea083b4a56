"""Faces with known factors: images of a generator along directions of its latent space."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, final

import numpy as np
import torch
from torch import Generator, Tensor

from unweave.data.containers import Mixing, Table
from unweave.data.core import Factor
from unweave.data.dataset import Dataset
from unweave.data.downloads import PublishedFile
from unweave.data.readers.images import decode_image
from unweave.datasets.cached_images import CachedImages, Notify
from unweave.datasets.openvino import OpenVinoNetwork
from unweave.datasets.stylegan import face_generator, find_weights, principal_directions
from unweave.utils.errors import InputError

SHA256 = {
    "01": "4b92e5f93a8ec3ee9c5fbd0de2ff60ccc16f9a863ebfefcc6f7bc7831573f63b",
    "14": "f7e49fced593be7af5440d77f31c11fe37cf314ead1a6ce3c35dba940ccd06de",
    "23": "af1275b185037ad05ae5324bad5213a19081f1ed7d28d715970c8490c0b6908b",
}


class GeneratorManifold(Mixing):
    """Images of any generator along chosen directions: x = generate(origin + sum_j c_j direction_j).

    Realistic manifolds with known factors as in Horan et al. (2021), Sec. 4: the directions are principal components of
    the latent space, and the coefficients c are uniform on [-spread, spread].

    Example:
        >>> data = GeneratorManifold(lambda w: w[:, None, None, :], torch.eye(2), points=10)
        >>> data.shape
        (1, 1, 2)
    """

    def __init__(
        self,
        generate: Callable[[Tensor], Tensor],
        directions: Tensor,
        *,
        origin: Tensor | None = None,
        spread: float = 2.0,
        names: Sequence[str] = (),
        points: int | None = 3_000,
        seed: int = 0,
    ) -> None:
        directions = torch.as_tensor(directions)
        if directions.ndim < 2 or len(directions) < 1:
            raise InputError(f"directions of shape {tuple(directions.shape)}: expected one row per factor")
        k = len(directions)
        if names and len(names) != k:
            raise InputError(f"{len(names)} names for {k} directions")
        base = torch.zeros_like(directions[0]) if origin is None else torch.as_tensor(origin)
        if base.shape != directions.shape[1:]:
            raise InputError(f"an origin of shape {tuple(base.shape)}, directions of {tuple(directions.shape[1:])}")

        def prior(n: int, rng: Generator) -> Tensor:
            return (2 * torch.rand(n, k, generator=rng, device=rng.device) - 1) * spread

        def mix(c: Tensor) -> Tensor:  # (..., k) -> (..., *shape)
            latent = base + torch.tensordot(c.reshape(-1, k).to(base), directions, dims=1)
            with torch.no_grad():
                x = torch.cat([generate(part) for part in torch.split(latent, 16)])
            return x.reshape(*c.shape[:-1], *x.shape[1:])

        with torch.no_grad():
            shape = tuple(generate(base[None]).shape[1:])
        factors = [Factor(name) for name in names or [f"z{i + 1}" for i in range(k)]]
        super().__init__(factors, shape, prior, mix, points=points, seed=seed)


@final
class GeneratedFaces(CachedImages):
    """Faces of a StyleGAN along principal directions of its latent space (extra `faces`; 2 s per image).

    Directions act on all layers or on some, from coarse (pose and shape) to fine (colors).

    Example:
        >>> GeneratedFaces(directions=(0, 1), points=10).load().shape  # doctest: +SKIP
        (3, 64, 64)
    """

    name = "generated-faces"
    paper = "Horan, Richardson and Weiss (2021), Sec. 4; generator: Belousov (2021), MobileStyleGAN"

    directions: tuple[int, ...] = (0, 1)
    """Principal directions that vary, counted from 0."""
    layers: tuple[int, int] = (0, 23)
    """First layer that they act on, and the one after the last, of 23."""
    spread: float = 2.0
    """Largest coefficient in standard deviations; coefficients are uniform on [-spread, spread]."""
    points: int = 300
    """Number of images."""

    def title(self) -> str:
        layers = "" if self.layers == (0, 23) else f", layers {self.layers[0]} to {self.layers[1]}"
        return f"faces-{'-'.join(map(str, self.directions))} (generated{layers})"

    def check_requirements(self) -> None:
        find_weights()
        first, last = self.layers
        if not self.directions or min(self.directions) < 0 or max(self.directions) > 99:
            raise InputError(f"directions={self.directions}: expected some of 0, 1, ..., 99")
        if not 0 <= first < last <= 23:
            raise InputError(f"layers={self.layers}: expected two numbers, the first smaller, from 0 to 23")

    def render_images(self, notify: Notify) -> tuple[np.ndarray, np.ndarray]:
        mapping = OpenVinoNetwork(find_weights().mapping)
        # With 100,000 samples the leading directions no longer depend on the seed (cosines above 0.99).
        basis = principal_directions(mapping, 100_000, max(self.directions) + 1)
        chosen = list(self.directions)
        shifts = torch.zeros(len(chosen), 23, 512)  # (k, slots, 512): other layers keep the mean
        shifts[:, slice(*self.layers)] = (basis.deviations[chosen, None] * basis.components[chosen])[:, None]
        origin = basis.mean.expand(23, 512)
        data = GeneratorManifold(face_generator(), shifts, origin=origin, spread=self.spread, points=self.points,
                                 seed=self.seed)  # fmt: skip
        sources, images = data.all_points(self.points), []
        assert sources is not None
        for i, source in enumerate(sources):
            notify(f"face {i + 1} of {self.points}")
            images.append((data.render(source[None])[0] * 255).round().byte().permute(1, 2, 0).numpy())
        return np.stack(images), sources.double().numpy()

    def image_factors(self) -> tuple[Factor, ...]:
        return tuple(Factor(f"direction{k}") for k in self.directions)


@final
class Faces(Dataset):
    """3,000 faces of a StyleGAN, 64 x 64, along two principal directions with uniform coefficients.

    Example:
        >>> Faces(manifold="14").load().shape  # doctest: +SKIP
        (3, 64, 64)
    """

    name = "faces"
    paper = "Horan, Richardson and Weiss (2021), Sec. 4; generator: Belousov (2021), MobileStyleGAN"
    page = "(packed by this project; the dataset generated-faces makes others)"
    license = "research use only"
    files = tuple(PublishedFile(f"faces/faces-{name}.zip", f"sha256:{sha256}") for name, sha256 in SHA256.items())

    manifold: Literal["01", "14", "23"] = "01"
    """Two principal directions that vary, counted from 0."""

    def required_files(self) -> tuple[PublishedFile, ...]:
        return (self.files[list(SHA256).index(self.manifold)],)

    def title(self) -> str:
        return f"faces-{self.manifold}"

    def load(self) -> Table:
        x, c = read_faces(self.paths()[0])
        return Table(torch.from_numpy(x), torch.from_numpy(c), [Factor(f"direction{k}") for k in self.manifold])


def read_faces(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return images (n, 3, 64, 64) and coefficients (n, k) of a packed manifold: JPEG files and factors.npy."""
    try:
        with zipfile.ZipFile(path) as packed:
            names = sorted(n for n in packed.namelist() if n.endswith(".jpg"))
            images = np.stack([decode_image(io.BytesIO(packed.read(n)), n) for n in names])
            factors = np.load(io.BytesIO(packed.read("factors.npy")), allow_pickle=False).astype(np.float64)
    except (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise InputError(
            f"{path} is not a packed manifold ({error}); delete the file and repeat the command"
        ) from error
    if factors.shape[:1] != images.shape[:1]:
        raise InputError(f"{path} has {len(images)} images and {len(factors)} rows of factors")
    return images, factors
