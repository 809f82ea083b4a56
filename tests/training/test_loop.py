"""The training loop: settings that matter, history, failures."""

import pytest
import torch

from tests.helpers import DATA, StepRecorder, X, flat_weights, small_method, train_all, validate
from unweave import InputError
from unweave.methods.neural import fit_pack
from unweave.training.loop import train


def test_clip_and_bf16_change_the_weights_a_little():
    plain, short, half = (
        train_all([small_method("beta-vae", steps=50, **s)])[0] for s in ({}, {"clip": 1e-3}, {"precision": "bf16"})
    )
    assert not torch.equal(flat_weights(plain), flat_weights(short))
    assert not torch.equal(flat_weights(plain), flat_weights(half))
    torch.testing.assert_close(half.history_[-1, 1], plain.history_[-1, 1], rtol=0.05, atol=0.1)


def test_history_has_every_term_of_every_lane():
    pack = train_all([StepRecorder(steps=150, value=float(i)) for i in range(2)], strategy="stack", compiling="never")
    for i, method in enumerate(pack):
        assert list(method.history.columns) == ["step", "loss", "t", "value"]
        assert method.history["step"].tolist() == list(range(1, 151))
        assert method.history["t"].tolist() == list(range(150))
        assert (method.history["value"] == i).all()


def test_long_histories_are_means_over_windows():
    (method,) = train_all([StepRecorder(steps=2_500, batch_size=2)])
    assert len(method.history) == 834
    assert method.history["step"].iloc[[0, -1]].tolist() == [3, 2_500]
    assert method.history["t"].iloc[[0, 1, -1]].tolist() == [1, 4, 2_499]


class Exploding(StepRecorder):
    """A loss that is infinite from a step on."""

    def loss(self, net, batch):
        t = (batch["progress"] * self.steps).round()
        return {"loss": net(batch["x"]).square().mean() / torch.where(t >= self.value, 0.0, 1.0)}


def test_a_lane_that_is_not_finite_is_named_and_does_not_affect_the_others():
    pack = validate([Exploding(steps=120, value=50.0, seed=4), Exploding(steps=120, value=1e9, seed=5)])
    for strategy in ("loop", "stack"):
        failed, fine = train(pack, DATA, strategy=strategy, compiling="never")
        assert fine is None
        assert failed.step == 51
        assert "exploding is not finite from step 51" in failed.text()
        assert "value=50.0" in failed.text()
        assert "seed=4" in failed.text()
        solo = Exploding(steps=120, value=1e9, seed=5)
        train_all([solo])
        torch.testing.assert_close(flat_weights(pack[1]), flat_weights(solo))
    assert fit_pack(pack, DATA)[0] == failed
    with pytest.raises(InputError, match="exploding is not finite from step 51"):
        Exploding(steps=120, value=50.0).fit(X)


def test_a_pack_of_failures_stops_early():
    seen = []
    pack = validate([Exploding(steps=10_000, value=50.0)])
    (failure,) = train(pack, DATA, callback=seen.append)
    assert failure.step == 51
    assert len(seen) == 1
