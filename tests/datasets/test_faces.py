"""Faces: packed manifolds, and images of any generator."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.helpers import generator, jpeg_file
from unweave import GeneratorManifold, InputError
from unweave.datasets import (
    Faces,
    GeneratedFaces,
)


def test_faces_are_read_from_their_packed_manifold(fake_files):
    buffer, factors = io.BytesIO(), io.BytesIO()
    np.save(factors, np.array([[0.5, -0.5], [1, 0]]))
    with zipfile.ZipFile(buffer, "w") as packed:
        packed.writestr("00001.jpg", jpeg_file((255, 255, 255)))
        packed.writestr("00000.jpg", jpeg_file((0, 0, 0)))
        packed.writestr("factors.npy", factors.getvalue())
    fake_files(Faces, {"faces-14.zip": buffer.getvalue(), "faces-01.zip": b"PK"})
    data = Faces(manifold="14").load()
    assert data.x[:, 0, 0, 0].tolist() == [0, 255]
    assert data.c.tolist() == [[0.5, -0.5], [1, 0]]
    assert [f.name for f in data.factors] == ["direction1", "direction4"]
    with pytest.raises(InputError, match="is not a packed manifold"):
        Faces().load()


def test_any_generator_makes_a_manifold():
    def generate(w):
        return torch.stack([w[:, 0] + 10 * w[:, 2], w[:, 1]], 1)

    directions = torch.tensor([[1.0, 0, 0], [0, 2, 0]])
    data = GeneratorManifold(generate, directions, origin=torch.tensor([0, 0, 1.0]), spread=3, points=500)
    x, c = data.collect(1, generator())
    torch.testing.assert_close(x, torch.stack([c[:, 0] + 10, 2 * c[:, 1]], 1))
    assert c.abs().max() <= 3
    assert c.abs().max() > 2.9
    layered = GeneratorManifold(lambda w: w.sum(2), torch.ones(2, 4, 3), points=7, names=("a", "b"))
    assert layered.shape == (4,)
    assert [f.name for f in layered.factors] == ["a", "b"]
    with pytest.raises(InputError, match="expected one row per factor"):
        GeneratorManifold(generate, torch.ones(3))
    with pytest.raises(InputError, match="1 names for 2 directions"):
        GeneratorManifold(generate, directions, names=("a",))


def test_faces_are_generated_along_chosen_directions_and_layers(data_folder, monkeypatch):
    """With a generator whose image is its latent: what reaches which layer can be read off the picture."""
    from unweave.datasets import faces
    from unweave.datasets.stylegan import Directions, Weights

    basis = Directions(torch.full((512,), 0.5), torch.eye(512)[:3], torch.tensor([0.1, 0.2, 0.05]))
    monkeypatch.setattr(faces, "find_weights", lambda: Weights(Path("m.xml"), Path("s.xml")))
    monkeypatch.setattr(faces, "OpenVinoNetwork", lambda path: None)
    monkeypatch.setattr(faces, "principal_directions", lambda mapping, samples, count: basis)
    show = lambda w: torch.nn.functional.pad(w[:, None, :, :64].expand(-1, 3, -1, -1), (0, 0, 0, 41))  # noqa: E731
    monkeypatch.setattr(faces, "face_generator", lambda: show)
    dataset = GeneratedFaces(directions=(1, 2), layers=(3, 5), points=4)
    x, c = dataset.load().collect(1, generator())
    assert dataset.title() == "faces-1-2 (generated, layers 3 to 5)"
    torch.testing.assert_close(x[:, 0, 3, 1], 0.5 + 0.2 * c[:, 0].float(), atol=1 / 255, rtol=0)
    torch.testing.assert_close(x[:, 0, 4, 2], 0.5 + 0.05 * c[:, 1].float(), atol=1 / 255, rtol=0)
    assert (x[:, 0, 5, 1] - 0.5).abs().max() < 1 / 255, "the layers beyond stay as they are"
    monkeypatch.setattr(faces, "face_generator", lambda: pytest.fail("made twice"))
    assert torch.equal(dataset.load().collect(1, generator()).x, x)
    with pytest.raises(InputError, match=r"layers=\(5, 5\)"):
        GeneratedFaces(layers=(5, 5), points=4).load()
