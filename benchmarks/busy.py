"""Seconds of a training step on an idle machine and beside busy processes, by number of threads and way of waiting.

python benchmarks/busy.py                           # the table of benchmarks/results/busy.md
python benchmarks/busy.py --cases mlp --spins 1000  # one case, and with another way of waiting

A busy process per core is started and stopped here. Every variant is a process of its own, because the runtime of
OpenMP reads its settings when it is loaded. All variants take turns, a second each, so other load on the machine hits
all of them; the table has medians over rounds, and their ratios.

- before: all cores, and threads that spin for milliseconds while they wait, the default of libgomp
- passive: all cores, and threads that sleep while they wait
- one thread: what OMP_NUM_THREADS=1 gives
- unweave: no variable is set
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

CASES: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {  # shape of the data, settings of the beta-VAE
    "mlp": ((64,), {"layers": (128, 128)}),
    "wide-mlp": ((784,), {"layers": (512, 512)}),
    "small-conv": ((1, 32, 32), {"batch_size": 16}),
    "conv": ((1, 64, 64), {}),
}
SPINNING = "300000"  # libgomp's own count, as a setting of the user, which unweave leaves alone
BUSY = "while True: pass"


def environments(spins: list[int]) -> dict[str, dict[str, str]]:
    """Return the variables of every variant."""
    cores = str(len(os.sched_getaffinity(0)))
    variants = {
        "before": {"OMP_NUM_THREADS": cores, "GOMP_SPINCOUNT": SPINNING},
        "passive": {"OMP_NUM_THREADS": cores, "OMP_WAIT_POLICY": "PASSIVE"},
        "one thread": {"OMP_NUM_THREADS": "1"},
        "unweave": {},
    }
    return variants | {f"spin {n}": {"OMP_NUM_THREADS": cores, "GOMP_SPINCOUNT": str(n)} for n in spins}


def work(case: str, compiling: str) -> None:
    """Take steps for as many seconds as each line of stdin says; answer with the seconds of one step."""
    import unweave  # first, as a user's program does  # noqa: F401, I001
    import torch

    from unweave.data.containers import Table
    from unweave.methods import BetaVAE
    from unweave.training.loop import initialize_network
    from unweave.training.strategies import choose_runner, use_threads

    shape, settings = CASES[case]
    x = torch.rand(2_048, *shape, generator=torch.Generator().manual_seed(0))
    data = Table(x, torch.zeros(len(x), 0), [])
    method = BetaVAE(device="cpu", steps=10**6, **settings)
    method.validate_settings(data)
    method.prepare(data)
    net = initialize_network(method)
    runner = choose_runner([method], [net], data, window=10**6, compiling=compiling, strategy="auto")
    runner.run(3)
    print("ready", flush=True)
    for line in sys.stdin:
        start, steps = time.perf_counter(), 0
        with use_threads(runner.threads):
            while time.perf_counter() - start < float(line):
                runner.run(5)
                steps += 5
        print((time.perf_counter() - start) / steps, flush=True)


def start_worker(case: str, variables: dict[str, str], compiling: str) -> Any:
    """Start a process for a variant and wait until it is ready."""
    cleared = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "GOMP_", "KMP_", "MKL_"))}
    command = [sys.executable, __file__, "--work", case, "--compiling", compiling]
    worker = subprocess.Popen(
        command, env=cleared | variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert worker.stdout is not None
    worker.stdout.readline()
    return worker


def measure(workers: dict[str, Any], rounds: int, seconds: float) -> dict[str, float]:
    """Return the median milliseconds of a step for every variant; the variants take turns."""
    times: dict[str, list[float]] = {name: [] for name in workers}
    for _ in range(rounds):
        for name, worker in workers.items():
            worker.stdin.write(f"{seconds}\n")
            worker.stdin.flush()
            times[name].append(1_000 * float(worker.stdout.readline()))
    return {name: statistics.median(values) for name, values in times.items()}


def compare(case: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return a row for the idle and one for the busy machine."""
    workers = {k: start_worker(case, v, options.compiling) for k, v in environments(options.spins).items()}
    rows = []
    for busy in (0, len(os.sched_getaffinity(0))):
        load = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(busy)]
        time.sleep(0.5)
        milliseconds = measure(workers, options.rounds, options.seconds)
        rows.append({"case": case, "busy": busy, "load": round(os.getloadavg()[0], 1), "ms": milliseconds})
        for process in load:
            process.kill()
        print_row(rows[-1])
    for worker in workers.values():
        worker.stdin.close()
        worker.wait()
    return rows


def print_row(row: dict[str, Any]) -> None:
    """Print milliseconds, and how many times as long the others take as `unweave`."""
    ours = row["ms"]["unweave"]
    cells = [f"{name} {ms:.2f} ms ({ms / ours:.2f})" for name, ms in row["ms"].items()]
    print(f"{row['case']:10} {row['busy']} busy, load {row['load']:4}: {', '.join(cells)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="*", default=list(CASES), choices=CASES)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=1.0, help="of a turn")
    parser.add_argument("--spins", type=int, nargs="*", default=[], help="further variants: GOMP_SPINCOUNT")
    parser.add_argument("--compiling", default="never", choices=["never", "always"])
    parser.add_argument("--out", type=Path, help="write the rows as JSON")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        return work(options.work, options.compiling)
    rows = [row for case in options.cases for row in compare(case, options)]
    if options.out:
        options.out.write_text(json.dumps(rows, indent=1) + "\n")
    return None


if __name__ == "__main__":
    main()
