"""Decoders that run in a page: node computes what `inverse_transform` returns, for every method with a decoder."""

import base64
import json
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn

from tests.helpers import METHODS, NETWORKS, small_method
from tests.report.browser import CHROMIUM, Browser
from unweave import explore
from unweave.methods import GIN, PCA, Autoencoder, BetaVAE
from unweave.methods.neural import Neural
from unweave.report.explorer import decoder_export
from unweave.report.explorer.decoder_export import ExportedDecoder, export_decoder

GRAY_LEVEL = 1 / 255
FLOWS = ("gin", "self-supervised-gin")
DECODERS = [name for name, cls in METHODS.items() if cls.has_decoder()]
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")


def run_in_node(exported: ExportedDecoder, z: np.ndarray, folder: Path) -> np.ndarray:
    """Decode codes (n, d) by decoder.js, (n, *shape)."""
    fields = exported._asdict() | {"weights": base64.b64encode(exported.weights).decode()}
    (folder / "input.json").write_text(json.dumps({"exported": fields, "codes": z.tolist(), "repeats": 0}))
    library = Path(decoder_export.__file__).with_name("decoder.js")
    driver = Path(__file__).with_name("decode.js")
    command = ["node", str(driver), str(library), str(folder / "input.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return np.array(json.loads(done.stdout)["decoded"]).reshape(len(z), *exported.shape)


def random_codes(method: Any, x: Any) -> np.ndarray:
    """Return five random codes with the means of the codes of x and their deviations, but at least one."""
    z = np.asarray(method.transform(x))
    return z.mean(0) + np.maximum(z.std(0), 1) * np.random.default_rng(1).normal(size=(5, z.shape[1]))


def assert_node_agrees(method: Any, z: np.ndarray, folder: Path, unit: np.ndarray | float = 1.0) -> ExportedDecoder:
    """Compare node with Python to one gray level, or to 1/255 of the unit of a column; return the decoder."""
    exported = export_decoder(method)
    assert exported is not None
    assert json.loads(json.dumps(exported.operations)) == exported.operations
    decoded = method.inverse_transform(z)
    assert np.ptp(decoded, 0).max() > GRAY_LEVEL, "the decoder ignores the codes"
    errors = np.abs(run_in_node(exported, z, folder) - decoded) / unit
    assert errors.max() < GRAY_LEVEL
    print(f"{method.name}: {errors.max():.2g}")  # noqa: T201
    return exported


def strengthen(method: Any, size: float = 0.2) -> None:
    """Add noise to the weights of a network that has hardly learned, so that codes have an effect."""
    torch.manual_seed(0)
    with torch.no_grad():
        for p in method.net_.parameters():
            p.add_(size * torch.randn(p.shape))


def small_images(shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return images of bright squares at random places, (120, *shape), and classes, (120,)."""
    rng = np.random.default_rng(0)
    x = np.zeros((120, *shape), np.float32)
    for image in x:
        i, j = rng.integers(0, shape[-1] - 4, 2)
        image[..., i : i + 4, j : j + 4] = rng.uniform(0.5, 1)
    return x, np.arange(120) % 3


def small_settings(name: str) -> dict[str, Any]:
    """Return settings of a method for a few steps of training."""
    settings: dict[str, Any] = {"steps": 3} if name in NETWORKS else {}
    return settings | ({"latent_dim": 3, "batch_size": 30, "blocks": 1, "width": 8} if name in FLOWS else {})


@cache
def fit_images(name: str) -> tuple[Any, np.ndarray]:
    """Return a method after a few steps of training, and the images, (120, 3, 12, 12)."""
    x, y = small_images((3, 12, 12))
    method = small_method(name, **small_settings(name)).fit(x, y)
    if name in NETWORKS:
        strengthen(method, 0.05 if name in FLOWS else 0.2)
    return method, x


@needs_node
@pytest.mark.parametrize("name", DECODERS)
def test_images_are_those_of_inverse_transform(name, tmp_path):
    method, x = fit_images(name)
    assert_node_agrees(method, random_codes(method, x), tmp_path)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    folder = tmp_path_factory.mktemp("browser")
    method, x = fit_images("pca")
    with Browser(explore(method, x, folder / "page.html"), folder / "profile") as browser:
        yield browser


@pytest.mark.skipif(not CHROMIUM, reason="Chromium is not installed")
@pytest.mark.parametrize("name", DECODERS)
def test_a_page_shows_the_pixels_of_inverse_transform(name, browser, tmp_path):
    method, x = fit_images(name)
    browser.open(explore(method, x, tmp_path / "page.html"))
    for codes in random_codes(method, x):
        browser.evaluate(f"unweaveExplorer.change({{edits: {json.dumps(dict(enumerate(codes.tolist())))}}})")
        browser.wait_for("document.body.dataset.ready === 'done' && !unweaveExplorer.isDirty")
        z = np.array([browser.evaluate("[...unweaveExplorer.z]")], np.float32)
        expected = np.clip(255 * method.inverse_transform(z)[0], 0, 255).transpose(1, 2, 0)
        assert np.abs(browser.pixels("[data-part=edited] canvas", 12, 12) - expected).max() <= 1.0
    assert not browser.problems()


@needs_node
@pytest.mark.parametrize("name", DECODERS)
def test_columns_are_in_the_units_of_the_table(name, tmp_path):
    z = np.random.default_rng(0).uniform(-1, 1, (120, 2))
    x = np.column_stack([1e6 + 1e3 * z[:, 0], 1e-4 * z[:, 1], z.sum(1), z[:, 0] - z[:, 1] ** 2])
    table = pd.DataFrame(x, columns=["height", "width", "sum", "bend"])
    method = small_method(name, **small_settings(name)).fit(table, np.arange(120) % 3)
    if name in NETWORKS:
        strengthen(method)
    assert_node_agrees(method, random_codes(method, table), tmp_path, x.std(0))


@needs_node
def test_a_network_of_default_size_for_gray_images(tmp_path):
    x, _ = small_images((64, 64))
    method = BetaVAE(latent_dim=10, steps=3).fit(x)
    strengthen(method, 0.03)
    exported = assert_node_agrees(method, random_codes(method, x), tmp_path)
    assert {op["weight"]["parts"] for op in exported.operations if "weight" in op} == {1}  # 16 bits suffice


@needs_node
@pytest.mark.parametrize("shape", [(2, 15, 21), (9, 9), (1, 4, 4)], ids=str)
def test_images_that_are_cropped_or_not_halved(shape, tmp_path):
    x, _ = small_images((2, 24, 24))
    x = np.ascontiguousarray(
        x[:, 0, : shape[-2], : shape[-1]] if len(shape) == 2 else x[:, : shape[0], : shape[1], : shape[2]]
    )
    method = small_method("beta-vae", steps=3).fit(x)
    strengthen(method)
    assert_node_agrees(
        method, random_codes(method, x + 0.1 * np.random.default_rng(0).random(x.shape) * (1 - x)), tmp_path
    )


@needs_node
@pytest.mark.parametrize("settings", [
    {"family": "gamma", "clamp": "steep", "volume": "last"}, {"family": "beta", "volume": "free", "standardize": True},
    {"network": "dense"},
], ids=str)  # fmt: skip
def test_variants_of_flows(settings, tmp_path):
    x, y = small_images((8, 8))
    small = {"latent_dim": 3, "steps": 3, "batch_size": 30, "blocks": 2, "width": 8}
    method = GIN(**small, **settings).fit(x + 0.1, y)
    strengthen(method)
    z = np.random.default_rng(0).uniform(0.2, 0.8, (5, 3))
    assert_node_agrees(method, z, tmp_path, max(1.0, float(np.abs(method.inverse_transform(z)).max())))


@needs_node
def test_layers_of_users(tmp_path):
    layers = nn.Sequential(
        nn.Linear(2, 12), nn.ELU(), nn.Linear(12, 12, bias=False), nn.Tanh(), nn.Unflatten(1, (3, 2, 2)),
        nn.ConvTranspose2d(3, 4, 3, stride=2, padding=1, output_padding=1), nn.SiLU(), nn.Identity(),
        nn.ConvTranspose2d(4, 5, (5, 4), stride=(3, 2), padding=(1, 0)), nn.LeakyReLU(0.3),
        nn.Conv2d(5, 2, (3, 5), stride=(2, 1), padding=(1, 2)), nn.Sigmoid(), nn.Flatten(),
    )  # fmt: skip
    with torch.no_grad():
        size = layers(torch.zeros(1, 2)).shape[1]
    x = np.random.default_rng(0).random((60, size)).astype(np.float32)
    method = Autoencoder(latent_dim=2, steps=2, decoder=layers, keep_weights=True, layers=(8,)).fit(x)
    strengthen(method)
    assert_node_agrees(method, np.random.default_rng(0).normal(size=(5, 2)), tmp_path)


@needs_node
def test_weights_are_exact_where_16_bits_are_too_coarse(tmp_path):
    layers = nn.Sequential(nn.Linear(2, 30), nn.ReLU(), nn.Linear(30, 3))
    method = Autoencoder(latent_dim=2, steps=1, decoder=layers, layers=(8,)).fit(
        np.random.default_rng(0).random((60, 1, 3))
    )
    net: Any = method.net_
    with torch.no_grad():
        net.decoder.module[2].weight.mul_(30_000)
    exported = assert_node_agrees(method, np.random.default_rng(0).normal(size=(5, 2)), tmp_path)
    assert {op["weight"]["parts"] for op in exported.operations if "weight" in op} == {2}


# Methods without an exported decoder ----------------------------------------------------------------------------------


class Doubling(nn.Module):
    """A layer without an operation."""

    def forward(self, x: Tensor) -> Tensor:
        """Return 2 x."""
        return 2 * x


class ScaledLinear(nn.Linear):
    """A subclass that computes something else."""

    def forward(self, x: Tensor) -> Tensor:
        """Return 2 (W x + b)."""
        return 2 * super().forward(x)


class CubicAutoencoder(Neural):
    """A decoder whose outputs are computed further."""

    paper = "none"

    def build(self, shape: tuple[int, ...]) -> nn.Module:
        d = self.latent_dim
        return nn.ModuleDict({"encoder": nn.Linear(shape[0], d), "decoder": nn.Linear(d, shape[0])})

    def loss(self, net: Any, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        return {"loss": (net["decoder"](net["encoder"](batch["x"])) - batch["x"]).square().mean()}

    def encode(self, x: Tensor) -> Tensor:
        return self.apply_network(lambda net, part: net["encoder"](part), x)

    def decode(self, z: Tensor) -> Tensor:
        return self.apply_network(lambda net, part: net["decoder"](part), z) ** 3


@pytest.mark.parametrize(
    "layers",
    [
        nn.Sequential(nn.Linear(2, 4), Doubling()),
        nn.Sequential(nn.Linear(2, 6), nn.GELU(), nn.Linear(6, 4)),
        ScaledLinear(2, 4),
        nn.Sequential(nn.Unflatten(1, (2, 1)), nn.Linear(1, 2)),
        nn.Sequential(nn.Linear(2, 4), nn.Unflatten(1, (4, 1, 1)), nn.Conv2d(4, 4, 1, groups=2)),
    ],
    ids=["own", "gelu", "subclass", "last axis", "groups"],
)
def test_unknown_layers_have_no_operations(layers):
    x = np.random.default_rng(0).random((40, 4))
    assert export_decoder(Autoencoder(latent_dim=2, steps=1, decoder=layers, layers=(4,)).fit(x)) is None


def test_methods_without_a_known_decoder_have_none():
    x = np.random.default_rng(0).random((60, 4))
    assert export_decoder(small_method("cnn-classifier", steps=1).fit(x, np.arange(60) % 2)) is None
    assert export_decoder(CubicAutoencoder(latent_dim=2, steps=1).fit(x)) is None
    method = PCA(latent_dim=2).fit(x)
    method.decode = lambda z: PCA.decode(method, z) ** 2
    assert export_decoder(method) is None
