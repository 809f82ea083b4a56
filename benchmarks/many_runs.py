"""Seconds of commands on many runs and on wide tables.

python benchmarks/many_runs.py                    # the table of docs/guide/reliability.md
python benchmarks/many_runs.py --runs 30 --columns 1000

Every command is a process of its own, with its imports. Seconds are those of the processor, of user and system; on a
machine with other work they say more than those of a clock. The runs are 20 of PCA with 10 codes of 1,000
observations, copied under other seeds.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

import unweave
from unweave.utils.manifest import write_manifest

DISTINCT = 20
OBSERVATIONS, CODES = 1_000, 10


def make_runs(folder: Path, count: int) -> None:
    """Write runs of one dataset."""
    x = np.random.default_rng(0).normal(size=(OBSERVATIONS, CODES))
    table = folder.with_suffix(".csv")
    pd.DataFrame(x, columns=[f"x{i}" for i in range(CODES)]).to_csv(table, index=False)
    distinct = unweave.sweep(table, "pca", latent_dim=CODES, seed=range(DISTINCT))
    unweave.execute(distinct, folder / "distinct", metrics=[])
    for number in range(count):
        place = folder / "runs" / f"{number:012x}"
        shutil.copytree(folder / "distinct" / distinct[number % DISTINCT].key, place)
        recipe = json.loads((place / "run.json").read_text())
        recipe["key"], recipe["method"]["seed"] = place.name, number
        (place / "run.json").write_text(json.dumps(recipe))
        write_manifest(place)


def make_table(path: Path, rows: int, columns: int) -> None:
    """Write a table of counts, as of genes."""
    x = np.random.default_rng(0).integers(0, 3_000, size=(rows, columns))
    names = ",".join(f"gene{i}" for i in range(columns))
    path.write_text("\n".join([names, *(",".join(map(str, row)) for row in x.tolist())]) + "\n")


def measure(args: Sequence[object]) -> tuple[float, float]:
    """Run a command; return the seconds of a clock, and those of the processor."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, *map(str, args)], check=True, capture_output=True)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, nargs="+", default=[300, 1_000])
    parser.add_argument("--columns", type=int, default=100_000)
    parser.add_argument("--rows", type=int, default=500)
    options = parser.parse_args()
    print("| command | seconds of the processor | of a clock | file |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as temporary:
        for count in options.runs:
            folder, page = Path(temporary) / str(count), Path(temporary) / f"{count}.html"
            make_runs(folder, count)
            for name, args in (("select", ()), ("report", ("--out", page))):
                wall, processor = measure(("-m", "unweave", name, folder / "runs", *args))
                size = f"{page.stat().st_size / 1e6:.2f} MB" if name == "report" else ""
                print(f"| `unweave {name}`, {count:,} runs | {processor:.1f} | {wall:.1f} | {size} |", flush=True)
        table = Path(temporary) / "genes.csv"
        make_table(table, options.rows, options.columns)
        code = "import sys, unweave; unweave.OwnData(path=sys.argv[1]).load()"
        wall, processor = measure(("-c", code, table))
        shape = f"{options.rows:,} x {options.columns:,}"
        print(f"| load a CSV, {shape} | {processor:.1f} | {wall:.1f} | {table.stat().st_size / 1e6:,.0f} MB |")


if __name__ == "__main__":
    main()
