"""Training on more images than fit into memory: a million of 64 x 64, and a folder of 20,000 PNGs.

Memory: every kind of data is trained on in a process of its own, whose limit (RLIMIT_DATA) covers all memory that it
allocates. The same data as an array in memory exceed it. Mapped pages of the file are not allocated, and the system
takes them back when it needs them; the peak of resident memory (VmHWM, as `top` shows it) counts them, too.

Speed: two trainings in one process take turns of a hundred steps, so that both see the same load of the machine. The
time on the processor is that of all threads.

    python benchmarks/larger_than_memory.py            # ten to twenty minutes on two cores, and 4.2 GB of disk
    python benchmarks/larger_than_memory.py --quick    # a tenth of everything
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from unweave import OwnData, as_data
from unweave.data.core import FactorData
from unweave.methods import BetaVAE
from unweave.training.loop import Progress
from unweave.training.pack import CHUNK

LIMIT = 4 * 10**9  # bytes
SIZE = 64
RESIDENT = 100_000  # images that the comparison holds in memory
PNGS = 20_000
CACHE = 0.02  # gigabytes: a quarter of the folder
RESULTS = Path(__file__).parent / "results" / "larger-than-memory.json"


def squares(n: int, rng: np.random.Generator) -> np.ndarray:
    """Noisy images of a bright square at a random position, (n, 64, 64)."""
    x = rng.integers(0, 40, (n, SIZE, SIZE), dtype=np.uint8)
    row, column = rng.integers(0, SIZE - 12, (2, n))
    for k in range(12):
        for j in range(12):
            x[np.arange(n), row + k, column + j] += 200
    return x


def write_array(path: Path, n: int) -> None:
    x = np.lib.format.open_memmap(path, "w+", np.uint8, (n, 1, SIZE, SIZE))
    rng = np.random.default_rng(0)
    for start in range(0, n, 10_000):
        x[start : start + 10_000, 0] = squares(min(10_000, n - start), rng)
    x.flush()


def write_folder(folder: Path, n: int) -> None:
    folder.mkdir()
    for i, image in enumerate(squares(n, np.random.default_rng(0))):
        Image.fromarray(image).save(folder / f"{i}.png")


def forget(path: Path) -> None:
    """Drop a file from the system's cache, so that it is read from the disk."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def open_data(kind: str, path: Path) -> FactorData:
    if kind == "everything resident":
        return as_data(np.load(path))
    if kind == "resident":
        return OwnData(path=path).load() if path.is_dir() else as_data(np.load(path, mmap_mode="r")[:RESIDENT].copy())
    if kind == "cold":
        forget(path)
    return OwnData(path=path, memory=CACHE if kind == "small cache" else 0.0).load()


def train(data: FactorData, steps: int, callback: Callable[[Progress], None] | None = None) -> None:
    BetaVAE(steps=steps, widths=(8, 8, 16, 16), hidden=(32,), device="cpu").fit(data, callback=callback)


# Measurements, each in its own process -------------------------------------------------------------------------------


def memory(kind: str, path: Path, steps: int) -> dict[str, Any]:
    """Gigabytes at the peak and at the end of a training within the limit."""
    resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, LIMIT))
    try:
        train(open_data(kind, path), steps)
    except MemoryError as error:
        return {"error": f"MemoryError: {error}"}
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return {f"{name} GB": int(status[name].split()[0]) * 1024 / 1e9 for name in ("VmHWM", "RssAnon", "RssFile")}


class Turns:
    """Two trainings that take turns of a chunk of steps, with the time of each."""

    def __init__(self, steps: int) -> None:
        self.steps, self.now, self.condition = steps, 0, threading.Condition()
        self.wall, self.processor, self.taken = [0.0, 0.0], [0.0, 0.0], [0, 0]

    def wait(self, who: int) -> None:
        with self.condition:
            self.condition.wait_for(lambda: self.now == who)

    def train(self, who: int, data: FactorData) -> None:
        start: tuple[float, float] | None = None

        def report(progress: Progress) -> None:
            nonlocal start
            if progress.step % CHUNK:
                return
            if start is not None:  # the first chunk warms up
                self.wall[who] += time.perf_counter() - start[0]
                self.processor[who] += time.process_time() - start[1]
                self.taken[who] += CHUNK
            with self.condition:
                self.now = 1 - who
                self.condition.notify_all()
            if progress.step < self.steps:
                self.wait(who)
                start = time.perf_counter(), time.process_time()

        self.wait(who)
        train(data, self.steps, report)


def speed(kind: str, path: Path, steps: int) -> dict[str, Any]:
    turns = Turns(steps)
    opened = []
    for each in ("resident", kind):
        start = time.perf_counter()
        opened.append(open_data(each, path))
        seconds = time.perf_counter() - start
    threads = [threading.Thread(target=turns.train, args=(who, data)) for who, data in enumerate(opened)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    fast, slow = (n / t for n, t in zip(turns.taken, turns.wall, strict=True))
    busy, more = (1e3 * t / n for n, t in zip(turns.taken, turns.processor, strict=True))
    result = {
        "seconds to open": seconds,
        "steps/s": slow,
        "steps/s resident": fast,
        "share of resident speed": slow / fast,
    }
    return result | {"processor ms/step": more, "processor ms/step resident": busy}


def run(measurement: str, kind: str, path: Path, steps: int) -> dict[str, Any]:
    command = [sys.executable, __file__, "--measure", measurement, kind, str(path), str(steps)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    result = {k: v if isinstance(v, str) else round(v, 3) for k, v in json.loads(done.stdout).items()}
    print(f"  {kind}: " + ", ".join(f"{k} {v:.2f}" if isinstance(v, float) else v for k, v in result.items()))
    return result


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--measure", nargs=4, metavar=("MEASUREMENT", "KIND", "PATH", "STEPS"))
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    if options.measure:
        measurement, kind, path, steps = options.measure
        print(json.dumps({"memory": memory, "speed": speed}[measurement](kind, Path(path), int(steps))))
        return
    scale = 10 if options.quick else 1
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        images, pngs = Path(folder) / "million.npy", Path(folder) / "pngs"
        write_array(images, 1_000_000 // scale)
        write_folder(pngs, PNGS // scale)
        for path, kinds in ((images, ["mapped", "cold"]), (pngs, ["no cache", "small cache"])):
            print(f"{path.name}, {sum(p.stat().st_size for p in (path, *path.glob('*'))) / 1e9:.2f} GB")
            whole = "everything resident" if path.is_file() else "resident"
            results[path.name] = {
                "memory": {kind: run("memory", kind, path, 300 // scale) for kind in (whole, *kinds)},
                "speed": {kind: run("speed", kind, path, 1_100 if scale == 1 else 300) for kind in kinds},
            }
    if not options.quick:
        RESULTS.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
