"""The training loop: settings that matter, history, failures, and progress reports to a callback."""

import numpy as np
import pytest
import torch
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from tests.helpers import DATA, StepRecorder, X, flat_weights, small_method, train_all, validate
from unweave import InputError
from unweave.methods import GIN, PCA
from unweave.methods.neural import fit_pack
from unweave.training.loop import Progress, train


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


# Progress -------------------------------------------------------------------------------------------------------------


def test_a_callback_gets_every_term_of_every_lane():
    reports: list[Progress] = []
    pack = [small_method("factor-vae", steps=250, seed=i, gamma=1.0 + i) for i in range(3)]
    assert fit_pack(pack, DATA, callback=reports.append) == [None] * 3
    assert [report.step for report in reports] == [100, 200, 250]
    for report in reports:
        assert list(report.terms) == pack[0].terms_
        rows = [method.history[method.history["step"] == report.step].iloc[0] for method in pack]
        for term, values in report.terms.items():
            assert all(type(value) is float for value in values)
            assert values == pytest.approx([row[term] for row in rows], rel=1e-6)
        assert report.loss == pytest.approx(np.mean(report.terms["loss"]))


def test_fit_passes_the_callback_through_and_prints_nothing(capsys):
    reports: list[Progress] = []
    small_method("beta-vae").fit(X, callback=reports.append)
    steps = Pipeline([("scale", StandardScaler()), ("method", small_method("beta-vae"))])
    steps.fit(X, method__callback=reports.append)
    small_method("beta-vae").fit_transform(X, callback=reports.append)
    assert [(report.step, report.steps) for report in reports] == [(30, 30)] * 3
    assert capsys.readouterr() == ("", "")


def test_every_restart_is_a_lane():
    reports: list[Progress] = []
    GIN(steps=3, restarts=4, blocks=1, width=4).fit(X, np.arange(200) % 2, callback=reports.append)
    assert {len(values) for values in reports[0].terms.values()} == {4}


def test_a_method_without_steps_never_calls_the_callback():
    reports: list[Progress] = []
    PCA(latent_dim=2).fit(X, callback=reports.append)
    assert reports == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_exception_in_a_callback_leaves_a_checkpoint_to_resume_from(tmp_path, error):
    def stop(progress):
        if progress.step == 600:
            raise error

    path = tmp_path / "run.checkpoint"
    whole, stopped = (small_method("beta-vae", steps=700) for _ in range(2))
    fit_pack([whole], DATA)
    with pytest.raises(error):
        fit_pack([stopped], DATA, checkpoint=path, callback=stop)
    reports: list[Progress] = []
    fit_pack([stopped], DATA, checkpoint=path, callback=reports.append)
    assert [report.step for report in reports] == [600, 700]
    assert torch.equal(stopped.history_, whole.history_)


def test_the_loss_of_a_report_leaves_out_lanes_that_are_not_finite():
    progress = Progress(10, 20, {"loss": [1.0, float("nan"), 3.0, float("inf")]}, 1.0, "loop")
    assert progress.loss == 2.0
    assert np.isnan(progress._replace(terms={"loss": [float("nan")]}).loss)
    assert progress.text("beta-vae") == "beta-vae: step 10 of 20, loss 2, 1.0 steps/s (loop), 0:10 left"


def test_progress_has_step_loss_speed_and_time_left():
    seen = []
    train_all([StepRecorder(steps=250)], callback=seen.append)
    assert [p.step for p in seen] == [100, 200, 250]
    assert all(np.isfinite(p.loss) and p.steps_per_second > 0 for p in seen)
    assert {p.strategy for p in seen} == {"loop"}
    text = Progress(100, 1_000, {"loss": [3.14159]}, 10.0, "stack, compiled").text("beta-vae")
    assert text == "beta-vae: step 100 of 1,000, loss 3.142, 10 steps/s (stack, compiled), 1:30 left"


def test_slow_steps_are_reported_within_a_chunk(monkeypatch):
    seen, fast = [], train_all([StepRecorder(steps=120)])[0]
    monkeypatch.setattr("unweave.training.loop.SECONDS_BETWEEN_REPORTS", 0)
    (slow,) = train_all([StepRecorder(steps=120)], callback=seen.append)
    assert [p.step for p in seen] == [*range(1, 121)]
    assert slow.history.equals(fast.history)
