"""Small cases with fixed seeds, whose results are kept in `tests/reference/golden.npz` and `golden.json`.

`python -m tests.golden [CASE ...]` records them anew, which is right only after an intended change. Everything is
named by classes and functions, since names in the catalog may change, and made by public names alone.
"""

import hashlib
import json
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

import unweave
from unweave import datasets, methods, metrics

HERE = Path(__file__).parent / "reference"
ROWS = 40  # of the codes that are kept
ARITHMETIC = "b289a2173cc3552d"  # `arithmetic()` of the machine that recorded them
CHAOTIC = ("GIN/grid", "SelfSupervisedGIN/grid", "SelfSupervisedGIN/moved")  # they amplify rounding errors

Arrays = dict[str, np.ndarray]
Numbers = dict[str, float]

SMALL: dict[str, Any] = {
    "latent_dim": 2, "steps": 20, "batch_size": 16, "layers": (8,), "widths": (8, 8), "hidden": (16,), "critic": (8,),
    "discriminator_hidden": (8,), "translator": 8, "inner_steps": 2, "discriminator": (8,), "disentanglers": (8,),
    "upper": (8,), "prior_hidden": (8,), "upper_dim": 2, "random_features": 16, "blocks": 2, "width": 8,
    "conv_blocks": 2, "conv_widths": (4, 4), "lr": 0.003, "seed": 3, "device": "cpu",
}  # fmt: skip

# What is learned from ----------------------------------------------------------------------------------------------


@cache
def sheet() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two uniform factors on a gently curved sheet in four dimensions: observations, labels, factors."""
    z = np.random.default_rng(0).uniform(-1, 1, (120, 2))
    x = np.stack([z[:, 0], z[:, 1], 0.1 * z[:, 0] ** 2, 0.1 * z[:, 1] ** 2], 1)
    return x, np.arange(120) % 3, z


@cache
def grid() -> unweave.Grid:
    """Bytes, 1 x 16 x 16: a square in four columns and five rows, and of three brightnesses; noise in all pixels."""
    images = np.random.default_rng(1).integers(0, 40, (4, 5, 3, 1, 16, 16), dtype=np.uint8)
    for i in range(4):
        for j in range(5):
            for k in range(3):
                images[i, j, k, 0, 2 * j + 1 : 2 * j + 6, 3 * i + 1 : 3 * i + 6] += np.uint8(60 + 70 * k)
    factors = [
        unweave.Factor("column", 4, "ordinal"),
        unweave.Factor("row", 5, "ordinal"),
        unweave.Factor("light", 3, "ordinal"),
    ]
    return unweave.Grid(torch.from_numpy(images.reshape(60, 1, 16, 16)), factors)


@cache
def bytes_of_grid() -> np.ndarray:
    return grid().x.numpy()


@cache
def factors_of_grid() -> np.ndarray:
    return grid().combinations().numpy().astype(float)


@cache
def halves() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs that differ in one factor, or in two: first, second, how many."""
    rng = np.random.default_rng(2)
    c = rng.uniform(-1, 1, (80, 3))
    changed = 1 + np.arange(80) % 2
    c2 = c.copy()
    c2[:, 0] = rng.uniform(-1, 1, 80)
    c2[changed == 2, 1] = rng.uniform(-1, 1, (changed == 2).sum())
    turn = rng.normal(size=(3, 5))
    return np.tanh(c @ turn), np.tanh(c2 @ turn), changed


# What each method is run on -------------------------------------------------------------------------------------


def made(name: str, **settings: Any) -> Any:
    """The method by the name of its class, small enough for a test."""
    cls: Any = getattr(methods, name)
    small = {k: v for k, v in SMALL.items() if k in cls.__dataclass_fields__}
    return cls(**small | settings)


def results(method: Any, x: np.ndarray, factors: np.ndarray) -> tuple[Arrays, Numbers]:
    """Codes of the first rows, what they are decoded to, predicted classes; and scores of all codes."""
    codes = method.transform(x)
    found: Arrays = {"codes": codes[:ROWS]}
    if method.has_decoder():
        found["decoded"] = method.inverse_transform(codes[:4])
    for name in ("predict", "predict_proba"):
        if hasattr(method, name):
            found[name] = np.asarray(getattr(method, name)(x[:ROWS]))
    if not method.history.empty:
        found["history"] = method.history.to_numpy(np.float64)
    return found, {
        "mcc": metrics.mcc(factors, codes),
        "spearman": metrics.mcc(factors, codes, correlation="spearman"),
        "sap": metrics.sap(factors, codes, predictor="r2"),
        "isometry": metrics.local_isometry(x.reshape(len(x), -1).astype(np.float64), codes),
    }


