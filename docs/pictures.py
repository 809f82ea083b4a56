"""Draw the pictures of the user guide: `python docs/pictures.py` writes docs/_static/guide/*.png.

The first two come from the examples of their pages, the others from benchmarks/results.
"""

import io
import json
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from PIL import Image
from scipy.stats import spearmanr

import unweave
from unweave.report.figures.matrices import draw_matrices
from unweave.report.figures.registry import draw_figures, sample_observations
from unweave.report.sample import DrawnData

FOLDER = Path(__file__).parent / "_static" / "guide"
RESULTS = Path(__file__).parent.parent / "benchmarks" / "results"
DPI, COLORS = 130, 128
BLUE, GRAY = "#0b6bcb", "#8a93a3"
PEERS = {  # rows of gpu.json: the case, its name, strategy and precision
    "BetaVAE, MLP": ("beta-VAE, MLP", "stack, compiled", "tf32"),
    "GIN, artificial": ("GIN, 10 numbers", "stack, compiled", "tf32"),
    "BetaTCVAE, conv": ("beta-TCVAE", "stack, compiled", "bf16"),
    "DIPVAE, conv": ("DIP-VAE", "stack, compiled", "bf16"),
    "AnnealedVAE, conv": ("annealed VAE", "stack, compiled", "bf16"),
    "FactorVAE, conv": ("FactorVAE", "stack, compiled", "bf16"),
    "AdaMLVAE, conv": ("Ada-ML-VAE", "stack, compiled", "bf16"),
    "BetaVAE, conv": ("beta-VAE", "stack, compiled", "bf16"),
    "AdaGVAE, conv": ("Ada-GVAE", "stack, compiled", "bf16"),
    "SwapContrast, 28 x 28": ("swap and contrast, 28 x 28", "stack, compiled", "bf16"),
    "InterventionAutoencoder": ("intervention autoencoder", "stack, compiled", "bf16"),
    "GIN, 28 x 28": ("GIN, 28 x 28", "stack, compiled", "bf16"),
    "InfoGANCR": ("InfoGAN-CR", "stack, compiled", "bf16"),
    "CNNClassifier, 28 x 28": ("CNN classifier, 28 x 28", "stack, compiled", "bf16"),
}


