"""Where the time of a step goes on a GPU: kernels, gaps, memory traffic; and what compiling it takes.

python -m benchmarks.gpu --parts training --packs 10 --precisions bf16 --how "stack, compiled" --cases "BetaVAE, conv" \
    --profile benchmarks/results/profile.json         # rate, kernels and compile times; for a GPU
python -m benchmarks.profiling --cases "BetaVAE, conv"    # memory traffic of a compiled stack; needs no GPU
python -m benchmarks.profiling --tables                   # prints the tables of what is in the JSON

M=gpu__time_duration.sum,dram__bytes_read.sum,dram__bytes_write.sum,lts__t_bytes.sum,launch__grid_size
ncu --profile-from-start off --cache-control none --clock-control none --metrics $M --csv --page raw \
    --print-units base --log-file counters.csv python -m benchmarks.gpu --counters --parts training --packs 10 \
    --precisions bf16 --how "stack, compiled" --cases "BetaVAE, conv"         # for a GPU
python -m benchmarks.profiling --counters counters.csv --cases "BetaVAE, conv"    # adds them to the JSON

Kernels: a captured graph is replayed under `torch.profiler`. Gaps are the time between the first kernel and the last
one in which none runs. Counters: bytes of memory and of the L2 cache that each kernel of one step has moved, measured.
Traffic: the bytes that every kernel of the compiled step reads and writes, as the compiler counts them when it has
decided what to fuse. It is computed, not measured: a cache may save some of it. The compiler fuses for a CPU here; a
GPU also joins the kernels of Adam, which moves as many bytes.
"""

from __future__ import annotations

import csv
import fcntl
import json
import re
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import torch
import torch._dynamo.utils
import torch._inductor.config
import torch._inductor.ir
import torch._inductor.metrics
from torch.profiler import ProfilerActivity, profile

from unweave.cli.terminal import print_table
from unweave.training.loop import initialize_network
from unweave.training.strategies import choose_runner

REPLAYS = 20  # steps under the profiler
SHOWN_KERNELS = 12  # of the slowest
BANDWIDTH = 4.3e12  # bytes per second of a large copy on an H200, read and written
PRODUCT_RATE = 7.9e14  # operations per second of a large bf16 product on an H200
KEYS = ("case", "how", "precision", "models")

# The first pattern that occurs in a kernel's name decides; fused kernels are named by the operations they contain.
KERNEL_GROUPS = {
    "Adam": r"adam_kernel|triton_for|foreach|addcmul|lerp",
    "convolutions by Triton": r"^(convolve|upsample|weight_gradient)_kernel",
    "gradients before activations": r"leaky_relu_backward_kernel",
    "gradients, contiguous for Adam": r"triton_poi.*adam_lanes",
    "fused, with reductions": r"triton_(red|per)",
    "fused, elementwise": r"triton_poi",
    "convolutions by libraries": r"cudnn|conv|dgrad|wgrad|implicit|nchw|nhwc|tensortransform",
    "matrix products": r"gemm|cutlass|xmma|nvjet|splitk|cublas|gemv|dot_kernel",
    "solves": r"potrf|potrs|trsm|cholesky|trsv|getrf|magma",
    "sorting": r"sort|radix",
    "copies": r"memcpy|memset",
    "data: gathers and rendering": r"index|gather|scatter",
}
OTHER = "other kernels"


@dataclass(kw_only=True)
class Options:
    """Memory traffic of compiled stacks, and tables of all that was measured."""

    cases: tuple[str, ...] = ()
    """Methods, by names of `gpu.py` or parts of them."""
    models: int = 10
    """Models in a stack."""
    precisions: tuple[str, ...] = ("bf16", "single")
    """Precisions of products."""
    tables: bool = False
    """Only print tables."""
    counters: Path | None = None
    """CSV of Nsight Compute for the one case of --cases, to be added to the JSON."""
    out: Path = Path("benchmarks/results/profile.json")
    """Path of the JSON."""


# Kernels --------------------------------------------------------------------------------------------------------------


class Span(NamedTuple):
    """A kernel or a copy on the device."""

    start: float  # microseconds
    end: float
    name: str
    blocks: float  # per multiprocessor


def profile_runner(runner: Any, replays: int = REPLAYS) -> dict[str, Any]:
    """Profile steps of a runner whose graph is captured: milliseconds per step of all its models."""
    count = runner.graph_steps  # for which the graph has data
    replays = min(replays, count)

    def replay(steps: int) -> None:
        runner.cursor.zero_()
        for _ in range(steps):
            runner.graph.replay()

    sampling = _seconds(lambda: [group.sample_chunk(count) for group in runner.groups]) / count
    replaying = _seconds(lambda: replay(count)) / count
    with profile(activities=[ProfilerActivity.CUDA]):
        torch.cuda.synchronize()  # the profiler sees the kernels of a graph only if it was ready before the capture
    runner.graph_steps = 0
    runner.run(count)  # captures again
    with profile(activities=[ProfilerActivity.CUDA]) as session:
        replay(replays)
        torch.cuda.synchronize()
    described = describe_kernels(read_trace(session), replays)
    return described | {"sampling ms": 1e3 * sampling, "replay ms": 1e3 * replaying}


