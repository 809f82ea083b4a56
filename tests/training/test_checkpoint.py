"""Checkpoints: a stopped run resumes, a foreign or damaged file is ignored."""

import io
import struct
import time
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors import safe_open

from tests.helpers import DATA, StopTraining, X, flat_weights, small_method, stop_at, train_all, validate
from unweave.data.conversion import as_data
from unweave.methods import FactorVAE
from unweave.training.checkpoint import Checkpoint, _hash_tensors, read_note, read_seconds, read_step
from unweave.training.loop import train


@pytest.mark.parametrize("strategy", ["loop", "stack"])
def test_a_stopped_run_resumes_and_ends_bitwise_the_same(tmp_path, strategy):
    file = tmp_path / "pack.checkpoint"

    def pack():
        small = {"latent_dim": 2, "layers": (8,), "critic": (8,), "weight_average": 0.9}
        return validate([FactorVAE(steps=350, **small, seed=i) for i in range(2)])

    whole = train_all(pack(), strategy=strategy, compiling="never")
    parts = pack()
    for stop in (200, 300):
        with pytest.raises(StopTraining):
            train(parts, DATA, checkpoint=file, every=100, callback=stop_at(stop), strategy=strategy, compiling="never")
    seen = []
    train(parts, DATA, checkpoint=file, callback=seen.append, strategy=strategy, compiling="never")
    assert seen[0].step > 200
    for a, b in zip(whole, parts, strict=True):
        assert torch.equal(flat_weights(a), flat_weights(b))
        assert torch.equal(a.history_, b.history_)
    again = pack()  # the file stays: what was trained can be had once more
    train(again, DATA, checkpoint=file, callback=seen.append, strategy=strategy, compiling="never")
    assert torch.equal(flat_weights(again[0]), flat_weights(whole[0]))


def test_seconds_before_a_stop_are_counted(tmp_path):
    file, stop = tmp_path / "a.checkpoint", stop_at(300)

    def slow(progress):
        time.sleep(1.0 if progress.step == 100 else 0.0)
        stop(progress)

    taken = [read_seconds(file)]
    for report in (slow, stop_at(400)):
        with pytest.raises(StopTraining):
            train(validate([small_method("beta-vae", steps=500)]), DATA, checkpoint=file, every=100, callback=report)
        taken.append(read_seconds(file))
    assert taken[0] == 0 and 1 <= taken[1] < taken[2]


def test_a_slow_pack_is_saved_after_some_seconds(tmp_path, monkeypatch):
    file = tmp_path / "slow.checkpoint"
    with pytest.raises(StopTraining):
        train(validate([small_method("beta-vae", steps=300)]), DATA, checkpoint=file, callback=stop_at(200))
    assert not file.exists(), "five hundred steps are not over"
    monkeypatch.setattr("unweave.training.checkpoint.MAX_SECONDS_BETWEEN_SAVES", 0.0)
    monkeypatch.setattr("unweave.training.checkpoint.TRAINING_PER_SAVING", 0)  # however long saving takes
    with pytest.raises(StopTraining):
        train(validate([small_method("beta-vae", steps=300)]), DATA, checkpoint=file, callback=stop_at(200))
    seen = []
    train(validate([small_method("beta-vae", steps=300)]), DATA, checkpoint=file, callback=seen.append)
    assert seen[0].step == 200, "from the first hundred on"


