"""3DShapes: the look-alike and the published file."""

import h5py
import numpy as np
import pytest
import torch

from tests.helpers import generator
from unweave import InputError
from unweave.datasets import (
    Shapes3D,
)
from unweave.datasets.shapes3d import HUES


def test_hues_scale_the_light_of_a_surface_linearly():
    room = Shapes3D(source="rendered").load()
    c = room.sample(10, generator())
    x = room.render(c)
    assert x.shape == (10, 3, 64, 64)
    other = c.clone()
    other[:, 0] = (c[:, 0] + 5) % 10
    changed = (room.render(other) - x).abs().amax(1) > 0.02  # (10, 64, 64)
    assert changed[:, 48:].float().mean() > 0.5, "the floor is below"
    assert changed[:, :16].float().mean() < 0.01, "and not above"


def test_a_room_is_the_sky_plus_each_surface_in_its_color(monkeypatch):
    room = Shapes3D(source="rendered").load()
    c = torch.tensor([[1, 4, 7, 2, 3, 9]])
    geometry = (2 * 4 + 3) * 15 + 9
    basis = room.basis[geometry].float() / 255
    by_hand = basis[3:].clone()
    for surface, hue in enumerate((1, 4, 7)):
        by_hand += HUES[hue][:, None] * basis[surface]
    torch.testing.assert_close(room.render(c)[0], by_hand.clamp(0, 1).reshape(3, 64, 64))
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    torch.testing.assert_close(room.render(c)[0], by_hand.clamp(0, 1).reshape(3, 64, 64))


def test_rooms_fit_into_50_megabytes():
    room = Shapes3D(source="rendered").load()
    assert len(room) == 480_000
    assert room.basis.nbytes <= 50e6


def test_the_published_file_is_read(fake_files, monkeypatch, tmp_path):
    monkeypatch.setattr("unweave.datasets.shapes3d.FACTORS", (Shapes3D(source="rendered").load().factors[4],))
    images = np.random.default_rng(0).integers(0, 256, (4, 64, 64, 3), dtype=np.uint8)
    with h5py.File(tmp_path / "made.h5", "w") as file:
        file["images"] = images
    fake_files(Shapes3D, {"3dshapes.h5": (tmp_path / "made.h5").read_bytes()})
    x = Shapes3D().load().render(torch.arange(4)[:, None])
    assert np.array_equal((x * 255).round().byte().permute(0, 2, 3, 1).numpy(), images)
    assert Shapes3D().title() == "shapes3d"
    fake_files(Shapes3D, {"3dshapes.h5": b"not hdf5"})
    with pytest.raises(InputError, match="cannot be read"):
        Shapes3D().load()
