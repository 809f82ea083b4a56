"""Memory that a training takes at least, compared with what is free before anything of it is allocated."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import torch

from unweave.training.pack import CHUNK, Trainable
from unweave.utils.errors import InputError, plural
from unweave.utils.files import MIN_CHECKED_BYTES, format_bytes, free_memory

NUMBER_BYTES, INDEX_BYTES = 4, 8
COPIES = 5  # of the weights: as they are built, as they are trained, gradients, two moments of Adam
ACTIVATION_COPIES = 2  # each output of a layer, and its gradient


def check_training_memory(pack: Sequence[Trainable]) -> None:
    """Raise an error if a pack needs more memory than is free; its text is that of a device that is out of memory.

    Tensors of absurd sizes are otherwise granted by the system, which then kills the process.
    """
    method = pack[0]
    parameters, widths = _count_parameters(method)
    batch = method.batch_size * (prod(method.shape_) + ACTIVATION_COPIES * widths)
    batch_bytes = NUMBER_BYTES * batch + INDEX_BYTES * method.batch_size * min(CHUNK, method.steps)
    weights_bytes = NUMBER_BYTES * COPIES * parameters * len(pack)
    if weights_bytes + batch_bytes < MIN_CHECKED_BYTES:
        return
    on_cpu = method.resolve_device() == "cpu"
    free, needed = free_memory(), weights_bytes + batch_bytes * on_cpu  # batches are made on the device
    if needed > free:
        count = f"{plural(len(pack), 'network')} of {plural(parameters, 'parameter')}"
        text = f"out of memory: {count} and batches of {method.batch_size:,} need {format_bytes(needed)} at least"
        raise InputError(f"{text}, {format_bytes(free)} are free")


def _count_parameters(method: Trainable) -> tuple[int, int]:
    """Return the number of parameters of a network, and how many of them are one for each output of a layer.

    The network is built without memory. A network that cannot be built so counts as empty.
    """
    try:
        with torch.random.fork_rng(devices=[]), torch.device("meta"):
            parameters = list(method.build(method.shape_).parameters())
    except Exception:  # of a user's code, which may not run without memory, or of PyTorch: building in earnest tells
        return 0, 0
    return sum(p.numel() for p in parameters), sum(p.numel() for p in parameters if p.ndim == 1)