def read_trace(session: Any) -> list[Span]:
    """Return the kernels and copies that a profile has seen."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        session.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
    kinds = ("kernel", "gpu_memcpy", "gpu_memset")
    spans = [
        Span(event["ts"], event["ts"] + event["dur"], event["name"], event.get("args", {}).get("blocks per SM", 0.0))
        for event in events
        if event.get("ph") == "X" and event.get("cat") in kinds
    ]
    if not spans:
        raise RuntimeError("the profiler has seen no kernel")
    return spans


def _seconds(work: Callable[[], Any]) -> float:
    """Return the seconds that some work takes, the second time."""
    seconds = 0.0
    for _ in range(2):
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        seconds = time.perf_counter() - start
    return seconds


def describe_kernels(spans: list[Span], replays: int) -> dict[str, Any]:
    """Return time per step by kernel, and the time in which any kernel runs."""
    spans = sorted(spans)
    counts = Counter(span.name for span in spans)
    durations: dict[str, float] = defaultdict(float)
    blocks: dict[str, float] = defaultdict(float)
    busy, end = 0.0, spans[0].start
    for span in spans:
        durations[span.name] += span.end - span.start
        blocks[span.name] += span.blocks / counts[span.name]
        busy += max(0.0, span.end - max(span.start, end))
        end = max(end, span.end)
    scale = 1e-3 / replays
    return {
        "span ms": (end - spans[0].start) * scale,
        "busy ms": busy * scale,
        "launches": len(spans) / replays,
        "kernels": [
            {"name": name, "calls": counts[name] / replays, "ms": round(t * scale, 5), "blocks": round(blocks[name], 2)}
            for name, t in sorted(durations.items(), key=lambda item: -item[1])
        ],
    }


def group_kernels(kernels: Iterable[dict[str, Any]], columns: Sequence[str]) -> dict[str, list[float]]:
    """Return sums of columns by group of kernels, those with the largest last column first."""
    groups: dict[str, list[float]] = {}
    for kernel in kernels:
        name = kernel["name"].lower()
        group = next((g for g, pattern in KERNEL_GROUPS.items() if re.search(pattern, name)), OTHER)
        sums = groups.get(group, [0.0] * len(columns))
        groups[group] = [value + kernel[column] for value, column in zip(sums, columns, strict=True)]
    return dict(sorted(groups.items(), key=lambda item: -item[1][-1]))


# Counters -------------------------------------------------------------------------------------------------------------

COUNTERS = {
    "ms": ("gpu__time_duration.sum", 1e-6),
    "read MB": ("dram__bytes_read.sum", 1e-6),
    "written MB": ("dram__bytes_write.sum", 1e-6),
    "L2 MB": ("lts__t_bytes.sum", 1e-6),
    "grid": ("launch__grid_size", 1.0),
}


def read_counters(path: Path) -> list[dict[str, Any]]:
    """Return the counters of a step by kernel, sums over its calls, from a CSV of Nsight Compute in base units."""
    lines = path.read_text().splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith('"ID"'))
    kernels: dict[str, dict[str, Any]] = {}
    for row in csv.DictReader(lines[first:]):
        if not row["ID"]:
            continue  # the line with the units
        kernel = kernels.setdefault(row["Kernel Name"], {"name": row["Kernel Name"], "calls": 0})
        kernel["calls"] += 1
        for name, (metric, scale) in COUNTERS.items():
            kernel[name] = round(kernel.get(name, 0.0) + scale * float(row[metric].replace(",", "")), 5)
    return sorted(kernels.values(), key=lambda kernel: -kernel["ms"])


def keep_counters(options: Options) -> None:
    """Add the counters of a step to the JSON."""
    assert options.counters is not None
    (case,), (precision, *_) = options.cases, options.precisions
    head = {"case": case, "how": "stack, compiled", "precision": precision, "models": options.models}
    keep_profile(options.out, head | {"kernels": read_counters(options.counters)}, part="counters")


# Compiling ------------------------------------------------------------------------------------------------------------


def describe_compiling() -> dict[str, Any]:
    """Return seconds of the phases of the compiler in this process, and the numbers of its graphs and kernels."""
    metrics = torch._dynamo.utils.compilation_time_metrics
    seconds = {name: sum(values) for name, values in metrics.items()}

    def of(name: str) -> float:
        return seconds.get(name, 0.0)

    phases = {
        "dynamo": of("bytecode_tracing"),
        "autograd": of("create_aot_dispatcher_function") - of("compile_fx.<locals>.fw_compiler_base"),
        "passes and lowering": of("compile_fx.<locals>.fw_compiler_base") - of("GraphLowering.compile_to_module"),
        "fusion": of("Scheduler.__init__"),
        "code": of("GraphLowering.codegen") - of("Scheduler.__init__"),
        "waiting for triton": of("GraphLowering.compile_to_module") - of("GraphLowering.codegen"),
        "tuning kernels": of("CachingAutotuner.benchmark_all_configs"),
    }
    counters = torch._dynamo.utils.counters
    programs = [_describe_program(Path(path)) for path in _generated_files()]
    return {
        "seconds": {name: round(value, 2) for name, value in phases.items()},
        "graphs": counters["stats"]["unique_graphs"],
        "cache": {name: counters["inductor"][name] for name in ("fxgraph_cache_hit", "fxgraph_cache_miss")},
        "program": max(programs, key=lambda program: program["lines"], default={}),
    }


def _generated_files() -> list[str]:
    from torch._inductor.codecache import PyCodeCache

    return [str(module.__file__) for module in PyCodeCache.modules if getattr(module, "__file__", None)]


def _describe_program(path: Path) -> dict[str, int]:
    """Return what a generated program consists of."""
    text = path.read_text() if path.is_file() else ""
    return {
        "lines": text.count("\n"),
        "fused kernels": len(re.findall(r"async_compile\.triton\(", text)),
        "their calls": len(re.findall(r"\.run\(", text)),
        "library calls": len(re.findall(r"extern_kernels\.", text)),
    }


# Memory traffic -------------------------------------------------------------------------------------------------------


class ScheduledError(Exception):
    """Stops the compiler when it has decided which operations to fuse."""


def count_traffic(pack: list[Any], data: Any) -> list[dict[str, Any]]:
    """Return bytes and product operations of every kernel of a compiled stack, without compiling or running it."""
    kernels: list[dict[str, Any]] = []

    def stop(graph: Any) -> None:
        graph.init_wrapper_code()
        graph._update_scheduler()
        kernels.extend(_describe_node(node) for node in graph.scheduler.nodes)
        raise ScheduledError

    for method in pack:
        method.validate_settings(data)
        method.prepare(data)
    nets = [initialize_network(method) for method in pack]
    stopped = mock.patch("torch._inductor.graph.GraphLowering.compile_to_module", stop)
    on_gpu = mock.patch("unweave.nn.lane_conv.is_available", lambda device: True)  # as there, for bf16
    contiguous = mock.patch("unweave.training.adam._copy_parameter", torch.Tensor.contiguous)  # as there
    try:
        with stopped, on_gpu, contiguous, torch._inductor.config.patch(fx_graph_cache=False):
            choose_runner(pack, nets, data, window=pack[0].steps, compiling="always", strategy="stack")
    except Exception:
        if not kernels:
            raise
    return kernels


def _describe_node(node: Any) -> dict[str, Any]:
    """Return group, bytes and operations of a kernel from the compiler's schedule."""
    origins = [origin for part in node.get_nodes() if part.node is not None for origin in part.node.get_origins()]
    names = {str(origin.target).removeprefix("aten.").partition(".")[0] for origin in origins}
    inner: Any = getattr(node, "node", None)
    flops, group = 0, "images between layers, loss"
    if isinstance(inner, torch._inductor.ir.ExternKernel):
        name = str(getattr(inner, "python_kernel_name", ""))
        group = f"library: {name.rpartition('.')[2]}"
        if "adam_lanes" in name:
            group = "Adam"
        elif "_lanes" in name:
            group = "convolutions by Triton"
        elif group.endswith("mm"):
            left: Any = inner.inputs[-2]
            flops, group = 2 * int(left.get_size()[-1]) * _product(inner.get_size()), "matrix products"
    elif any("_foreach" in name for name in names):
        group = "Adam"
    elif "cat" in names:
        group = "gathers of kernel corners"
    return {"group": group, "bytes": int(node.get_read_write_buffers_sizes()), "flops": flops}


