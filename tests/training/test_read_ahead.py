"""Reading ahead: training on rows that are read on demand ends as training on rows in memory."""

import threading

import numpy as np
import pytest
import torch
from torch.utils.data import TensorDataset

from tests.helpers import StopTraining, flat_weights, small_method, stop_at, train_all, validate
from unweave import InputError, as_data
from unweave.data.rows import RowReader
from unweave.data.splits import hold_out
from unweave.training import loop, read_ahead
from unweave.training.loop import train
from unweave.training.read_ahead import ReadAhead

X = np.random.default_rng(0).integers(0, 256, (200, 1, 4, 4), dtype=np.uint8)
Y = np.stack([np.arange(200) % 3, np.arange(200) % 5], 1)


class Slow(RowReader):
    """Rows of an array that remember who read how many, and wait for `gate`."""

    def __init__(self, x=X, *, broken=-1):
        self.x, self.shape, self.dtype, self.broken = x, x.shape[1:], x.dtype, broken
        self.blocks, self.main_blocks, self.gate = [], 0, threading.Event()
        self.gate.set()

    def __len__(self):
        return len(self.x)

    def read(self, rows):
        assert self.gate.wait(10)
        self.main_blocks += threading.current_thread() is threading.main_thread()
        self.blocks.append(len(rows))
        if self.broken in rows:
            raise InputError(f"row {self.broken} is broken")
        return self.x[rows]


@pytest.mark.parametrize(
    ("name", "strategy"),
    [("beta-vae", "loop"), ("beta-vae", "stack"), ("ada-gvae", "stack"), ("cvib", "loop"), ("swap-contrast", "loop")],
)
def test_weights_are_those_of_resident_data(name, strategy, monkeypatch):
    monkeypatch.setattr(loop, "CHUNK", 10)

    def pack(data):
        methods = [small_method(name, steps=25, seed=i, widths=(4,), hidden=(8,)) for i in range(2)]
        return train_all(methods, data, strategy=strategy, compiling="never")

    on_demand, in_memory = pack(as_data(Slow(), Y, memory=0)), pack(as_data(X, Y))
    for a, b in zip(on_demand, in_memory, strict=True):
        assert torch.equal(flat_weights(a), flat_weights(b))
        assert torch.equal(a.history_, b.history_)
    assert not torch.equal(flat_weights(on_demand[0]), flat_weights(on_demand[1]))


@pytest.mark.parametrize("strategy", ["loop", "stack"])
def test_a_stopped_run_on_demand_resumes_bitwise(tmp_path, strategy, monkeypatch):
    monkeypatch.setattr(loop, "CHUNK", 10)

    def pack():
        return [small_method("factor-vae", steps=35, seed=i, layers=(8,)) for i in range(2)]

    flat = X.reshape(200, 16) / 255.0
    whole = train_all(pack(), as_data(flat), strategy=strategy, compiling="never")
    data, file = as_data(Slow(flat), memory=0), tmp_path / "pack.checkpoint"
    parts = validate(pack(), data)
    with pytest.raises(StopTraining):
        train(parts, data, checkpoint=file, every=10, callback=stop_at(20), strategy=strategy, compiling="never")
    seen = []
    train(parts, data, checkpoint=file, callback=seen.append, strategy=strategy, compiling="never")
    assert seen[0].step == 20, "the first ten steps are not taken again"
    for a, b in zip(whole, parts, strict=True):
        assert torch.equal(flat_weights(a), flat_weights(b))


def test_a_training_set_that_was_split_off_is_read_ahead():
    blocks = []
    for steps in (1, 40):
        reader = Slow()
        train_set = hold_out(as_data(reader, Y, memory=0), 50)[0]
        train_all([small_method("beta-vae", steps=steps)], train_set)
        blocks.append((reader.main_blocks, len(reader.blocks)))
    assert blocks[0][0] == blocks[1][0], "no step waits for its own reading"
    assert blocks[1][1] == blocks[0][1] + 4, "eight steps at a time"


def test_steps_come_from_blocks_that_another_thread_reads(monkeypatch):
    monkeypatch.setattr(read_ahead, "BLOCK_BYTES", 3 * 5 * 16)  # three steps of five rows
    reader = Slow()
    ahead = ReadAhead(reader, axis=0)
    rows = torch.randint(200, (10, 5, 1))
    ahead.start({"x": rows}, 10)
    for i in range(10):
        x = ahead.views(i, torch.device("cpu"))["x"]
        assert torch.equal(x, torch.from_numpy(X[rows[i, :, 0]]) / 255)
    assert reader.main_blocks == 0
    assert reader.blocks == [15, 15, 15, 5]


def test_a_chunk_that_is_not_used_up_makes_room_for_the_next_one():
    reader = Slow()
    ahead = ReadAhead(reader, axis=0)
    reader.gate.clear()  # the first block of the first chunk is under way, the second one waits
    for first in (0, 100):
        ahead.start({"x": torch.arange(first, first + 20)[:, None, None]}, 20)
    reader.gate.set()
    x = [ahead.views(i, torch.device("cpu"))["x"] for i in range(20)]
    assert torch.equal(torch.cat(x), torch.from_numpy(X[100:120]) / 255)
    assert reader.blocks[-3:] == [8, 8, 4] and len(reader.blocks) <= 4, "what waited is not read"


def test_large_observations_are_read_step_by_step_and_never_far_ahead(monkeypatch):
    monkeypatch.setattr(read_ahead, "BLOCK_BYTES", 1)
    reader = Slow()
    ahead = ReadAhead(reader, axis=1)
    ahead.start({"x": torch.randint(200, (2, 50, 5, 1))}, 50)
    assert ahead.views(0, torch.device("cpu"))["x"].shape == (2, 5, 1, 4, 4)
    ahead._thread.submit(lambda: None).result()  # after everything that is under way
    assert reader.blocks == [10] * (1 + read_ahead.BLOCKS_AHEAD)


def test_an_error_of_the_reading_thread_reaches_the_user():
    data = as_data(Slow(broken=77), memory=0)
    with pytest.raises(InputError, match="row 77 is broken"):
        small_method("beta-vae", steps=200).fit(data)


def test_a_dataset_of_torch_is_fitted_and_transformed_like_its_tensors():
    x, y = torch.from_numpy(X.reshape(200, 16) / np.float32(255)), torch.from_numpy(Y[:, 0])
    source = TensorDataset(x, y)
    on_demand, in_memory = small_method("cvib").fit(source), small_method("cvib").fit(x, y)
    assert torch.equal(flat_weights(on_demand), flat_weights(in_memory))
    np.testing.assert_array_equal(on_demand.predict(source), in_memory.predict(x))
    with pytest.raises(InputError, match="labels are needed"):
        small_method("cvib").fit(TensorDataset(x))
