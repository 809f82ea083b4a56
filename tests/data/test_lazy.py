"""`LazyTable` and files larger than memory: the same data as in memory, read on demand."""

import warnings

import h5py
import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from tests.helpers import generator
from unweave import Factor, InputError, OwnData, Table, as_data, as_pairs
from unweave.data import lazy
from unweave.data.lazy import LazyTable
from unweave.data.splits import correlate, hold_out
from unweave.data.supervision import augmented, pairs

RNG = np.random.default_rng(0)
X = RNG.integers(0, 256, (48, 1, 6, 5), dtype=np.uint8)
Y = np.stack([np.arange(48) % 3, np.arange(48) // 3 % 4], 1)


@pytest.fixture
def tables(tmp_path):
    """The same rows with the same labels on demand and in memory."""
    np.save(tmp_path / "x.npy", X)
    on_demand = as_data(np.load(tmp_path / "x.npy", mmap_mode="r"), Y)
    assert isinstance(on_demand, LazyTable)
    in_memory = as_data(X, Y)
    assert isinstance(in_memory, Table)
    return on_demand, in_memory


def test_a_lazy_table_has_the_contract_of_a_table(tables):
    on_demand, in_memory = tables
    assert on_demand.factors == in_memory.factors and on_demand.shape == in_memory.shape and len(on_demand) == 48
    points = in_memory.all_points(1)
    assert torch.equal(on_demand.all_points(1), points), "small enough to be held"
    assert torch.equal(on_demand.render(points), in_memory.render(points))
    assert torch.equal(on_demand.render(points.view(6, 8, 1)), in_memory.render(points.view(6, 8, 1)))
    c = torch.tensor([[2.0, 3], [0, 1]])
    for function in (
        lambda data: data.sample(9, generator()),
        lambda data: data.draw(9, generator()).x,
        lambda data: data.labels(points),
        lambda data: data.listing()[0],
        lambda data: data.listing()[1],
        lambda data: data.levels(1),
        lambda data: data.locate(c, generator()),
        lambda data: data.collect(5, generator()).x,
        lambda data: pairs(data, 20, generator()).views["x2"],
        lambda data: hold_out(data, 10)[1].draw(9, generator()).x,
        lambda data: correlate(hold_out(data, 10)[0], ("y1", "y2"), strength=1.0).draw(9, generator()).x,
    ):
        assert torch.equal(function(on_demand), function(in_memory))
    for row in (-1, 48):
        with pytest.raises(IndexError, match="there are 48 rows"):
            on_demand.render(torch.tensor([[0], [row]]))
    subset = hold_out(correlate(on_demand, ("y1", "y2"), strength=1.0).freeze(20, generator()), 5)[0]
    assert subset.reader is on_demand.reader and in_memory.reader is None
    real = LazyTable(on_demand.reader, torch.rand(48, 1), [Factor("angle")])
    with pytest.raises(InputError, match="rendered at any real value"):
        augmented(real, 2, generator(), along=["angle"])


def test_rows_that_do_not_fit_into_memory_are_sampled_with_a_warning(tables, monkeypatch):
    on_demand, in_memory = tables
    monkeypatch.setattr(lazy, "MAX_STORED_ELEMENTS", X.size - 1)
    with pytest.warns(UserWarning, match="48 observations are read on demand .* a random sample of 20 is used"):
        sample = on_demand.collect(20, generator())
    points = in_memory.sample(20, generator())
    assert torch.equal(sample.x, in_memory.render(points)) and torch.equal(sample.c, in_memory.labels(points))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(on_demand.all_points(48)) == len(on_demand.collect(48, generator()).x) == 48


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(30, 4), (30, 2, 3)])
def test_arrays_on_disk_are_read_as_arrays_in_memory(dtype, shape, tmp_path):
    x = RNG.integers(0, 200, shape).astype(dtype)
    rows = torch.tensor([[3], [29], [3]])
    expected = as_data(x).render(rows)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        for memory in (0, 1):
            data = as_data(file.create_dataset(f"x{memory}", data=x, chunks=True), memory=memory)
            assert isinstance(data, LazyTable) and torch.equal(data.render(rows), expected)
            assert data.render(rows).dtype == expected.dtype


def test_labels_of_another_length_are_refused(tables):
    with pytest.raises(InputError, match="48 rows of data with factors of shape"):
        as_data(X, Y[:-1])
    with pytest.raises(InputError, match="48 rows of data with factors of shape"):
        LazyTable(tables[0].reader, torch.zeros(47, 0), [])


def test_pairs_of_memory_maps_are_read_into_memory(tmp_path):
    np.save(tmp_path / "x.npy", X)
    x = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert torch.equal(as_pairs(x[:24], x[24:]).x, torch.from_numpy(X))


# Files ---------------------------------------------------------------------------------------------------------------