def _product(sizes: Iterable[Any]) -> int:
    total = 1
    for size in sizes:
        total *= int(size)
    return total


def group_traffic(kernels: Iterable[dict[str, Any]], models: int) -> dict[str, dict[str, float]]:
    """Return the number of kernels, megabytes and GFLOP per model and step by group."""
    groups: dict[str, dict[str, float]] = {}
    for kernel in kernels:
        row = groups.setdefault(kernel["group"], {"kernels": 0, "MB": 0.0, "GFLOP": 0.0})
        row["kernels"] += 1
        row["MB"] += kernel["bytes"] / 1e6 / models
        row["GFLOP"] += kernel["flops"] / 1e9 / models
    rounded = {g: {k: round(v, 3) for k, v in row.items()} for g, row in groups.items()}
    return dict(sorted(rounded.items(), key=lambda item: -item[1]["MB"]))


def run_traffic(options: Options) -> None:
    """Count the traffic of all chosen methods."""
    from benchmarks import gpu

    for name in gpu.chosen(gpu.cases(), gpu.Options(cases=options.cases)):
        cls, load, settings = gpu.cases()[name]
        data = load("cpu")
        for precision in options.precisions:
            torch._dynamo.reset()
            shared = settings | {"steps": gpu.STEPS, "device": "cpu", "precision": precision}
            pack = [cls(**shared, seed=i) for i in range(options.models)]
            groups = group_traffic(count_traffic(pack, data), options.models)
            head = {"case": name, "how": "stack, compiled", "precision": precision, "models": options.models}
            keep_profile(options.out, head | {"groups": groups}, part="traffic")


