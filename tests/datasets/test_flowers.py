"""Oxford Flowers 102."""

import io
import tarfile

import numpy as np
from scipy.io import savemat

from tests.helpers import jpeg_file
from unweave.datasets import (
    Flowers102,
)


def test_flowers_follow_the_official_split_and_are_cropped(fake_files):
    labels, split = io.BytesIO(), io.BytesIO()
    savemat(labels, {"labels": np.array([[3, 1, 102, 3]])})
    savemat(split, {"trnid": np.array([[4, 1]]), "valid": np.array([[2]]), "tstid": np.array([[3]])})
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        for i in range(4):
            content = jpeg_file((60 * i, 0, 0), size=(100, 80))
            member = tarfile.TarInfo(f"jpg/image_{i + 1:05d}.jpg")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    fake_files(
        Flowers102,
        {"imagelabels.mat": labels.getvalue(), "setid.mat": split.getvalue(), "102flowers.tgz": archive.getvalue()},
    )
    data = Flowers102(split="train").load()
    assert data.x.shape == (2, 3, 64, 64)
    assert data.c[:, 0].tolist() == [2, 2]
    assert [abs(int(v) - w) < 4 for v, w in zip(data.x[:, 0, 5, 5], (180, 0), strict=True)] == [True, True]
    assert Flowers102().load().c[:, 0].tolist() == [2, 0, 101, 2]


def test_the_real_flowers_have_their_official_numbers(real_data):
    assert [len(Flowers102(split=s).load()) for s in ("train", "valid")] == [1020, 1020]
