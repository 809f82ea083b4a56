"""Codes of data that are read on demand: all rows, a part at a time."""

import h5py
import numpy as np
import pytest

from tests.helpers import flat_sheet
from unweave import as_data
from unweave.data import lazy
from unweave.data.rows import RowReader
from unweave.methods import PCA, HessianICA, encoding

X = flat_sheet(300, 2)[0]


class Parts(RowReader):
    """Rows of an array that remember how many were read at a time."""

    def __init__(self, x):
        self.x, self.shape, self.dtype, self.sizes = x, x.shape[1:], x.dtype, []

    def __len__(self):
        return len(self.x)

    def read(self, rows):
        self.sizes.append(len(rows))
        return self.x[rows]


def test_all_rows_are_encoded_in_parts_however_many_there_are(monkeypatch):
    method = PCA(latent_dim=2).fit(X)
    monkeypatch.setattr(lazy, "MAX_STORED_ELEMENTS", 100)
    monkeypatch.setattr(encoding, "MAX_ENCODED_ELEMENTS", 70 * X.shape[1])
    monkeypatch.setattr(encoding, "MAX_OBSERVATIONS", 10)
    reader = Parts(X)
    np.testing.assert_array_equal(method.transform(as_data(reader, memory=0)), method.transform(X))
    assert reader.sizes == [70, 70, 70, 70, 20]
    with pytest.raises(ValueError, match="5 features, but PCA is expecting 20"):
        method.transform(as_data(Parts(X[:, :5]), memory=0))


@pytest.mark.parametrize("method", [PCA(latent_dim=2), HessianICA(latent_dim=2, n_neighbors=12)])
def test_methods_that_need_all_rows_learn_the_same_from_an_array_on_disk(method, tmp_path):
    expected = method.fit_transform(X)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        stored = file.create_dataset("x", data=X, chunks=(32, X.shape[1]))
        np.testing.assert_array_equal(method.fit(stored).transform(stored), expected)
        np.testing.assert_array_equal(method.transform(X), expected)


def test_methods_that_need_many_rows_at_once_take_a_sample_with_a_warning(monkeypatch):
    monkeypatch.setattr(lazy, "MAX_STORED_ELEMENTS", 100)
    reader = Parts(X)
    with pytest.warns(UserWarning, match="a random sample of 50 is used"):
        PCA(latent_dim=2, samples=50).fit(as_data(reader, memory=0))
    assert max(reader.sizes) == 50
