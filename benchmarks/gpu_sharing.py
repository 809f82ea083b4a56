"""One GPU for several processes, by NVIDIA's Multi-Process Service where it works."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DAEMON = "nvidia-cuda-mps-control"
PATIENCE = 30.0  # seconds for the daemon, and for a process to open the GPU
OPEN_GPU = """
import ctypes, sys
driver, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
sys.exit(driver.cuInit(0) or driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
"""


@contextmanager
def shared_gpu(state: Path) -> Iterator[None]:
    """Start the daemon by which processes share a GPU; without one that works they take turns."""
    program = shutil.which(DAEMON)
    if program is None:
        yield
        return
    folders = {f"CUDA_MPS_{name}_DIRECTORY": state / f"mps-{name.lower()}" for name in ("PIPE", "LOG")}
    for name, folder in folders.items():
        folder.mkdir(parents=True, exist_ok=True)
        os.environ[name] = str(folder)
    works = run_program([program, "-d"]) and run_program([sys.executable, "-c", OPEN_GPU])
    try:
        if not works:  # else every process would fail to open the GPU
            run_program([program], text="quit\n")
            for name in folders:
                del os.environ[name]
        yield
    finally:
        if works:
            run_program([program], text="quit\n")


def run_program(program: list[str], text: str = "") -> bool:
    """Return whether a program ends without an error within PATIENCE."""
    try:
        return subprocess.run(program, input=text, text=True, check=False, timeout=PATIENCE).returncode == 0
    except subprocess.TimeoutExpired:
        return False