def on_table(name: str, **settings: Any) -> tuple[Arrays, Numbers]:
    """Learned from an array (120, 4) with labels, which most methods ignore."""
    x, y, z = sheet()
    return results(made(name, **settings).fit(x, y), x, z)


def on_bytes(name: str, **settings: Any) -> tuple[Arrays, Numbers]:
    """Learned from an array of images."""
    y = np.arange(60) // 15
    return results(made(name, **settings).fit(bytes_of_grid(), y), bytes_of_grid(), factors_of_grid())


def on_grid(name: str, **settings: Any) -> tuple[Arrays, Numbers]:
    """Learned from data that know their factors, and draw labels and pairs by them."""
    return results(made(name, **settings).fit(grid()), bytes_of_grid(), factors_of_grid())


def on_pairs(name: str, **settings: Any) -> tuple[Arrays, Numbers]:
    """Learned from two arrays, row by row, and a class that both halves share."""
    first, second, changed = halves()
    data = unweave.as_pairs(first, second, np.arange(80) % 3, changed=changed)
    return results(made(name, **settings).fit(data), first, np.arange(80)[:, None] % 3 + 0.0)


def on_data(name: str, dataset: str, recipe: dict[str, Any], **settings: Any) -> tuple[Arrays, Numbers]:
    """Learned from a dataset, judged by some draws of it."""
    data = getattr(datasets, dataset)(**recipe)
    method = made(name, **settings).fit(data)
    x, c = data.load().collect(100, torch.Generator().manual_seed(1))
    return results(method, x.numpy(), c.numpy().astype(np.float64))


SQUARES: dict[str, Any] = {"points": 60, "size": 16, "side": 5.0}
SPECTRAL = ("HessianICA", "LaplacianICA", "TangentICA", "LinearICA", "PCA")
LABELED = ("CAI", "CNNClassifier", "CVIB", "UAI", "VAEClassifier", "VFAE", "SwapContrast")
PAIRED = ("AdaGVAE", "AdaMLVAE")
FLOWS = ("GIN", "SelfSupervisedGIN")
AUTOENCODERS = (
    "AnnealedVAE", "Autoencoder", "BetaTCVAE", "BetaVAE", "DIPVAE", "FactorVAE", "HessianAutoencoder", "InfoGANCR",
    "InterventionAutoencoder", "IRMAE", "IVAE",
)  # fmt: skip
EVERY = (*SPECTRAL, *LABELED, *PAIRED, *FLOWS, *AUTOENCODERS)
NUISANCES: dict[str, Any] = {"label": "row", "nuisances": ("column", "light")}

Case = Callable[[], tuple[Arrays, Numbers]]


def cases() -> dict[str, Case]:
    """What is computed, by class and situation."""
    found: dict[str, Case] = {}

    def add(name: str, how: str, function: Any, *args: Any, **settings: Any) -> None:
        found[f"{name}/{how}"] = lambda: function(name, *args, **settings)

    for name in EVERY:
        add(name, "table", on_table)
        # The torch graph of a flow on images costs most: once is enough there.
        if name not in SPECTRAL and name not in FLOWS:
            add(name, "bytes", on_bytes, steps=12)
        if name not in SPECTRAL:
            more = {"latent_dim": 4} if name == "SwapContrast" else {}
            add(name, "grid", on_grid, steps=8, **more)
    for name in ("HessianICA", "LaplacianICA", "TangentICA", "PCA"):
        add(name, "dataset", on_data, "SquaresXY", {"points": 120, "size": 12, "side": 4.0})
        add(name, "roll", on_data, "SwissRoll", {"points": 150})
    add("LinearICA", "dataset", on_data, "FlatSheet", {"points": 120, "width": 6})
    add("HessianICA", "unknown-dimension", on_data, "FlatSheet", {"points": 200, "width": 6}, latent_dim="auto")
    add("HessianICA", "landmarks", on_data, "FlatSheet", {"points": 150, "width": 6}, landmarks=60, n_neighbors=12)
    for name in ("BetaVAE", "InterventionAutoencoder", "HessianAutoencoder", "FactorVAE"):
        add(name, "dataset", on_data, "SquaresXY", SQUARES, steps=6)
    for name in PAIRED:
        add(name, "pairs", on_pairs)
        add(name, "one-change", on_grid, changed=1, steps=6)
    add("SwapContrast", "pairs", on_pairs, latent_dim=4)
    add("SwapContrast", "nuisances", on_grid, **NUISANCES, latent_dim=4, steps=6)
    add("SwapContrast", "one-change", on_grid, changed=1, label="light", steps=6)
    for name in ("CAI", "CVIB", "VFAE"):
        add(name, "nuisances", on_grid, **NUISANCES, steps=6)
    add("GIN", "mixture", on_data, "GaussianMixture", {"points": 200}, latent_dim="auto", steps=6)
    add("SelfSupervisedGIN", "mixture", on_data, "GaussianMixture", {"points": 200}, latent_dim="auto", steps=6)
    add(
        "SelfSupervisedGIN", "along", on_data, "GaussianMixture", {"points": 200}, augment=("noise1", "noise2"), steps=6
    )
    add("SelfSupervisedGIN", "moved", on_grid, augment=("translation", "rotation"), steps=4)
    add("DIPVAE", "variant-i", on_table, variant="i")
    add("BetaVAE", "plain", on_table, beta=1.0, likelihood="gaussian", lr=0.01, clip=1.0)
    return found