def test_a_checkpoint_of_another_run_or_a_damaged_one_is_ignored(tmp_path):
    file = tmp_path / "a.checkpoint"
    with pytest.raises(StopTraining):
        train(validate([small_method("beta-vae", steps=300)]), DATA, checkpoint=file, every=100, callback=stop_at(200))
    with pytest.warns(UserWarning, match="another run"):
        train_all([small_method("beta-vae", steps=200)], checkpoint=file)
    (fresh,) = train_all([small_method("beta-vae", steps=300)])
    blob = file.read_bytes()
    for damaged in (blob[: len(blob) // 2], b"", b"\xff" * 100):
        file.write_bytes(damaged)
        with pytest.warns(UserWarning, match="training starts from the beginning"):
            (method,) = train_all([small_method("beta-vae", steps=300)], checkpoint=file)
        assert torch.equal(flat_weights(method), flat_weights(fresh))


def test_a_flipped_bit_anywhere_in_a_checkpoint_is_noticed(tmp_path):
    """In the weights it would change the result of the resumed run, in the metadata its step and its seconds."""
    file, state = tmp_path / "c", torch.arange(40.0)
    group = SimpleNamespace(state={"w": state, "half": state.bfloat16()}, rngs=[], rng_states=list)
    saver = Checkpoint(file, {"a": 1}, note="one two")
    saver.restore([group], "loop")
    saver.save_if_due([group], 7, 10, last=True)
    whole, size = file.read_bytes(), len(file.read_bytes())
    (header_size,) = struct.unpack("<Q", whole[:8])
    for byte in [*range(0, 8 + header_size, 7), *range(8 + header_size, size, 11)]:
        file.write_bytes(whole[:byte] + bytes([whole[byte] ^ 4]) + whole[byte + 1 :])
        read = read_note(file), read_step(file), Checkpoint(file, {"a": 1}).previous_strategy()
        assert read in {("one two", 7, "loop"), ("", 0, "")} and isinstance(read_seconds(file), float)
        with pytest.warns(UserWarning, match="training starts from the beginning"):
            assert Checkpoint(file, {"a": 1}).restore([group], "loop") == 0
        assert torch.equal(group.state["w"], state)
    file.write_bytes(whole)
    assert Checkpoint(file, {"a": 1}).restore([group], "loop") == 7


def test_a_checkpoint_records_the_strategy(tmp_path):
    file = tmp_path / "c"
    train_all([small_method("beta-vae", steps=100)], checkpoint=file)
    with safe_open(file, "pt") as kept:
        assert kept.metadata()["how"] == "loop"
    assert Checkpoint(file, "another run").previous_strategy() == ""
    with pytest.warns(UserWarning, match="another strategy: training starts from the beginning"):
        train_all([small_method("beta-vae", steps=100)], checkpoint=file, strategy="stack", compiling="never")


def test_a_checkpoint_of_other_data_is_ignored(tmp_path):
    file = tmp_path / "c"
    (first,) = train_all([small_method("beta-vae")], checkpoint=file)
    with pytest.warns(UserWarning, match="another run"):
        (second,) = train_all([small_method("beta-vae")], as_data(X * 3 + 7), checkpoint=file)
    assert not torch.equal(flat_weights(first), flat_weights(second))


def test_saving_takes_a_small_share_of_the_time(tmp_path):
    saver = Checkpoint(tmp_path / "c", "about")
    saver.save_seconds = 3600.0
    saver.save_if_due([], 10_000, 1, last=False)
    assert not (tmp_path / "c").exists()
    saver.save_if_due([], 10_000, 1, last=True)
    assert (tmp_path / "c").exists()


class Clock:
    """Time that passes only when told."""

    def __init__(self):
        self.now, self.saving = 100.0, 0.0

    def perf_counter(self):
        return self.now


@pytest.mark.parametrize("cost", [0.0, 0.5, 4.0])
def test_training_loses_a_twentieth_of_its_time_to_saving_and_some_seconds_to_a_kill(tmp_path, monkeypatch, cost):
    """Steps of a tenth of a second, for an hour: saves are as rare as their cost demands, and no rarer."""
    clock = Clock()

    @contextmanager
    def slow_file(path):
        clock.now += cost
        clock.saving += cost
        moments.append(clock.now)
        yield io.BytesIO()

    moments: list[float] = []
    monkeypatch.setattr("unweave.training.checkpoint.time", clock)
    monkeypatch.setattr("unweave.training.checkpoint.atomic_file", slow_file)
    saver = Checkpoint(tmp_path / "c", "about")
    for step in range(1, 36_001):
        clock.now += 0.1
        saver.save_if_due([], step, 10**9, last=False)
    gaps = np.diff(moments)
    assert clock.saving <= 0.05 * (clock.now - 100)
    allowed = max(10.0, 20 * cost)
    assert gaps.max() <= allowed + cost + 0.3, "work of this many seconds is what a kill can cost"
    assert gaps[1:].min() >= allowed - 0.3


def test_a_save_is_due_after_so_many_steps(tmp_path, monkeypatch):
    monkeypatch.setattr("unweave.training.checkpoint.time", Clock())
    saver = Checkpoint(tmp_path / "c", "about")
    steps = []
    for step in range(1, 26):
        saver.save_if_due([], step, 10, last=step == 25)
        if read_step(tmp_path / "c") == step:
            steps.append(step)
    assert steps == [10, 20, 25]


def test_a_save_is_due_after_ten_seconds(tmp_path, monkeypatch):
    clock = Clock()
    monkeypatch.setattr("unweave.training.checkpoint.time", clock)
    saver = Checkpoint(tmp_path / "c", "about")
    steps = []
    for step in range(1, 9):
        clock.now += 2.5
        saver.save_if_due([], step, 10**9, last=False)
        steps.append(read_step(tmp_path / "c"))
    assert steps == [0, 0, 0, 4, 4, 4, 4, 8]


def test_what_a_checkpoint_says_of_itself(tmp_path):
    file = tmp_path / "c"
    assert (read_note(file), read_seconds(file), read_step(file)) == ("", 0.0, 0)
    saver = Checkpoint(file, {"a": 1}, note="four lanes")
    saver.restore([], "loop")
    saver.save_if_due([], 7, 10, last=True)
    assert (read_note(file), read_step(file)) == ("four lanes", 7)
    assert 0 <= read_seconds(file) < 10
    assert Checkpoint(file, {"a": 1}).previous_strategy() == "loop"
    assert Checkpoint(file, {"a": 2}).previous_strategy() == ""
    assert Checkpoint(None, {"a": 1}).previous_strategy() == ""
    again = Checkpoint(file, {"a": 1})
    assert again.restore([], "loop") == 7
    Checkpoint(None, {}).save_if_due([], 1, 1, last=True)  # without a path nothing is written
    assert [path.name for path in tmp_path.iterdir()] == ["c"]
    file.write_bytes(b"damaged")
    assert (read_note(file), read_seconds(file), read_step(file)) == ("", 0.0, 0)


def test_a_checkpoint_with_other_tensors_is_of_another_version(tmp_path):
    file, tensors = tmp_path / "c", {"a": torch.ones(2), "b": torch.zeros(3)}

    def group(**state):
        return SimpleNamespace(state=state, rngs=[], rng_states=list)

    saver = Checkpoint(file, {})
    saver.restore([group(**tensors)], "loop")
    saver.save_if_due([group(**tensors)], 7, 10, last=True)
    for other in ({"a": torch.ones(2)}, tensors | {"more": torch.zeros(2)}):
        with pytest.warns(UserWarning, match="c was written by another version: training starts from the beginning"):
            assert Checkpoint(file, {}).restore([group(**other)], "loop") == 0


def test_the_hash_of_tensors_has_their_names_types_and_shapes():
    zeros = torch.zeros(2)
    others = [{"b": zeros}, {"a": zeros.int()}, {"a": zeros[:, None]}, {"a": zeros + 1}, {"a": zeros, "b": zeros[:0]}]
    hashes = {_hash_tensors(tensors) for tensors in [{"a": zeros}, *others]}
    assert len(hashes) == 6
    assert _hash_tensors({"b": zeros, "a": zeros}) == _hash_tensors({"a": zeros, "b": zeros})
