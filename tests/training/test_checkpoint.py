"""Checkpoints: a stopped run resumes, a foreign or damaged file is ignored."""

import time

import pytest
import torch
from safetensors import safe_open

from tests.helpers import DATA, StopTraining, X, flat_weights, small_method, stop_at, train_all, validate
from unweave.data.conversion import as_data
from unweave.methods import FactorVAE
from unweave.training.checkpoint import Checkpoint, read_seconds
from unweave.training.loop import train


@pytest.mark.parametrize("strategy", ["loop", "stack"])
def test_a_stopped_run_resumes_and_ends_bitwise_the_same(tmp_path, strategy):
    file = tmp_path / "pack.checkpoint"

    def pack():
        return validate([FactorVAE(steps=350, latent_dim=2, layers=(8,), critic=(8,), seed=i) for i in range(2)])

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