# Results --------------------------------------------------------------------------------------------------------------


def keep_profile(path: Path, row: dict[str, Any], *, part: str = "kernels") -> None:
    """Add a row to a part of the JSON, or replace that of the same case; several processes may do so."""
    row = row | {"torch": torch.__version__, "date": datetime.now(UTC).date().isoformat()}
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        found = json.loads(file.read() or "{}")
        rows = [other for other in found.get(part, []) if any(other.get(k) != row.get(k) for k in KEYS)]
        file.truncate(0)
        file.write(json.dumps(found | {part: [*rows, row]}, indent=1) + "\n")


def print_tables(path: Path) -> None:
    """Print tables of kernels, traffic and compile times."""
    found = json.loads(path.read_text())
    for row in found.get("kernels", []):
        groups = group_kernels(row["kernels"], ["calls", "ms"])
        lines = [[g, f"{calls:g}", f"{ms:.3f}", f"{ms / row['span ms']:.0%}"] for g, (calls, ms) in groups.items()]
        gaps = row["span ms"] - row["busy ms"]
        lines.append(["gaps", "", f"{gaps:.3f}", f"{gaps / row['span ms']:.0%}"])
        few = [kernel for kernel in row["kernels"] if 0 < kernel["blocks"] < 1]
        calls, ms = (sum(kernel[name] for kernel in few) for name in ("calls", "ms"))
        lines.append(["with less than one block per SM", f"{calls:g}", f"{ms:.3f}", f"{ms / row['span ms']:.0%}"])
        lines.append(["a step", f"{row['launches']:g}", f"{row['span ms']:.3f}", ""])
        print_table(["kernels", "calls", "ms", "share"], lines, ", ".join(str(row[k]) for k in KEYS))
        slowest = row["kernels"][:SHOWN_KERNELS]
        lines = [[k["name"][:80], f"{k['calls']:g}", f"{k['ms']:.3f}", f"{k['blocks']:g}"] for k in slowest]
        print_table(["slowest", "calls", "ms", "blocks per SM"], lines, "")
    for row in found.get("counters", []):
        groups = group_kernels(row["kernels"], ["calls", "read MB", "written MB", "L2 MB", "ms"])
        lines = [[g, *(f"{value:.3g}" for value in v), f"{(v[1] + v[2]) / v[4]:,.0f}"] for g, v in groups.items()]
        columns = ["kernels", "calls", "read MB", "written MB", "L2 MB", "ms", "GB/s"]
        print_table(columns, lines, "counters: " + ", ".join(str(row[k]) for k in KEYS))
    lines = []
    for row in found.get("traffic", []):
        total = sum(group["MB"] for group in row["groups"].values())
        work = sum(group["GFLOP"] for group in row["groups"].values())
        parts = "; ".join(f"{name} {group['MB']:.0f}" for name, group in row["groups"].items())
        limit = f"{BANDWIDTH / total / 1e6:,.0f}"
        lines.append([row["case"], row["precision"], f"{total:.0f}", f"{work:.1f}", limit, parts])
    print_table(
        ["case", "precision", "MB", "GFLOP", "limit by memory, steps/s", "MB of groups"], lines, "per model-step"
    )
    rows = found.get("compiling", []) + [row | row["compiling"] for row in found.get("kernels", [])]
    names = list(rows[0]["seconds"]) if rows else []
    lines = [[row["case"], row["precision"], *(f"{row['seconds'][name]:.1f}" for name in names)] for row in rows]
    print_table(["case", "precision", *names], lines, "seconds of compiling")


def main(options: Options) -> None:
    """Count traffic, read counters, or print tables."""
    if options.counters is not None:
        keep_counters(options)
    elif not options.tables:
        run_traffic(options)
    print_tables(options.out)


if __name__ == "__main__":
    import tyro

    main(tyro.cli(Options))