def save_images(folder, count=12, size=(6, 5)):
    for i in range(count):
        path = folder / ("left" if i % 3 else "right") / f"{i}.png"
        path.parent.mkdir(exist_ok=True, parents=True)
        pixels = np.random.default_rng(i).integers(0, 256, (*size, 3), dtype=np.uint8)
        Image.fromarray(pixels if i % 2 else pixels[..., 0]).save(path)
    return folder


def test_a_folder_of_images_is_the_same_decoded_on_demand(tmp_path):
    folder = save_images(tmp_path / "photos")
    in_memory, *on_demand = (OwnData(path=folder, memory=memory).load() for memory in (1, 0, 3 * 90e-9))
    assert isinstance(in_memory, Table) and in_memory.x.dtype == torch.uint8
    for data in on_demand:  # without a cache, and with one of three images
        assert isinstance(data, LazyTable) and data.factors == in_memory.factors and torch.equal(data.c, in_memory.c)
        for seed in range(3):
            assert torch.equal(data.draw(10, generator(seed)).x, in_memory.draw(10, generator(seed)).x)
    assert on_demand[1].reader.capacity == 3


def test_images_are_held_as_long_as_they_fit(tmp_path):
    folder = save_images(tmp_path / "photos")
    nbytes = 12 * 3 * 6 * 5
    assert isinstance(OwnData(path=folder, memory=nbytes / 1e9).load(), Table)
    assert isinstance(OwnData(path=folder, memory=(nbytes - 1) / 1e9).load(), LazyTable)
    for path in folder.rglob("*.png"):
        Image.open(path).convert("L").save(path)
    assert isinstance(OwnData(path=folder, memory=nbytes / 3e9).load(), Table), "one channel"


def test_images_that_cannot_be_read_are_named_before_training(tmp_path):
    folder = save_images(tmp_path / "photos")
    path = folder / "left" / "7.png"
    whole = path.read_bytes()
    for damaged in (b"no image", whole[: len(whole) // 2], whole[:-20] + b"\0" * 20):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=r"7\.png is not a readable image"):
            OwnData(path=folder, memory=0).load()
    Image.new("RGB", (7, 6)).save(path)
    with pytest.raises(InputError, match=r"1\.png is 5 x 6, .*7\.png is 7 x 6; resize them"):
        OwnData(path=folder, memory=0).load()


def test_an_image_that_breaks_later_is_named(tmp_path):
    folder = save_images(tmp_path / "photos")
    data = OwnData(path=folder, memory=0).load()
    Image.new("RGB", (7, 6)).save(folder / "left" / "7.png")
    with pytest.raises(InputError, match=r"7\.png has changed since the data were opened"):
        data.render(data.all_points(1))


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32])
def test_a_large_npy_is_mapped(dtype, tmp_path):
    x = X[:, 0].astype(dtype)
    np.save(tmp_path / "x.npy", x)
    path = tmp_path / "x.npy"
    size = x.size * (8 if dtype == np.int16 else x.itemsize)
    assert isinstance(OwnData(path=path, memory=size / 1e9).load(), Table)
    on_demand, in_memory = OwnData(path=path, memory=(size - 1) / 1e9).load(), OwnData(path=path).load()
    assert isinstance(on_demand, LazyTable)
    points = torch.arange(48)[:, None]
    assert torch.equal(on_demand.render(points), in_memory.render(points))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda x: x.__setitem__((40, 2), np.nan), "row 40 of the data contains NaN"),
        (lambda x: x.__setitem__((slice(None), 1), 5), "1 column of .* never changes: 'column 1'"),
        (lambda x: x.fill(1), "every column of .* is constant"),
    ],
)
def test_a_mapped_table_is_checked_in_parts(change, match, tmp_path, monkeypatch):
    monkeypatch.setattr("unweave.data.own_checks.MAX_CHECKED_BYTES", 200)
    x = RNG.normal(size=(48, 4))
    change(x)
    np.save(tmp_path / "x.npy", x)
    with pytest.raises(InputError, match=match):
        OwnData(path=tmp_path / "x.npy", memory=0).load()


def test_constant_columns_of_a_mapped_table_cannot_be_dropped(tmp_path):
    np.save(tmp_path / "x.npy", np.stack([np.arange(5.0), np.ones(5)], 1))
    assert OwnData(path=tmp_path / "x.npy", drop_constant=True).load().shape == (1,)
    with pytest.raises(InputError, match="read on demand, which leaves no column out"):
        OwnData(path=tmp_path / "x.npy", drop_constant=True, memory=0).load()
    with pytest.raises(InputError, match="memory=-1"):
        OwnData(path=tmp_path / "x.npy", memory=-1).load()


def test_the_limit_is_part_of_the_recipe_unless_it_is_the_usual_one(tmp_path):
    pd.DataFrame({"a": [1, 2], "b": [3, 5]}).to_csv(tmp_path / "x.csv", index=False)
    recipes = [OwnData(path=tmp_path / "x.csv", memory=memory).recipe() for memory in (1, 2)]
    assert "memory" not in recipes[0] and recipes[1]["memory"] == 2