def save(figure: Figure, name: str) -> None:
    """Write a figure as a PNG with a palette."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DPI, bbox_inches="tight", pad_inches=0.1, facecolor="white")
    FOLDER.mkdir(parents=True, exist_ok=True)
    picture = Image.open(buffer).convert("RGB").quantize(COLORS, dither=Image.Dither.NONE)
    picture.save(FOLDER / f"{name}.png", optimize=True)


def draw_explanation() -> Figure:
    """Draw the factor-code matrices of the example of score.md."""
    rng = np.random.default_rng(0)
    x, y = rng.uniform(size=800), rng.uniform(size=800)
    shape = rng.integers(3, size=800)
    noise = rng.normal(size=(800, 2))
    codes = np.stack([x + y, x - y, shape + 0.1 * noise[:, 0], noise[:, 1], np.zeros(800)], 1)
    truth = unweave.metrics.prepared(np.column_stack([x, y, shape]), kinds=["continuous", "continuous", "nominal"])
    return draw_matrices(unweave.explain(truth, codes, names=["x", "y", "shape"]))


def observe_lamp_and_ball() -> tuple[unweave.Method, DrawnData]:
    """Return a fitted method and the images of the example of figures.md."""
    rng = np.random.default_rng(0)
    place, light = rng.uniform(6, 26, 300), rng.uniform(0, 255, 300)
    rows, columns = np.mgrid[:32, :32]
    lamp = np.exp(-((columns - 16) ** 2 + (rows - 7) ** 2) / 15)
    balls = np.exp(-((columns - place[:, None, None]) ** 2 + (rows - 22) ** 2) / 15)
    images = (200 * balls + light[:, None, None] * lamp).astype(np.uint8)[:, None] / np.float32(255)
    data = unweave.as_data(images, pd.DataFrame({"place": place, "light": light}))
    return unweave.methods.HessianICA(latent_dim=2).fit(data), sample_observations(data)


def setting_name(row: pd.Series) -> str:
    """Return the method of a run of the study, with its strength."""
    return f"{row['method']}, {'gamma' if row['method'] == 'factor-vae' else 'beta'} {row['strength']:g}"


def draw_study() -> Figure:
    """Draw MCC and MIG of forty models on dSprites by setting, from study.csv."""
    table = pd.read_csv(RESULTS / "study.csv")
    table["strength"] = table["gamma"].where(table["method"] == "factor-vae", table["beta"])
    table["setting"] = table.apply(setting_name, axis=1)
    names = list(table.groupby("setting")["mcc"].mean().sort_values().index)
    figure = Figure(figsize=(7.6, 3.0), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for axis, column in zip(axes, ("mcc", "mig"), strict=True):
        for place, name in enumerate(names):
            values = table.loc[table["setting"] == name, column]
            axis.plot(values, [place] * len(values), "o", color=BLUE, alpha=0.55, markersize=5, markeredgewidth=0)
            axis.plot(values.mean(), place, "|", color="black", markersize=13, markeredgewidth=1.6)
        axis.set_xlabel({"mcc": "MCC", "mig": "MIG"}[column])
        axis.grid(axis="x", color="#e3e7ec")
        axis.set_axisbelow(True)
    axes[0].set_yticks(range(len(names)), names)
    return figure


def draw_selection() -> Figure:
    """Draw MCC of the same models over two criteria that need no labels, from select.json and study.csv."""
    runs = pd.DataFrame(json.loads((RESULTS / "select.json").read_text())["runs"])
    runs["key"] = runs["run"].map(lambda path: Path(path).name)
    table = runs.merge(pd.read_csv(RESULTS / "study.csv")[["key", "mcc"]], on="key")
    figure = Figure(figsize=(7.6, 2.9), layout="constrained")
    titles = {"udr": "agreement with other runs (UDR)", "likelihood": "bound of the likelihood, nats"}
    for axis, (column, title) in zip(figure.subplots(1, 2, sharey=True), titles.items(), strict=True):
        for method, color in (("beta-vae", GRAY), ("factor-vae", "#d9622b"), ("beta-tc-vae", BLUE)):
            own = table[table["method"] == method]
            axis.scatter(own[column], own["mcc"], s=25, color=color, alpha=0.8, linewidths=0, label=method)
        rank = spearmanr(table[column], table["mcc"]).statistic
        axis.set_title(f"rank correlation with MCC: {rank:.2f}")
        axis.set_xlabel(title)
    figure.axes[0].set_ylabel("MCC")
    figure.axes[0].legend(fontsize=8, loc="lower right")
    return figure


def draw_rates() -> Figure:
    """Draw the largest ratio to the fastest plain loop of every method, from gpu.json."""
    rows = json.loads((RESULTS / "gpu.json").read_text())["rows"]
    bars: list[tuple[float, str]] = []
    for case, (name, how, precision) in PEERS.items():
        own = [r for r in rows if r["case"] == case and "model-steps/s" in r]
        plain = max(r["model-steps/s"] if r["how"] == "eager loop" else r.get("eager", 0.0) for r in own)
        packs = [r for r in own if (r["how"], r["precision"]) == (how, precision)]
        best = max(packs, key=lambda r: r["model-steps/s"])
        bars.append((best["model-steps/s"] / plain, f"{name} ({best['models']} at once)"))
    bars.sort()
    figure = Figure(figsize=(7.6, 3.6), layout="constrained")
    axis = figure.subplots()
    drawn = axis.barh([name for _, name in bars], [ratio for ratio, _ in bars], color=BLUE, height=0.65)
    labels = [f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.1f}" for ratio, _ in bars]
    axis.bar_label(drawn, labels, padding=3, fontsize=8)
    axis.set_xscale("log")
    axis.set_xticks([1, 10, 100, 1_000], ["1", "10", "100", "1,000"])
    axis.set_xlim(1, 4_000)
    axis.set_xlabel("model-steps per second, times those of a plain eager loop on the same GPU")
    return figure


def main() -> None:
    """Draw all pictures."""
    mpl.rcParams |= {"axes.spines.top": False, "axes.spines.right": False, "font.size": 9, "svg.hashsalt": "unweave"}
    save(draw_explanation(), "explain")
    for name, figure in draw_figures(*observe_lamp_and_ball()).items():
        save(figure, name)
    save(draw_study(), "study")
    save(draw_selection(), "select")
    save(draw_rates(), "rates")


if __name__ == "__main__":
    main()