# Metrics -----------------------------------------------------------------------------------------------------------

BY_FACTORS: dict[str, list[dict[str, Any]]] = {
    "beta_vae_score": [{}, {"points": 200, "pairs": 16, "seed": 1}],
    "dci": [{"estimator": e} for e in ("trees", "rf", "lasso", "gbt")] + [{"estimator": "rf", "depth": "cv"}],
    "explicitness": [{}],
    "factor_vae_score": [{}, {"votes": 200, "batch": 16}],
    "infomec": [{}],
    "irs": [{}, {"quantile": 1.0}],
    "local_isometry": [{}],
    "mcc": [{}, {"correlation": "spearman"}],
    "mig": [{}, {"bins": 8}],
    "modularity": [{}],
    "nuisance_probe": [{}],
    "sap": [{"predictor": p} for p in ("svm", "logistic", "r2")],
    "unsupervised": [{}],
}


def scores() -> Numbers:
    """Every metric of the catalog on one case with levels and one with real factors, as far as it takes these."""
    rng = np.random.default_rng(7)
    levels = rng.integers(0, [3, 4], (150, 2)).astype(float)
    real = rng.uniform(-1, 1, (150, 2))
    mix = np.array([[1, 0.4, 0.1], [0.2, 1, -0.3]])
    found: Numbers = {}
    for kind, factors in (("levels", levels), ("real", real)):
        codes = np.tanh(factors @ mix) + 0.1 * rng.normal(size=(150, 3))
        for name, settings in BY_FACTORS.items():
            for each in settings:
                if kind == "real" and (name == "nuisance_probe" or each.get("predictor") in ("svm", "logistic")):
                    continue  # these predict classes
                text = ",".join(f"{k}={v}" for k, v in each.items())
                found |= numbers(f"{name}({text}) {kind}", getattr(metrics, name)(factors, codes, **each))
    noise = levels @ mix + 3 * rng.normal(size=(150, 3))  # bad codes, for scores that good ones bring to their limit
    found |= numbers("beta_vae_score noise", metrics.beta_vae_score(levels, noise, points=300, pairs=4))
    found |= numbers("factor_vae_score noise", metrics.factor_vae_score(levels, noise, votes=300, batch=4))
    labels = levels[:, 0].astype(int)
    guesses = np.where(np.arange(150) % 4 == 0, 0, labels)
    groups = levels[:, 1].astype(int)
    for name in ("average_accuracy", "worst_group_accuracy"):
        found |= numbers(name, getattr(metrics, name)(labels, guesses, groups))
    several = [np.tanh(real @ mix) + 0.2 * rng.normal(size=(150, 3)) for _ in range(3)]
    found |= numbers("udr", metrics.udr(several))
    found |= numbers("udr(similarity=lasso)", metrics.udr(several, similarity="lasso"))
    found |= numbers("model_centrality", metrics.model_centrality(several, votes=200))
    x, y, _ = sheet()
    method = made("Autoencoder", steps=150, lr=0.01).fit(x, y)
    for translator in ("linear", "network"):
        value = metrics.translation_difficulty(
            method, method.transform(x), translator=translator, observations=32, steps=20
        )
        found |= numbers(f"translation_difficulty(translator={translator})", value)
    return found


OTHER_METRICS = ("average_accuracy", "worst_group_accuracy", "udr", "model_centrality", "translation_difficulty")


def numbers(name: str, value: Any) -> Numbers:
    """A score as it is, or its parts by their names."""
    if hasattr(value, "_asdict"):
        return {f"{name}.{part}": float(v) for part, v in value._asdict().items()}
    if np.ndim(value):
        return {f"{name}[{i}]": float(v) for i, v in enumerate(np.ravel(value))}
    return {name: float(value)}


# Datasets ----------------------------------------------------------------------------------------------------------

