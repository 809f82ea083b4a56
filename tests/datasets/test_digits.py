"""MNIST and EMNIST from IDX files."""

import gzip

import numpy as np
import pytest

from tests.helpers import idx_file
from unweave import InputError
from unweave.data.downloads import MissingData
from unweave.datasets import (
    EMNIST,
    MNIST,
)


def test_digits_are_read_and_emnist_is_turned_upright(digits):
    mnist, emnist = (cls().load() for cls in (MNIST, EMNIST))
    assert np.array_equal(mnist.x[:, 0].numpy(), digits)
    assert np.array_equal(emnist.x[:, 0].numpy(), digits.transpose(0, 2, 1))
    assert mnist.c[:, 0].tolist() == [float(i % 10) for i in range(30)]


def test_the_real_mnist_has_all_digits(real_data):
    data = MNIST(split="test").load()
    assert len(data) == 10_000
    assert data.c[:10, 0].tolist() == [7, 2, 1, 0, 4, 1, 4, 9, 5, 9]
    assert len(MNIST().load()) == 60_000


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"hello", "not a complete IDX file"),
        (gzip.compress(b"\0\0\x0d\x01\0\0\0\x01abcd"), "not an IDX file of bytes"),
        (gzip.compress(b"\0\0\x08\x01\0\0\0\x09abcd"), "promises .* and holds 4 values"),
        (gzip.compress(b"\0\0\x08\x01\0\0\0\x04abcd")[:-4], "not a complete IDX file"),
    ],
    ids=["no gzip", "another type", "too short", "cut off"],  # the bytes hold the time, and workers compare names
)
def test_bad_idx_files_are_refused(fake_files, content, text):
    fake_files(
        MNIST, {"train-images-idx3-ubyte.gz": content, "train-labels-idx1-ubyte.gz": idx_file(np.zeros(4, np.uint8))}
    )
    with pytest.raises(InputError, match=text):
        MNIST().load()


def test_images_and_labels_of_different_sets_are_refused(fake_files):
    images, labels = idx_file(np.zeros((3, 2, 2), np.uint8)), idx_file(np.zeros(4, np.uint8))
    fake_files(MNIST, {"train-images-idx3-ubyte.gz": images, "train-labels-idx1-ubyte.gz": labels})
    with pytest.raises(InputError, match="are not of one set"):
        MNIST().load()


def test_a_missing_file_says_how_to_get_it(data_folder):
    with pytest.raises(
        MissingData, match=r"train-images.* is not in .*unweave data make mnist --download; license: CC"
    ):
        MNIST().load()
    with pytest.raises(MissingData, match=r"Get it from nist\.gov") as caught:
        EMNIST().load()
    assert "--download" not in str(caught.value)
