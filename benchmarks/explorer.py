"""Decoded frames per second of the explorer in node: python -m benchmarks.explorer

Two networks of default size, after two steps of training: a VAE of 64 x 64 images and GIN of 28 x 28 images. Each is
exported and decoded again and again by decoder.js. Writes results/explorer.json.
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

import unweave
from unweave.methods import GIN, BetaVAE
from unweave.report.explorer import decoder_export
from unweave.report.explorer.decoder_export import export_decoder

ROOT = Path(__file__).parent.parent
LIBRARY = Path(decoder_export.__file__).with_name("decoder.js")
RESULTS = Path(__file__).parent / "results" / "explorer.json"
REPEATS, N_CODES, WEIGHT_NOISE = 100, 5, 0.02


def methods() -> dict[str, Any]:
    """Return the methods to measure, with weights that are no longer those at the start."""
    rng, torch_rng = np.random.default_rng(0), torch.Generator().manual_seed(0)
    vae = BetaVAE(steps=2, device="cpu").fit(rng.random((64, 1, 64, 64), dtype=np.float32))
    labels = np.arange(64) % 2
    gin = GIN(steps=2, batch_size=32, device="cpu").fit(rng.random((64, 28, 28), dtype=np.float32), labels)
    for method in (vae, gin):
        with torch.no_grad():
            for p in method.net_.parameters():
                p.add_(WEIGHT_NOISE * torch.randn(p.shape, generator=torch_rng))
    return {"beta-vae 64 x 64": vae, "gin 28 x 28": gin}


def run_node(text: str, folder: Path) -> dict[str, Any]:
    """Decode in node."""
    (folder / "input.json").write_text(text)
    command = ["node", *map(str, (ROOT / "tests" / "report" / "decode.js", LIBRARY, folder / "input.json"))]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def measure(name: str, method: Any, engine: str, folder: Path) -> dict[str, Any]:
    """Return frames per second, the largest error and the size of the weights."""
    exported = export_decoder(method)
    assert exported is not None
    z = np.random.default_rng(1).normal(size=(N_CODES, exported.latent_dim))
    fields = exported._asdict() | {"weights": base64.b64encode(exported.weights).decode()}
    text = json.dumps({"exported": fields, "codes": z.tolist(), "repeats": REPEATS})
    result = run_node(text, folder)
    error = np.abs(np.reshape(result["decoded"], (N_CODES, *exported.shape)) - method.inverse_transform(z)).max()
    return {
        "decoder": name, "engine": engine, "frames_per_second": round(1000 / result["milliseconds"], 1),
        "milliseconds": round(result["milliseconds"], 2), "error_in_gray_levels": float(f"{255 * error:.2g}"),
        "compressed_bytes": len(exported.weights),
    }  # fmt: skip


def version(program: str) -> str:
    """Return the version that a program prints."""
    return subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.strip()


def main() -> None:
    """Measure, print and write all rows."""
    engines = [engine for engine in ("node",) if shutil.which(engine)]
    rows = []
    for name, method in methods().items():
        for engine in engines:
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                rows.append(measure(name, method, engine, Path(folder)))
            print(json.dumps(rows[-1]), flush=True)
    facts: dict[str, Any] = {
        "date": datetime.date.today().isoformat(),
        "unweave": unweave.__version__,
        "torch": torch.__version__,
    }
    facts |= {engine: version(engine) for engine in engines} | {"processors": os.cpu_count()}
    print(json.dumps(facts))
    RESULTS.write_text(json.dumps(facts | {"rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
