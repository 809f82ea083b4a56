"""MPI3D from its published file."""

import io

import numpy as np
import pytest
import torch

from unweave import InputError
from unweave.datasets import (
    MPI3D,
    Shapes3D,
)


def test_mpi3d_is_read_from_its_file(fake_files, monkeypatch):
    monkeypatch.setattr("unweave.datasets.mpi3d.FACTORS", (Shapes3D(source="rendered").load().factors[4],))
    images = np.random.default_rng(0).integers(0, 256, (4, 64, 64, 3), dtype=np.uint8)
    buffer, wrong = io.BytesIO(), io.BytesIO()
    np.savez(buffer, images=images)
    np.savez(wrong, pictures=images)
    fake_files(MPI3D, {"mpi3d_real.npz": buffer.getvalue(), "mpi3d_toy.npz": wrong.getvalue()})
    x = MPI3D(variant="real").load().render(torch.arange(4)[:, None])
    assert np.array_equal((x * 255).round().byte().permute(0, 2, 3, 1).numpy(), images)
    assert MPI3D(variant="real").title() == "mpi3d-real"
    with pytest.raises(InputError, match="no array 'images' but pictures"):
        MPI3D().load()