RECIPES: dict[str, tuple[str, dict[str, Any]]] = {
    "ContinuousSprites": ("ContinuousSprites", {"points": 50}),
    "ContinuousSprites square": ("ContinuousSprites", {"points": 50, "shape": "square", "vary": ("x", "angle")}),
    "DSprites": ("DSprites", {"source": "rendered"}),
    "FlatSheet": ("FlatSheet", {"points": 50}),
    "FlatSheet 3": ("FlatSheet", {"points": 50, "dimensions": 3, "width": 9, "seed": 2}),
    "GaussianMixture": ("GaussianMixture", {"points": 50}),
    "Resampled": ("Resampled", {"points": 200}),
    "Resampled independent": ("Resampled", {"points": 200, "part": "independent"}),
    "Shapes3D": ("Shapes3D", {"source": "rendered"}),
    "Slice": ("Slice", {"points": 50}),
    "SquaresXC": ("SquaresXC", {"points": 50}),
    "SquaresXC blurred": ("SquaresXC", {"points": 50, "blur": 2.0, "size": 32, "side": 8.0}),
    "SquaresXY": ("SquaresXY", {"points": 50}),
    "SwissRoll": ("SwissRoll", {"points": 50}),
    "Unseen": ("Unseen", {"of": "shapes3d"}),
    "Unseen test": ("Unseen", {"of": "shapes3d", "part": "test", "distant": True}),
}

# Not recorded: their files are not part of this package, or an extra makes them.
ELSEWHERE = (
    "Cars3D", "ColoredMNIST", "EMNIST", "Faces", "FashionMNIST", "Flowers102", "GeneratedFaces", "MNIST", "MPI3D",
    "MPI3DLike", "RotationColoredMNIST", "SmallNORB",
)  # fmt: skip


def samples(name: str) -> tuple[Arrays, Numbers]:
    """Eight draws of a dataset: their factors, some of their values, and sums; and how its factors are called."""
    cls, recipe = RECIPES[name]
    data = getattr(datasets, cls)(**recipe).load()
    x, c = data.draw(8, torch.Generator().manual_seed(4))
    flat = x.reshape(8, -1).double()
    some = torch.arange(0, flat.shape[1], max(1, flat.shape[1] // 50))
    found = {"c": c.numpy(), "some": flat[:, some].numpy(), "sum": flat.sum(1).numpy(), "shape": np.array(data.shape)}
    weights = torch.cos(torch.arange(flat.shape[1], dtype=torch.float64))
    found["weighed"] = (flat @ weights).numpy()
    return found, {f"size of {f.name}": float(f.size or 0) for f in data.factors}


def arithmetic() -> str:
    """Return a fingerprint of how this machine rounds: processors and math libraries add in different orders."""
    x = torch.sin(torch.arange(2 * 3 * 16 * 16, dtype=torch.float32)).reshape(2, 3, 16, 16)
    w = torch.cos(torch.arange(8 * 3 * 4 * 4, dtype=torch.float32)).reshape(8, 3, 4, 4)
    y = torch.nn.functional.conv2d(x, w, stride=2, padding=1).flatten(1)
    z = torch.linalg.eigvalsh((y @ y.T).double()).float()
    parts = [y, torch.exp(y / 10) @ y.T, torch.nn.functional.softplus(y).sum(1), z]
    return hashlib.sha256(b"".join(part.numpy().tobytes() for part in parts)).hexdigest()[:16]


# Recording ---------------------------------------------------------------------------------------------------------


def everything() -> dict[str, Case]:
    """All cases that give arrays and numbers, by name."""
    return cases() | {f"data/{name}": lambda name=name: samples(name) for name in RECIPES}


def computed(case: Case) -> tuple[Arrays, Numbers]:
    """What a case gives, in silence."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        return case()


def record(only: Sequence[str] = (), folder: Path = HERE) -> None:
    """Compute everything, or some cases, and write both files."""
    arrays: Arrays = {}
    values: dict[str, Numbers] = {}
    if only:
        with np.load(folder / "golden.npz") as file:
            arrays = dict(file)
        values = json.loads((folder / "golden.json").read_text())
    for name, case in everything().items():
        if not only or name in only:
            found, values[name] = computed(case)
            arrays |= {f"{name}/{part}": array for part, array in found.items()}
    if not only:
        values["metrics"] = computed(lambda: ({}, scores()))[1]
    np.savez_compressed(folder / "golden.npz", **arrays)  # type: ignore[arg-type]
    (folder / "golden.json").write_text(json.dumps(values, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as empty:  # no originals of datasets that can also be rendered
        os.environ |= {"UNWEAVE_DATA": "", "UNWEAVE_CACHE": empty}
        record(sys.argv[1:])  # names of cases, or nothing for all
