"""Decoded frames per second of the explorer in node and Chromium: python -m benchmarks.explorer

Two networks of default size, after two steps of training: a VAE of 64 x 64 images and GIN of 28 x 28 images. In node
each is exported and decoded again and again by decoder.js. In Chromium its page is opened from disk; a frame is one
move of a slider: the codes are decoded and the edited image is drawn. The map is measured with 5,000 points: drawing
all of them, and finding and showing the one below the pointer. Writes results/explorer.json.
"""

import base64
import datetime
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tests.report.browser import CHROMIUM, Browser

import unweave
from unweave.methods import GIN, PCA, BetaVAE
from unweave.report.explorer import decoder_export
from unweave.report.explorer.decoder_export import export_decoder
from unweave.report.explorer.page import explore

ROOT = Path(__file__).parent.parent
LIBRARY = Path(decoder_export.__file__).with_name("decoder.js")
RESULTS = Path(__file__).parent / "results" / "explorer.json"
REPEATS, N_CODES, WEIGHT_NOISE = 100, 5, 0.02


FRAME_LOOP = """(async () => {
  const { model, painter, panel } = unweaveExplorer, { canvas } = panel.figures.get("edited");
  const context = canvas.getContext("2d"), box = { x: 0, y: 0, width: canvas.width, height: canvas.height };
  const draw = (i) => painter.paint(context, model.observe(model.codesOf(i % model.count)), box);
  for (let i = 0; i < 10; i += 1) draw(i);
  const start = performance.now();
  for (let i = 0; i < REPEATS; i += 1) draw(i);
  context.getImageData(0, 0, 1, 1); // waits for the drawing
  return (performance.now() - start) / REPEATS;
})()"""


MAP_LOOP = """(() => {
  const { map } = unweaveExplorer, time = (repeats, action) => {
    const start = performance.now();
    for (let i = 0; i < repeats; i += 1) action(i);
    return (performance.now() - start) / repeats;
  };
  const hover = (i) => {
    map.hovered = -1;
    map.hover({ offsetX: map.width * ((i * 0.37) % 1), offsetY: map.height * ((i * 0.61) % 1) });
  };
  return [time(10, () => map.draw()), time(100, hover)];
})()"""


def methods() -> dict[str, tuple[Any, np.ndarray]]:
    """Return the methods to measure with their images; weights are no longer those at the start."""
    rng, torch_rng = np.random.default_rng(0), torch.Generator().manual_seed(0)
    large, small = rng.random((64, 1, 64, 64), dtype=np.float32), rng.random((64, 28, 28), dtype=np.float32)
    vae = BetaVAE(steps=2, device="cpu").fit(large)
    gin = GIN(steps=2, batch_size=32, device="cpu").fit(small, np.arange(64) % 2)
    for method in (vae, gin):
        with torch.no_grad():
            for p in method.net_.parameters():
                p.add_(WEIGHT_NOISE * torch.randn(p.shape, generator=torch_rng))
    return {"beta-vae 64 x 64": (vae, large), "gin 28 x 28": (gin, small)}


def run_node(text: str, folder: Path) -> dict[str, Any]:
    """Decode in node."""
    (folder / "input.json").write_text(text)
    command = ["node", *map(str, (ROOT / "tests" / "report" / "decode.js", LIBRARY, folder / "input.json"))]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def measure_page(name: str, method: Any, x: np.ndarray, folder: Path) -> dict[str, Any]:
    """Return frames per second of the page in Chromium, and its size."""
    page = explore(method, x, folder / "page.html")
    with Browser(page, folder / "profile") as browser:
        milliseconds = browser.evaluate(FRAME_LOOP.replace("REPEATS", str(REPEATS)))
        assert not browser.problems()
    return {
        "decoder": name, "engine": "chromium", "frames_per_second": round(1000 / milliseconds, 1),
        "milliseconds": round(milliseconds, 2), "page_bytes": page.stat().st_size,
    }  # fmt: skip


def measure_map(folder: Path) -> dict[str, Any]:
    """Return the milliseconds for drawing the map of 5,000 images and for one move of the pointer on it."""
    x = np.random.default_rng(0).random((5_000, 16, 16), dtype=np.float32)
    with Browser(explore(PCA(latent_dim=10).fit(x), x, folder / "page.html"), folder / "profile") as browser:
        draw, hover = browser.evaluate(MAP_LOOP)
    return {"map": "5,000 points", "engine": "chromium", "draw_ms": round(draw, 2), "hover_ms": round(hover, 2)}


def measure_node(name: str, method: Any, folder: Path) -> dict[str, Any]:
    """Return frames per second, the largest error and the size of the weights."""
    exported = export_decoder(method)
    assert exported is not None
    z = np.random.default_rng(1).normal(size=(N_CODES, exported.latent_dim))
    fields = exported._asdict() | {"weights": base64.b64encode(exported.weights).decode()}
    text = json.dumps({"exported": fields, "codes": z.tolist(), "repeats": REPEATS})
    result = run_node(text, folder)
    error = np.abs(np.reshape(result["decoded"], (N_CODES, *exported.shape)) - method.inverse_transform(z)).max()
    return {
        "decoder": name, "engine": "node", "frames_per_second": round(1000 / result["milliseconds"], 1),
        "milliseconds": round(result["milliseconds"], 2), "error_in_gray_levels": float(f"{255 * error:.2g}"),
        "compressed_bytes": len(exported.weights),
    }  # fmt: skip


def version(program: str) -> str:
    """Return the version that a program prints."""
    return subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.strip()


def main() -> None:
    """Measure, print and write all rows."""
    programs = {"node": shutil.which("node"), "chromium": CHROMIUM}
    engines = {name: program for name, program in programs.items() if program}
    rows = []
    for name, (method, x) in methods().items():
        for engine in engines:
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as text:
                folder = Path(text)
                is_page = engine == "chromium"
                rows.append(measure_page(name, method, x, folder) if is_page else measure_node(name, method, folder))
            print(json.dumps(rows[-1]), flush=True)
    if "chromium" in engines:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as text:
            rows.append(measure_map(Path(text)))
        print(json.dumps(rows[-1]), flush=True)
    facts: dict[str, Any] = {
        "date": datetime.date.today().isoformat(),
        "unweave": unweave.__version__,
        "torch": torch.__version__,
    }
    facts |= {name: version(program) for name, program in engines.items()} | {"processors": os.cpu_count()}
    print(json.dumps(facts))
    RESULTS.write_text(json.dumps(facts | {"rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
