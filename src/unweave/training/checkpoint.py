"""Where a training run stands, in one file: weights, moments, generators, history. Killed, it goes on from there."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save as serialized
from torch import Tensor

from unweave.training.pack import LaneGroup
from unweave.utils.storage import atomic_file, recipe_hash

RATIO = 20  # seconds of training for each second spent on saving
LONG = 10.0  # seconds after which a pack is saved, however few steps it has made


class Checkpoint:
    """Keeps the state of a pack in a file that is always whole, or nothing where there is no path."""

    def __init__(self, path: Path | None, about: Any, note: str = "") -> None:
        self.path, self.note = path, note
        self.key = recipe_hash(about, 16)
        self.name = ""  # of the way in which the steps are taken: another one ends a little differently
        self.at, self.saved, self.cost = 0, time.perf_counter(), 0.0
        self.begun = self.saved  # less what a run that was killed had taken

    def keep(self, parts: Sequence[LaneGroup], step: int, every: int, *, last: bool) -> None:
        """Save, if that many steps or some seconds have passed, and never so often that it takes a noticeable share."""
        now = time.perf_counter()
        early = (step - self.at < every and now - self.saved < LONG) or now - self.saved < RATIO * self.cost
        if self.path is None or (early and not last):
            return
        tensors = {k: v for i, part in enumerate(parts) for k, v in _flat(part, str(i)).items()}
        with atomic_file(self.path) as file:
            about = {"key": self.key, "how": self.name, "step": str(step), "note": self.note}
            file.write(serialized(tensors, metadata=about | {"seconds": f"{now - self.begun:.3f}"}))
        self.at, self.saved = step, time.perf_counter()
        self.cost = self.saved - now

    def how(self) -> str:
        """The way in which this run was trained before; nothing where there is none."""
        found = _about(self.path) if self.path is not None else {}
        return found.get("how", "") if found.get("key") == self.key else ""

    def restore(self, parts: Sequence[LaneGroup], name: str) -> int:
        """Go back to where the file says, and return that step; 0 where there is none, or it is of another run.

        `name` is that of the way in which the steps are taken now.
        """
        self.name = name
        if self.path is None or not self.path.is_file():
            return 0
        try:
            with safe_open(self.path, "pt") as file:
                found = file.metadata() or {}
                if (found.get("key"), found.get("how")) != (self.key, name):
                    warnings.warn(
                        f"{self.path} is of another run, or was trained another way: starting anew", stacklevel=3
                    )
                    return 0
                kept = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
        except (SafetensorError, OSError, ValueError) as error:
            warnings.warn(f"{self.path} cannot be read ({error}): starting anew", stacklevel=3)
            return 0
        expected = {name for i, part in enumerate(parts) for name in _flat(part, str(i))}
        if expected != set(kept):
            warnings.warn(f"{self.path} does not hold what this run needs: starting anew", stacklevel=3)
            return 0
        for i, part in enumerate(parts):
            _put(part, str(i), kept)
        self.at = int(found["step"])
        self.begun -= float(found.get("seconds", 0))
        return self.at


def read_note(path: Path) -> str:
    """What the writer of a checkpoint wrote onto it; nothing if it cannot be read."""
    return _about(path).get("note", "")


def read_seconds(path: Path) -> float:
    """How long it was trained for until a checkpoint was written; 0 where there is none."""
    return float(_about(path).get("seconds", 0)) if path.is_file() else 0.0


def _about(path: Path) -> dict[str, str]:
    try:
        with safe_open(path, "pt") as file:
            return dict(file.metadata() or {})
    except (SafetensorError, OSError, ValueError):
        return {}


def _flat(part: LaneGroup, head: str) -> dict[str, Tensor]:
    generators = {f"{head}/rng/{i}": rng.get_state() for i, rng in enumerate(part.rngs)}
    return {k: v.cpu().contiguous() for k, v in _named(part.state, head).items()} | generators


def _named(state: dict[str, Any], head: str) -> dict[str, Tensor]:
    """Every tensor by its path."""
    found: dict[str, Tensor] = {}
    for name, value in state.items():
        found |= _named(value, f"{head}/{name}") if isinstance(value, dict) else {f"{head}/{name}": value}
    return found


def _put(part: LaneGroup, head: str, kept: dict[str, Tensor]) -> None:
    for name, tensor in _named(part.state, head).items():
        tensor.copy_(kept[name])
    for i, rng in enumerate(part.rngs):
        rng.set_state(kept[f"{head}/rng/{i}"])
