"""Training of a pack of runs: checkpoints, and halves where a pack does not fit into the memory of the device."""

from __future__ import annotations

import gc
import hashlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch

from unweave.data.core import FactorData
from unweave.experiments.run import Run
from unweave.methods.neural import Neural, fit_pack
from unweave.training.checkpoint import read_note, read_seconds
from unweave.training.loop import Callback, Failure
from unweave.utils.errors import InputError, first_line
from unweave.utils.validation import out_of_memory


class TrainedPack(NamedTuple):
    """Outcome of a training."""

    failures: Sequence[Failure | None]  # one per run
    seconds: float  # of training, per run, with those before an interruption


class PackTooLargeError(Exception):
    """Several models together need more than the memory of the device."""


def checkpoint_path(pack: Sequence[Run], folder: Path) -> Path:
    """Return the file that holds the state of this pack while it is trained, beside its run folders."""
    return folder / f".{hashlib.sha256(_note(pack).encode()).hexdigest()[:12]}.checkpoint"


def _note(pack: Sequence[Run]) -> str:
    return " ".join(run.key for run in pack)


def resumable_groups(pack: Sequence[Run], missing: Sequence[Run], folder: Path) -> list[list[Run]]:
    """Return the runs whose training was interrupted, in the groups of their checkpoints.

    A checkpoint that none of the missing runs needs is removed.
    """
    by_key, left, groups = {run.key: run for run in pack}, {run.key for run in missing}, []
    for path in sorted(folder.glob(".*.checkpoint")):
        keys = read_note(path).split()
        if not keys or not set(keys) <= set(by_key):
            continue
        if left & set(keys):
            groups.append([by_key[key] for key in keys])
            left -= set(keys)
        else:
            path.unlink(missing_ok=True)
    return groups


def train_pack(pack: Sequence[Run], data: FactorData, checkpoint: Path, callback: Callback | None) -> TrainedPack:
    """Train the methods of a pack in place.

    The checkpoint stays when training is over, so that a crash before the runs are written costs nothing.

    Raises:
        PackTooLargeError: several models do not fit into the memory of the device.
        InputError: one model does not fit.
    """
    for leftover in checkpoint.parent.glob(f".{checkpoint.name}.*.tmp"):  # of a process that was killed while it wrote
        leftover.unlink(missing_ok=True)
    start, message = time.perf_counter(), ""
    for _ in range(2):  # a pack with a checkpoint did fit: other processes may have taken the memory since
        try:
            failures = _fit(pack, data, checkpoint, callback)
        except Exception as error:
            if not out_of_memory(error):
                raise
            message = first_line(error)
        else:
            return TrainedPack(failures, max(time.perf_counter() - start, read_seconds(checkpoint)) / len(pack))
        finally:
            _free_memory()
        if not checkpoint.is_file():
            break
    checkpoint.unlink(missing_ok=True)
    if len(pack) > 1:
        raise PackTooLargeError
    text = f"{pack[0].title()} does not fit into the memory of the device ({message})"
    raise InputError(f"{text}: a smaller batch_size, or device='cpu'")


def _fit(
    pack: Sequence[Run], data: FactorData, checkpoint: Path, callback: Callback | None
) -> Sequence[Failure | None]:
    methods = [run.method for run in pack if isinstance(run.method, Neural)]
    if methods:
        return fit_pack(methods, data, checkpoint=checkpoint, note=_note(pack), callback=callback)
    pack[0].method.fit(data)
    return [None]


def _free_memory() -> None:
    """Return the memory of a GPU: scoring takes long, and other processes may wait for it."""
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        gc.collect()  # captured graphs hold memory too
        torch.cuda.empty_cache()
