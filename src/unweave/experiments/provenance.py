"""Provenance of a run: its data, the machine, versions and times."""

from __future__ import annotations

import hashlib
import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import torch

from unweave import __version__
from unweave.data.core import FactorData, Sample


def environment(title: str, data: FactorData, sample: Sample, seconds: float) -> dict[str, Any]:
    """Return the provenance: data, machine, versions, training time in seconds."""
    packages = ("torch", "numpy", "scipy", "scikit-learn")
    return {
        "seconds": round(seconds, 3),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "data": {
            "title": title,
            "observations": len(sample.x),
            **({"rows": len(data.reader)} if data.reader is not None else {}),
            "shape": list(data.shape),
            "factors": [vars(f) for f in data.factors],
            "feature_names": list(data.feature_names),
            "notes": list(data.notes),
            "sha256": hashlib.sha256(sample.x.numpy(force=True).tobytes()).hexdigest(),
        },
        "versions": {"python": platform.python_version(), "unweave": __version__}
        | {name: version(name) for name in packages},
        "machine": {
            "system": platform.platform(terse=True),
            "cores": os.cpu_count(),
            "threads": torch.get_num_threads(),
        },
    }
