"""Rows read on demand: whatever the storage, the same rows as in memory."""

import threading
import tracemalloc

import h5py
import numpy as np
import pytest

from unweave import InputError
from unweave.data import rows as module
from unweave.data.rows import MappedRows, RowCache, RowReader, StoredRows, run_in_threads

X = np.random.default_rng(0).integers(0, 256, (60, 3, 4), dtype=np.uint8)
ROWS = np.array([59, 0, 7, 7, 8, 9, 41, 0, *range(20, 55)])


def mapped(folder, x, **settings):
    np.save(folder / "x.npy", x)
    return np.load(folder / "x.npy", **{"mmap_mode": "r"} | settings)


def stored(folder, x, **settings):
    return h5py.File(folder / "x.h5", "w").create_dataset("x", data=x, **settings)


class Zarr:
    """Has what a zarr array has, and counts the slices that are read."""

    def __init__(self, x, chunks):
        self.x, self.chunks, self.shape, self.dtype, self.slices = x, chunks, x.shape, x.dtype, []

    def __getitem__(self, part):
        assert isinstance(part, slice), "lists of rows are slow, or not possible"
        self.slices.append((part.start, part.stop))
        return self.x[part]


class Counting(RowReader):
    """Rows of an array that remember how often each was read."""

    def __init__(self, x):
        self.x, self.shape, self.dtype, self.count = x, x.shape[1:], x.dtype, np.zeros(len(x), int)

    def __len__(self):
        return len(self.x)

    def read(self, rows):
        np.add.at(self.count, rows, 1)
        return self.x[rows]


@pytest.mark.parametrize(
    "reader",
    [
        lambda folder: MappedRows(mapped(folder, X)),
        lambda folder: MappedRows(mapped(folder, np.asfortranarray(X))),
        lambda folder: MappedRows(mapped(folder, np.concatenate([X[:5], X]))[5:]),
        lambda folder: StoredRows(stored(folder, X)),
        lambda folder: StoredRows(stored(folder, X, chunks=(7, 3, 4), compression="gzip")),
        lambda folder: StoredRows(Zarr(X, (16, 3, 4))),
        lambda folder: StoredRows(Zarr(X, ((50, 10), (3,), (4,)))),  # as in dask
        lambda folder: RowCache(StoredRows(Zarr(X, (16, 3, 4))), 10 * 12),
        lambda folder: RowCache(StoredRows(Zarr(X, (16, 3, 4))), 1e9),
    ],
)
def test_every_reader_gives_the_rows_of_the_array(reader, tmp_path):
    rows = reader(tmp_path)
    assert (len(rows), rows.shape, rows.dtype, rows.size_in_bytes()) == (60, (3, 4), np.uint8, X.nbytes)
    for _ in range(2):
        np.testing.assert_array_equal(rows.read(ROWS), X[ROWS])
        np.testing.assert_array_equal(rows.read(np.arange(60)), X)
        np.testing.assert_array_equal(rows.read(np.array([59])), X[59:])


@pytest.mark.parametrize(
    ("dtype", "ndim", "result"),
    [
        ("u1", 3, "u1"),
        ("u1", 2, "f8"),
        ("i2", 3, "f8"),
        ("?", 2, "f8"),
        ("f2", 2, "f4"),
        (">f4", 3, "f4"),
        ("f8", 2, "f8"),
    ],
)
def test_numbers_are_read_in_the_types_of_arrays_in_memory(dtype, ndim, result, tmp_path):
    x = (np.arange(24) % 2).reshape((4, 6) if ndim == 2 else (4, 2, 3)).astype(dtype)
    for rows in (MappedRows(mapped(tmp_path, x)), StoredRows(stored(tmp_path, x))):
        assert rows.dtype == rows.read(np.array([1])).dtype == np.dtype(result)
        np.testing.assert_array_equal(rows.read(np.array([3, 1])), x[[3, 1]])


def test_a_chunk_on_disk_is_read_once_and_neighbors_together():
    array = Zarr(X, (10, 3, 4))
    StoredRows(array).read(np.array([31, 2, 38, 2, 9, 31]))
    assert array.slices == [(2, 10), (31, 39)]
    array.slices.clear()
    StoredRows(array).read(np.arange(5, 60))
    assert array.slices == [(5, 60)]


