"""SmallNORB and Cars3D from their published files."""

import gzip
import io
import struct
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.io import savemat

from unweave import InputError
from unweave.datasets import (
    Cars3D,
    SmallNORB,
)


def norb(array: np.ndarray) -> bytes:
    magic = {"uint8": 0x1E3D4C55, "int32": 0x1E3D4C54}[array.dtype.name]
    shape = [*array.shape, *[1] * (3 - array.ndim)]
    return gzip.compress(struct.pack(f"<ii{len(shape)}i", magic, array.ndim, *shape) + array.tobytes())


def test_smallnorb_is_read_from_its_files(fake_files):
    images = np.random.default_rng(0).integers(0, 256, (6, 2, 96, 96), dtype=np.uint8)
    info = np.array([[4, 0, 34, 5], [6, 8, 0, 0], [7, 1, 2, 1], [8, 2, 4, 2], [9, 3, 6, 3], [4, 4, 8, 4]], np.int32)
    category = np.arange(6, dtype=np.int32) % 5
    names = [Path(f.file).name for f in SmallNORB.files[:3]]
    fake_files(SmallNORB, dict(zip(names, (norb(images), norb(category), norb(info)), strict=True)))
    data = SmallNORB(size=96).load()
    assert np.array_equal(data.x[:, 0].numpy(), images[:, 0])
    assert data.c[0].tolist() == [0, 4, 0, 17, 5]
    assert data.levels(1).tolist() == [4, 6, 7, 8, 9]
    small = SmallNORB(size=48).load().x[:, 0].float()
    mean = torch.from_numpy(images[:, 0]).float().reshape(6, 48, 2, 48, 2).mean((2, 4))
    assert (small - mean).abs().max() <= 0.5
    fake_files(SmallNORB, dict.fromkeys(names, gzip.compress(b"\1\2\3\4\0\0\0\0")))
    with pytest.raises(InputError, match="not a complete NORB file"):
        SmallNORB().load()


def test_cars_are_read_from_their_archive(fake_files):
    cars = np.random.default_rng(0).integers(0, 256, (2, 128, 128, 3, 24, 4), dtype=np.uint8)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as archive:

        def add(name, content):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))

        add("data/cars/list.txt", b"car_b_mesh\ncar_a_mesh\n")
        for name, car in zip(("car_b_mesh", "car_a_mesh"), cars, strict=True):
            file = io.BytesIO()
            savemat(file, {"im": car})
            add(f"data/cars/{name}.mat", file.getvalue())
    fake_files(Cars3D, {"nips2015-analogy-data.tar.gz": buffer.getvalue()})
    data = Cars3D(size=128).load()
    assert [f.size for f in data.factors] == [4, 24, 2]
    x = data.render(torch.tensor([[3, 20, 1]]))[0]
    assert np.array_equal((x * 255).round().byte().permute(1, 2, 0).numpy(), cars[1, :, :, :, 20, 3])
    assert Cars3D().load().shape == (3, 64, 64)
    fake_files(Cars3D, {"nips2015-analogy-data.tar.gz": buffer.getvalue()[:1000]})
    with pytest.raises(InputError, match="not the archive of Cars3D"):
        Cars3D().load()
