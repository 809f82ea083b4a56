"""Checkpoints: weights, moments, generators and history of a run in one file, from which it resumes bit by bit."""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as serialize
from torch import Tensor

from unweave.training.pack import LaneGroup
from unweave.utils.atomic import atomic_file
from unweave.utils.storage import recipe_hash

TRAINING_PER_SAVING = 20  # seconds of training for each second spent on saving
MAX_SECONDS_BETWEEN_SAVES = 10.0  # however few steps were taken


class Checkpoint:
    """A file with the state of a training run, written atomically. Without a path nothing is saved."""

    def __init__(self, path: Path | None, identity: Any, note: str = "") -> None:
        """Describe the file; `identity` is JSON-like, and equal for runs that may resume from each other."""
        self.path, self.note = path, note
        self.key = recipe_hash(identity)
        self.strategy = ""  # set by `restore`
        self.saved_step, self.saved_at, self.save_seconds = 0, time.perf_counter(), 0.0
        self.started_at = self.saved_at

    def save_if_due(self, groups: Sequence[LaneGroup], step: int, every: int, *, last: bool) -> None:
        """Save if it is the last step, or enough steps or seconds have passed; saving takes a small share of time."""
        now = time.perf_counter()
        elapsed = now - self.saved_at
        is_due = step - self.saved_step >= every or elapsed >= MAX_SECONDS_BETWEEN_SAVES
        is_cheap = elapsed >= TRAINING_PER_SAVING * self.save_seconds
        if self.path is None or not (last or (is_due and is_cheap)):
            return
        tensors = {name: v for i, group in enumerate(groups) for name, v in _tensors(group, str(i)).items()}
        metadata = {"key": self.key, "how": self.strategy, "step": str(step), "note": self.note}
        metadata |= {"seconds": f"{now - self.started_at:.3f}", "sha256": _hash_tensors(tensors)}
        metadata["checksum"] = recipe_hash(metadata)
        with atomic_file(self.path) as file:
            file.write(serialize(tensors, metadata=metadata))
        self.saved_step, self.saved_at = step, time.perf_counter()
        self.save_seconds = self.saved_at - now

    def previous_strategy(self) -> str:
        """Return the strategy with which this run was trained before it stopped, or ''."""
        metadata = _read_metadata(self.path) if self.path is not None else {}
        return metadata.get("how", "") if metadata.get("key") == self.key else ""

    def restore(self, groups: Sequence[LaneGroup], strategy: str) -> int:
        """Load the saved state into the groups and return its step; 0 if there is no file of this run.

        Within a chunk of steps, the generators are those that sample the whole chunk again.
        Results depend on the strategy in the last bits, so a file of another strategy is not used.
        """
        self.strategy = strategy
        if self.path is None or not self.path.is_file():
            return 0
        problem = ""
        try:
            with safe_open(self.path, "pt") as file:
                metadata = _checked(file.metadata())
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
        except (SafetensorError, OSError, ValueError) as error:
            metadata, tensors, problem = {}, {}, f"cannot be read ({error})"
        names = {name for i, group in enumerate(groups) for name in _tensors(group, str(i))}
        if not problem and metadata.get("sha256") != _hash_tensors(tensors):
            problem = "is damaged, or was written by another version"
        elif not problem and (metadata.get("key"), metadata.get("how")) != (self.key, strategy):
            problem = "belongs to another run or another strategy"
        elif not problem and names != set(tensors):
            problem = "was written by another version"
        if problem:
            warnings.warn(f"{self.path} {problem}: training starts from the beginning", stacklevel=3)
            return 0
        for i, group in enumerate(groups):
            _load_tensors(group, str(i), tensors)
        self.saved_step = int(metadata["step"])
        self.started_at -= float(metadata["seconds"])
        return self.saved_step


def read_note(path: Path) -> str:
    """Return the note of a checkpoint; '' if it cannot be read."""
    return _read_metadata(path).get("note", "")


def read_seconds(path: Path) -> float:
    """Return the seconds of training before a checkpoint was written; 0 if there is none."""
    return float(_read_metadata(path).get("seconds", 0)) if path.is_file() else 0.0


def read_step(path: Path) -> int:
    """Return the step at which a checkpoint was written; 0 if it cannot be read."""
    return int(_read_metadata(path).get("step", 0))


def _read_metadata(path: Path) -> dict[str, str]:
    try:
        with safe_open(path, "pt") as file:
            return _checked(file.metadata())
    except (SafetensorError, OSError, ValueError):
        return {}


def _checked(metadata: dict[str, str] | None) -> dict[str, str]:
    """Return the metadata of a file without their checksum; nothing if they do not match it."""
    content = dict(metadata or {})
    return content if content.pop("checksum", None) == recipe_hash(content) else {}


def _hash_tensors(tensors: dict[str, Tensor]) -> str:
    """Return the SHA-256 of tensors on the CPU with their names, types and shapes."""
    digest = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _tensors(group: LaneGroup, prefix: str) -> dict[str, Tensor]:
    """Return the state and the generators of a group as tensors on the CPU, by name."""
    generators = {f"{prefix}/rng/{i}": state for i, state in enumerate(group.rng_states())}
    return {k: v.cpu().contiguous() for k, v in _flatten(group.state, prefix).items()} | generators


def _flatten(state: dict[str, Any], prefix: str) -> dict[str, Tensor]:
    """Return every tensor of a nested dict by its path."""
    tensors: dict[str, Tensor] = {}
    for name, value in state.items():
        path = f"{prefix}/{name}"
        tensors |= _flatten(value, path) if isinstance(value, dict) else {path: value}
    return tensors


def _load_tensors(group: LaneGroup, prefix: str, tensors: dict[str, Tensor]) -> None:
    """Copy saved tensors into the state and the generators of a group."""
    for name, tensor in _flatten(group.state, prefix).items():
        tensor.copy_(tensors[name])
    for i, rng in enumerate(group.rngs):
        rng.set_state(tensors[f"{prefix}/rng/{i}"])