def test_the_first_row_that_is_not_finite_is_named(tmp_path):
    x = np.ones((9, 2))
    x[7, 1], x[8, 0] = np.inf, np.nan
    rows = MappedRows(mapped(tmp_path, x))
    assert rows.read(np.array([0, 6])).shape == (2, 2)
    with pytest.raises(InputError, match="row 7 of the data contains NaN or infinity"):
        rows.read(np.array([8, 0, 7]))


@pytest.mark.parametrize("x", [np.zeros(3), np.zeros((3, 0)), np.zeros((3, 2), complex)])
def test_arrays_that_are_no_rows_of_numbers_are_refused(x):
    with pytest.raises(InputError, match=r"expected one row per observation|not real numbers"):
        StoredRows(Zarr(x, None))


def test_pages_of_a_map_are_returned_and_random_rows_are_not_read_ahead(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_MAPPED_BYTES", 100)
    monkeypatch.setattr(module, "FAULT_BYTES", 40)
    rows = MappedRows(mapped(tmp_path, X))

    class Recorder:
        advice: list[int] = []  # noqa: RUF012

        def madvise(self, option):
            self.advice.append(option)

    rows._mapping = Recorder()
    for part in (np.array([5]), np.array([9]), np.array([3]), np.arange(8), np.arange(4), np.array([4])):
        rows.read(part)  # 12 bytes for a row, and 40 around each that is read at random
    random, normal, gone = module.mmap.MADV_RANDOM, module.mmap.MADV_NORMAL, module.mmap.MADV_DONTNEED
    assert Recorder.advice == [random, gone, normal, gone, random]


def test_changes_in_a_private_map_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_MAPPED_BYTES", 0)
    x = mapped(tmp_path, X, mmap_mode="c")
    x[3] = 77
    rows = MappedRows(x)
    rows.read(np.arange(60))
    assert (rows.read(np.array([3])) == 77).all()


def test_a_cache_reads_a_row_once_while_it_fits():
    reader = Counting(X)
    cache = RowCache(reader, 1e6)
    for seed in range(5):
        rows = np.random.default_rng(seed).integers(0, 60, 40)
        np.testing.assert_array_equal(cache.read(rows), X[rows])
    assert reader.count.max() == 1


def test_a_cache_is_bounded_and_replaces_the_oldest_rows():
    reader = Counting(X)
    cache = RowCache(reader, 10 * X[0].nbytes + 5)
    assert cache.capacity == 10 and cache._store.nbytes == 10 * X[0].nbytes
    cache.read(np.arange(10))
    cache.read(np.arange(8, 12))  # 10 and 11 take the places of 0 and 1
    before = reader.count.copy()
    cache.read(np.arange(2, 12))
    assert (reader.count == before).all()
    cache.read(np.array([0]))
    assert reader.count[0] == 2
    for seed in range(50):
        rows = np.random.default_rng(seed).integers(0, 60, 7)
        np.testing.assert_array_equal(cache.read(rows), X[rows])
    np.testing.assert_array_equal(cache.read(np.arange(60)), X)  # more than it holds
    np.testing.assert_array_equal(cache.read(np.arange(60)), X)


def test_rows_that_two_threads_read_are_stored_once():
    cache = RowCache(Counting(X), 30 * X[0].nbytes)
    for _ in range(2):
        cache._keep(np.arange(12), X[:12])
    assert (cache._row_in >= 0).sum() == 12


def test_a_map_in_another_order_is_not_copied_as_a_whole(tmp_path):
    rows = MappedRows(mapped(tmp_path, np.asfortranarray(np.zeros((2_000, 30, 30)))))
    tracemalloc.start()
    rows.read(np.array([5, 1_000]))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 * 2 * 900 * 8


def test_a_cache_serves_several_threads():
    cache, errors = RowCache(Counting(X), 15 * X[0].nbytes), []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(200):
            rows = rng.integers(0, 60, 9)
            if not np.array_equal(cache.read(rows), X[rows]):
                errors.append(rows)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_results_of_threads_are_in_order_and_errors_are_raised():
    assert run_in_threads(lambda i: i * i, range(100)) == [i * i for i in range(100)]
    with pytest.raises(ZeroDivisionError):
        run_in_threads(lambda i: 1 / (i - 50), range(100))
