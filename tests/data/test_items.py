"""Datasets of other libraries, item by item."""

from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from unweave import InputError, as_data
from unweave.data.items import ItemRows
from unweave.data.lazy import LazyTable

X = torch.rand(20, 3, 4, generator=torch.Generator().manual_seed(0))
Y = torch.arange(20) % 3


class Items(Dataset[Any]):
    """A torch dataset of given items."""

    def __init__(self, items):
        self.items = list(items)

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


class HuggingFace:
    """Has what a Hugging Face dataset has: rows as dicts, columns by name, names of classes."""

    class ClassLabel:
        names = ("cat", "dog", "owl")

    def __init__(self, columns):
        self.columns, self.column_names, self.decoded = columns, list(columns), 0
        self.features = {name: self.ClassLabel() if name == "label" else None for name in columns}

    def __len__(self):
        return len(self.columns["label"])

    def __getitem__(self, key):
        if isinstance(key, str):
            assert key != "image", "decodes every image"
            return self.columns[key]
        self.decoded += 1
        return {name: column[key] for name, column in self.columns.items()}


@pytest.mark.parametrize(
    ("items", "names"),
    [
        (list(X), []),
        (list(X.numpy()), []),
        ([(x,) for x in X], []),
        (list(zip(X, Y, strict=True)), ["y"]),
        ([(x, int(y), "ab"[y % 2]) for x, y in zip(X, Y, strict=True)], ["y1", "y2"]),
        ([(x, torch.stack([y, y])) for x, y in zip(X, Y, strict=True)], ["y1", "y2"]),
        ([{"x": x, "size": float(y)} for x, y in zip(X, Y, strict=True)], ["size"]),
        ([{"id": int(y), "anything": x} for x, y in zip(X, Y, strict=True)], ["id"]),
        ([{"pixel_values": x, "boxes": [1, 2], "y": y} for x, y in zip(X, Y, strict=True)], ["y"]),
    ],
)
def test_items_of_a_torch_dataset_become_rows_and_factors(items, names):
    data = as_data(Items(items))
    assert isinstance(data, LazyTable) and [f.name for f in data.factors] == names
    points = torch.tensor([[4], [19], [4]])
    assert torch.equal(data.render(points), X[points[:, 0]])
    if names:
        column = data.factors[0].numeric_values(data.labels(points)[:, 0])
        assert torch.equal(column.double(), Y[points[:, 0]].double())
    assert [f.name for f in as_data(Items(items), np.arange(20)).factors] == ["y"], "y replaces their labels"


def test_labels_that_a_dataset_knows_are_not_read_item_by_item():
    class Targets(Items):
        targets = Y.tolist()
        reads = 0

        def __getitem__(self, i):
            self.reads += 1
            return self.items[i]

    source = Targets(zip(X, Y, strict=True))
    assert torch.equal(as_data(source).c[:, 0], Y.double()) and source.reads < 10
    other = Targets(zip(X, Y.flip(0), strict=True))  # a transformation of the targets, which only items show
    assert torch.equal(as_data(other).c[:, 0], Y.flip(0).double())


def test_a_hugging_face_dataset_gives_its_images_and_the_names_of_classes():
    images = [Image.new("L" if i == 1 else "RGB", (5, 4), "white" if i == 1 else (i, 2 * i, 0)) for i in range(6)]
    columns = {"image": images, "label": [0, 1, 2, 0, 1, 2], "caption": [f"text {i}" for i in range(6)]}
    source = HuggingFace(columns)
    with pytest.warns(UserWarning, match="'caption' of the items is text that hardly repeats"):
        data = as_data(source)
    assert source.decoded < 5
    assert data.shape == (3, 4, 5)
    assert [(f.name, f.kind, f.values) for f in data.factors] == [("label", "nominal", ("cat", "dog", "owl"))]
    source.columns["label"] = [torch.tensor(-1)] * 6  # formatted as tensors, and not labeled
    del source.columns["caption"], source.column_names[-1]
    assert as_data(source).factors[0].values == (-1,)
    x = data.render(torch.tensor([[1], [4]]))
    assert torch.equal(x[0], torch.ones(3, 4, 5)), "gray among colors"
    assert torch.allclose(x[1, :, 0, 0] * 255, torch.tensor([4.0, 8, 0]))


def test_lists_of_images_and_of_paths_are_read(tmp_path):
    images = [Image.fromarray(np.full((4, 5), i, np.uint8)) for i in range(3)]
    paths = [tmp_path / f"{i}.png" for i in range(3)]
    for image, path in zip(images, paths, strict=True):
        image.save(path)
    expected = torch.arange(3.0)[:, None, None, None].expand(3, 1, 4, 5) / 255
    for source in (images, paths, [str(path) for path in paths]):
        for memory in (0, 1):
            data = as_data(source, memory=memory)
            assert torch.equal(data.render(torch.arange(3)[:, None]), expected)


@pytest.mark.parametrize(
    ("items", "match"),
    [
        ([torch.zeros(2, 2), torch.zeros(2, 3)], r"item 1 has shape \(2, 3\), and item 0 has \(2, 2\)"),
        ([torch.zeros(2, 2, dtype=torch.uint8), torch.zeros(2, 2)], "item 1 holds float32, and item 0 uint8"),
        ([torch.zeros(2), torch.full((2,), torch.nan)], "row 1 of the data contains NaN"),
        ([np.array(["a", "b"])] * 2, "item 0 holds <U1, not real numbers"),
        ([3.0, 4.0], "item 0 is one number"),
        ([], "Items has no items"),
        ([{"a": [1, 2], "b": [3, 4]}] * 2, "which of a, b is the observation"),
        ([(torch.zeros(2), torch.zeros(2, 2))] * 2, r"a part of shape \(2, 2\) that is no label"),
        ([Image.new("L", (3, 3)), Image.new("RGB", (3, 3))], r"item 1 has shape \(3, 3, 3\)"),
    ],
)
def test_items_that_do_not_fit_are_named(items, match):
    with pytest.raises(InputError, match=match):
        as_data(Items(items)).render(torch.tensor([[0], [1]]))


def test_sources_without_length_or_numbers_are_refused():
    class Stream(IterableDataset[Any]):
        def __iter__(self):
            return iter(X)

    class Keyed(Items):
        def __getitem__(self, i):
            return {"a": 1}[i]

    with pytest.raises(InputError, match=r"Stream gives its items one after the other only: expected len\(x\)"):
        as_data(Stream())
    with pytest.raises(InputError, match=r"DataLoader gives .*; pass its dataset"):
        as_data(DataLoader(TensorDataset(X)))
    with pytest.raises(InputError, match="items of Keyed cannot be read by their number"):
        as_data(Keyed(X))


def test_many_items_are_read_at_once_where_that_is_possible():
    class Batched(Items):
        def __getitems__(self, rows):
            return [(X[i],) for i in rows]

        def __getitem__(self, i):
            raise AssertionError

    rows = ItemRows(Batched(X))
    np.testing.assert_array_equal(rows.read(np.array([5, 2, 5])), X[[5, 2, 5]])
