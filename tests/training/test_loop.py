"""The trainer: a lane is its solo run, a killed run is the run, a failed lane is alone."""

import json
import time

import numpy as np
import pytest
import torch
from safetensors import safe_open
from torch import nn

from tests.helpers import NETWORKS
from tests.helpers import small_method as made
from unweave import InputError, catalog
from unweave.data.arrays import as_data
from unweave.methods import GIN, BetaTCVAE, BetaVAE, FactorVAE, neural
from unweave.methods.neural import Lane, Neural, fit_pack
from unweave.nn.conv import conv_decoder, conv_encoder
from unweave.nn.conv_matmul import StridedConvMatmul, TransposedConvMatmul, replace_convs
from unweave.training import step
from unweave.training import strategies as engine
from unweave.training.adam import Adam, adam, assign_optimizers, clip_gradients
from unweave.training.callbacks import Progress
from unweave.training.checkpoint import Checkpoint, read_seconds
from unweave.training.loop import initialize_network, train
from unweave.training.strategies import choose_runner

rng = np.random.default_rng(0)
Z = rng.uniform(-1, 1, (200, 2))
X = np.concatenate([Z, np.sin(2 * Z), Z**2], 1).astype(np.float32)
Y = rng.integers(0, 3, 200)
DATA = as_data(X, Y)
IMAGES = as_data(rng.uniform(size=(100, 1, 16, 16)).astype(np.float32))


def ready(pack, data=DATA):
    for method in pack:
        method.validate_settings(data)
    return pack


def trained(pack, data=DATA, **settings):
    assert train(ready(pack, data), data, **settings) == [None] * len(pack)
    return pack


def weights(method):
    return torch.cat([p.flatten() for p in method.net_.parameters()])


# Packs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NETWORKS)
def test_a_lane_of_a_pack_is_its_solo_run(name):
    settings = [{"seed": 0}, {"seed": 1, "lr": 2e-3}, {"seed": 2, "lr": 3e-3}]
    # In the game of a GAN, rounding errors grow tenfold in two steps; flows and translators take long.
    steps = 20 if name == "infogan-cr" else 60 if "gin" in name or "intervention" in name else 200
    pack = trained([made(name, steps=steps, **s) for s in settings], strategy="stack", compiling="never")
    for i in (0, 1):
        (solo,) = trained([made(name, steps=steps, **settings[i])], compiling="never")
        np.testing.assert_allclose(pack[i].transform(X), solo.transform(X), atol=1e-5)
        torch.testing.assert_close(pack[i].history_, solo.history_, atol=1e-3, rtol=1e-4)
    assert np.abs(pack[0].transform(X) - pack[1].transform(X)).max() > 1e-3


@pytest.mark.parametrize("name", NETWORKS)
def test_every_loss_is_one_graph(name, monkeypatch):
    """The compiler's first half, which a graph break would stop; its second half is tested below."""
    monkeypatch.setattr(step, "BACKEND", "eager")
    torch._dynamo.reset()
    (method,) = trained([made(name, steps=3)], compiling="always")
    assert method.trained_ == "loop, compiled on cpu"
    (plain,) = trained([made(name, steps=3)], compiling="never")
    np.testing.assert_allclose(method.transform(X), plain.transform(X), atol=1e-6)


def test_what_the_compiler_makes_of_a_pack_is_the_same():
    settings = {"steps": 200, "latent_dim": 2, "layers": (8,), "batch_size": 16}
    try:
        pack = trained([BetaVAE(seed=i, beta=1.0 + i, **settings) for i in range(3)], compiling="always")
    except Exception as error:
        pytest.skip(f"no compiler here: {str(error).splitlines()[0]}")
    assert pack[0].trained_ == "stack, compiled on cpu"
    (solo,) = trained([BetaVAE(seed=2, beta=3.0, **settings)], compiling="never")
    np.testing.assert_allclose(pack[2].transform(X), solo.transform(X), atol=1e-5)


def test_convolutions_in_a_stack_are_products_and_the_same():
    pack = [BetaVAE(seed=i, steps=20, widths=(4, 6), hidden=(8,), latent_dim=2) for i in range(2)]
    trained(pack, IMAGES, strategy="stack", compiling="never")
    (solo,) = trained([BetaVAE(seed=1, steps=20, widths=(4, 6), hidden=(8,), latent_dim=2)], IMAGES)
    x = IMAGES.x.numpy()
    np.testing.assert_allclose(pack[1].transform(x), solo.transform(x), atol=1e-5)


@pytest.mark.parametrize("shape", [(1, 64, 64), (3, 28, 28), (2, 8, 16)])
def test_products_are_convolutions(shape):
    x, z = torch.rand(3, *shape), torch.rand(3, 5)
    for net, inputs in ((conv_encoder(shape, 4), x), (conv_decoder(5, shape), z)):
        other = replace_convs(net)
        assert any(isinstance(m, StridedConvMatmul | TransposedConvMatmul) for m in other.modules())
        torch.testing.assert_close(other(inputs), net(inputs), atol=1e-6, rtol=1e-5)
        for a, b in zip(
            torch.autograd.grad(other(inputs).square().sum(), list(other.parameters())),
            torch.autograd.grad(net(inputs).square().sum(), list(net.parameters())),
            strict=True,
        ):
            torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(("a", "b"), [(1, 8), (3, 4), (8, 2), (5, 1)])
@pytest.mark.parametrize("size", [(2, 2), (7, 10), (9, 5)])
def test_products_fit_any_side_and_any_width(a, b, size):
    x = torch.randn(2, a, *size, dtype=torch.float64)
    for layer in (nn.Conv2d(a, b, 4, 2, 1).double(), nn.ConvTranspose2d(a, b, 4, 2, 1).double()):
        product = replace_convs(nn.Sequential(layer))
        assert isinstance(product[0], StridedConvMatmul | TransposedConvMatmul)
        torch.testing.assert_close(product(x), layer(x))


def test_products_keep_to_the_precision_that_a_convolution_has():
    net = nn.Sequential(nn.Conv2d(4, 4, 4, 2, 1), nn.ConvTranspose2d(4, 4, 4, 2, 1))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert replace_convs(net)(torch.rand(2, 4, 8, 8)).dtype == net(torch.rand(2, 4, 8, 8)).dtype == torch.bfloat16


def test_a_convolution_that_products_do_not_fit_stays_one():
    wider = nn.ConvTranspose2d(2, 3, 4, 2, 1, output_padding=1)
    assert type(replace_convs(nn.Sequential(wider))[0]) is nn.ConvTranspose2d
    x = torch.rand(1, 2, 5, 5)
    layer = nn.ConvTranspose2d(2, 3, 4, 2, 1)
    asked = replace_convs(nn.Sequential(layer))[0](x, output_size=[11, 11])
    torch.testing.assert_close(asked, layer(x, output_size=[11, 11]))


def test_a_pack_of_two_signatures_is_refused():
    with pytest.raises(InputError, match="differ in seed and lanes alone"):
        train(ready([made("beta-vae"), made("beta-vae", batch_size=8)]), DATA)
    assert made("beta-vae", beta=1.0).signature() == made("beta-vae", beta=2.0, lr=1.0, seed=3).signature()
    assert made("beta-vae").signature() != made("beta-vae", layers=(9,)).signature()


def test_strategies_and_devices_that_are_not_there_are_named():
    pack = ready([made("beta-vae")])
    with pytest.raises(InputError, match="needs a CUDA device"):
        train(pack, DATA, strategy="fork")
    with pytest.raises(InputError, match="strategy='heap'"):
        train(pack, DATA, strategy="heap")
    with pytest.raises(InputError, match="device='cuda:9' cannot be used"):
        made("beta-vae", device="cuda:9").fit(X)
    with pytest.raises(InputError, match="steps=0"):
        made("beta-vae", steps=0).fit(X)


def test_short_runs_are_not_compiled_and_long_ones_are(monkeypatch):
    pack = ready([made("beta-vae")])
    net = [initialize_network(pack[0])]
    monkeypatch.setattr(step, "BACKEND", "eager")
    short = choose_runner(pack, net, DATA, window=1, compiling="auto", strategy="auto")
    assert short.name == "loop"
    long = ready([made("beta-vae", steps=10**6, seed=i) for i in range(2)])
    engine = choose_runner(
        long, [initialize_network(m) for m in long], DATA, window=1_000, compiling="auto", strategy="auto"
    )
    assert engine.name == "stack, compiled"


def test_without_a_compiler_training_goes_on_and_says_so(monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("no compiler was found\nmore text")

    monkeypatch.setattr(step.torch, "compile", broken)
    step._COMPILED.clear()
    pack = ready([made("beta-vae", steps=10**6)])
    with pytest.warns(RuntimeWarning, match="cannot be compiled here .* no compiler was found$"):
        engine = choose_runner(
            pack, [initialize_network(pack[0])], DATA, window=1_000, compiling="auto", strategy="auto"
        )
    assert engine.name == "loop"
    with pytest.raises(RuntimeError, match="no compiler"):
        choose_runner(pack, [initialize_network(pack[0])], DATA, window=1_000, compiling="always", strategy="auto")


# The optimizer --------------------------------------------------------------------------------------------------


def test_adam_is_that_of_torch_by_prefix():
    torch.manual_seed(0)
    net = nn.ModuleDict({"body": nn.Linear(3, 2), "critic": nn.Linear(2, 1)})
    theirs = torch.optim.Adam(
        [
            {"params": net["body"].parameters(), "lr": 1e-2},
            {"params": net["critic"].parameters(), "lr": 1e-3, "betas": (0.5, 0.9)},
        ]
    )
    ours = {k: p.detach().clone() for k, p in net.named_parameters()}
    m, v = ({k: torch.zeros_like(p) for k, p in ours.items()} for _ in range(2))
    rates = {"": Adam(1e-2), "critic.": Adam(torch.tensor(1e-3), (0.5, 0.9))}
    owner = assign_optimizers(ours, rates)
    assert set(owner.values()) == {"", "critic."}
    for t in range(1, 6):
        x = torch.randn(4, 3)
        theirs.zero_grad()
        net["critic"](net["body"](x)).square().sum().backward()
        grads = {k: p.grad.clone() for k, p in net.named_parameters()}
        theirs.step()
        adam(ours, grads, m, v, torch.tensor(float(t)), rates, owner)
        for k, p in net.named_parameters():
            torch.testing.assert_close(ours[k], p.detach(), atol=1e-7, rtol=1e-5)


def test_a_stack_has_a_learning_rate_for_every_lane():
    p = {"w": torch.zeros(2, 3, 3)}
    m, v = {"w": torch.zeros(2, 3, 3)}, {"w": torch.zeros(2, 3, 3)}
    rates = {"": Adam(torch.tensor([0.1, 0.5]))}
    adam(p, {"w": torch.ones(2, 3, 3)}, m, v, torch.tensor(1.0), rates, {"w": ""})
    torch.testing.assert_close(p["w"][:, 0, 0], torch.tensor([-0.1, -0.5]))  # the first step has the size of lr


def test_clipping_is_by_the_norm_of_all_weights_of_a_lane():
    grads = {"a": torch.tensor([[3.0], [0.3]]), "b": torch.tensor([[4.0], [0.4]])}
    short = clip_gradients(grads, 1.0, lead=1)
    torch.testing.assert_close(torch.cat([short["a"], short["b"]], 1), torch.tensor([[0.6, 0.8], [0.3, 0.4]]))
    alone = clip_gradients({k: g[0] for k, g in grads.items()}, 1.0, lead=0)
    torch.testing.assert_close(alone["b"], torch.tensor([0.8]))


def test_the_critic_learns_by_its_own_rate():
    (a,) = trained([made("factor-vae", steps=5, critic_lr=0.0)])
    start = initialize_network(a)
    same = [torch.equal(p, q) for p, q in zip(a.net_.critic.parameters(), start.critic.parameters(), strict=True)]
    assert all(same)
    assert not torch.equal(next(a.net_.encoder.parameters()), next(start.encoder.parameters()))


def test_clip_and_bf16_are_heard():
    plain, short, half = (
        trained([made("beta-vae", steps=50, **s)])[0] for s in ({}, {"clip": 1e-3}, {"precision": "bf16"})
    )
    assert not torch.equal(weights(plain), weights(short))
    assert not torch.equal(weights(plain), weights(half))
    torch.testing.assert_close(half.history_[-1, 1], plain.history_[-1, 1], rtol=0.05, atol=0.1)


# History --------------------------------------------------------------------------------------------------------


class Counting(Neural):
    """A loss whose terms tell the step they were computed at."""

    paper = "none"
    expected: Lane = 2.0
    """a lane"""

    def build(self, shape):
        return nn.Linear(shape[0], self.latent_dim)

    def loss(self, net, batch):
        t = (batch["progress"] * self.steps).round()
        return {"loss": net(batch["x"]).square().mean(), "t": t, "expected": 0 * t + self.expected}

    def encode(self, x):
        return self.apply_network(lambda net, part: net(part), x)


class Exploding(Counting):
    """A loss that is infinite from a step on."""

    def loss(self, net, batch):
        t = (batch["progress"] * self.steps).round()
        return {"loss": net(batch["x"]).square().mean() / torch.where(t >= self.expected, 0.0, 1.0)}


def test_history_has_every_term_of_every_lane():
    pack = trained([Counting(steps=150, expected=float(i)) for i in range(2)], strategy="stack", compiling="never")
    for i, method in enumerate(pack):
        assert list(method.history.columns) == ["step", "loss", "t", "expected"]
        assert method.history["step"].tolist() == list(range(1, 151))
        assert method.history["t"].tolist() == list(range(150))
        assert (method.history["expected"] == i).all()


def test_long_histories_are_means_over_windows():
    (method,) = trained([Counting(steps=2_500, batch_size=2)])
    assert len(method.history) == 834
    assert method.history["step"].iloc[[0, -1]].tolist() == [3, 2_500]
    assert method.history["t"].iloc[[0, 1, -1]].tolist() == [1, 4, 2_499]


def test_progress_tells_step_loss_speed_and_time_left():
    seen = []
    trained([Counting(steps=250)], callback=seen.append)
    assert [p.step for p in seen] == [100, 200, 250]
    assert all(np.isfinite(p.loss) and p.steps_per_second > 0 for p in seen)
    assert {p.strategy for p in seen} == {"loop"}
    text = Progress(100, 1_000, {"loss": [3.14159]}, 10.0, "stack, compiled").text("beta-vae")
    assert text == "beta-vae: step 100 of 1,000, loss 3.142, 10 steps/s (stack, compiled), 1:30 left"


def test_slow_steps_are_told_of_before_their_chunk_is_over(monkeypatch):
    seen, fast = [], trained([Counting(steps=120)])[0]
    monkeypatch.setattr("unweave.training.loop.SECONDS_BETWEEN_REPORTS", 0)
    (slow,) = trained([Counting(steps=120)], callback=seen.append)
    assert [p.step for p in seen] == [*range(1, 121)]
    assert slow.history.equals(fast.history)


def test_the_strategy_can_be_chosen_for_all(monkeypatch):
    seen = []
    monkeypatch.setenv("UNWEAVE_STRATEGY", "stack")
    trained([Counting(steps=20)], callback=seen.append)
    assert seen[-1].strategy == "stack"
    monkeypatch.setenv("UNWEAVE_STRATEGY", "pile")
    with pytest.raises(InputError, match="strategy='pile': expected 'auto', 'loop', 'stack' or 'fork'"):
        trained([Counting(steps=20)])


def test_a_lane_that_is_not_finite_is_named_and_leaves_the_others_alone():
    pack = ready([Exploding(steps=120, expected=50.0, seed=4), Exploding(steps=120, expected=1e9, seed=5)])
    for strategy in ("loop", "stack"):
        failed, fine = train(pack, DATA, strategy=strategy, compiling="never")
        assert fine is None
        assert failed.step == 51
        assert "exploding is not finite from step 51" in failed.text()
        assert "expected=50.0" in failed.text()
        assert "seed=4" in failed.text()
        solo = Exploding(steps=120, expected=1e9, seed=5)
        trained([solo])
        torch.testing.assert_close(weights(pack[1]), weights(solo))
    assert fit_pack(pack, DATA)[0] == failed
    with pytest.raises(InputError, match="exploding is not finite from step 51"):
        Exploding(steps=120, expected=50.0).fit(X)


def test_a_pack_of_failures_stops_early():
    seen = []
    pack = ready([Exploding(steps=10_000, expected=50.0)])
    (failure,) = train(pack, DATA, callback=seen.append)
    assert failure.step == 51
    assert len(seen) == 1


class Shapeless(Counting):
    """A loss that forgets to average."""

    def loss(self, net, batch):
        return {"loss": net(batch["x"]).square()}


def test_a_loss_that_is_no_scalar_is_refused():
    with pytest.raises(InputError, match=r"shapeless.loss gave \{'loss': \(64, 10\)\}: expected scalars"):
        Shapeless(steps=3).fit(X)


# Checkpoints ----------------------------------------------------------------------------------------------------


class StopError(BaseException):
    """In the place of a kill."""


def stop_at(step):
    def report(progress):
        if progress.step >= step:
            raise StopError

    return report


@pytest.mark.parametrize("strategy", ["loop", "stack"])
def test_a_stopped_run_goes_on_and_ends_the_same_to_the_bit(tmp_path, strategy):
    file = tmp_path / "pack.checkpoint"

    def pack():
        return ready([FactorVAE(steps=350, latent_dim=2, layers=(8,), critic=(8,), seed=i) for i in range(2)])

    whole = trained(pack(), strategy=strategy, compiling="never")
    parts = pack()
    for stop in (200, 300):
        with pytest.raises(StopError):
            train(parts, DATA, checkpoint=file, every=100, callback=stop_at(stop), strategy=strategy, compiling="never")
    seen = []
    train(parts, DATA, checkpoint=file, callback=seen.append, strategy=strategy, compiling="never")
    assert seen[0].step > 200
    for a, b in zip(whole, parts, strict=True):
        assert torch.equal(weights(a), weights(b))
        assert torch.equal(a.history_, b.history_)
    again = pack()  # the file stays: what was trained can be had once more
    train(again, DATA, checkpoint=file, callback=seen.append, strategy=strategy, compiling="never")
    assert torch.equal(weights(again[0]), weights(whole[0]))


def test_the_seconds_before_a_stop_count_too(tmp_path):
    file, stop = tmp_path / "a.checkpoint", stop_at(300)

    def slow(progress):
        time.sleep(1.0 if progress.step == 100 else 0.0)
        stop(progress)

    taken = [read_seconds(file)]
    for report in (slow, stop_at(400)):
        with pytest.raises(StopError):
            train(ready([made("beta-vae", steps=500)]), DATA, checkpoint=file, every=100, callback=report)
        taken.append(read_seconds(file))
    assert taken[0] == 0 and 1 <= taken[1] < taken[2]


def test_a_slow_pack_is_saved_by_the_clock(tmp_path, monkeypatch):
    file = tmp_path / "slow.checkpoint"
    with pytest.raises(StopError):
        train(ready([made("beta-vae", steps=300)]), DATA, checkpoint=file, callback=stop_at(200))
    assert not file.exists(), "five hundred steps are not over"
    monkeypatch.setattr("unweave.training.checkpoint.LONG", 0.0)
    with pytest.raises(StopError):
        train(ready([made("beta-vae", steps=300)]), DATA, checkpoint=file, callback=stop_at(200))
    seen = []
    train(ready([made("beta-vae", steps=300)]), DATA, checkpoint=file, callback=seen.append)
    assert seen[0].step == 200, "from the first hundred on"


def test_a_checkpoint_of_another_run_or_a_damaged_one_is_not_believed(tmp_path):
    file = tmp_path / "a.checkpoint"
    with pytest.raises(StopError):
        train(ready([made("beta-vae", steps=300)]), DATA, checkpoint=file, every=100, callback=stop_at(200))
    with pytest.warns(UserWarning, match="another run"):
        trained([made("beta-vae", steps=200)], checkpoint=file)
    (fresh,) = trained([made("beta-vae", steps=300)])
    blob = file.read_bytes()
    for damaged in (blob[: len(blob) // 2], b"", b"\xff" * 100):
        file.write_bytes(damaged)
        with pytest.warns(UserWarning, match="starting anew"):
            (method,) = trained([made("beta-vae", steps=300)], checkpoint=file)
        assert torch.equal(weights(method), weights(fresh))


def test_a_checkpoint_says_how_its_run_was_trained(tmp_path):
    file = tmp_path / "c"
    trained([made("beta-vae", steps=100)], checkpoint=file)
    with safe_open(file, "pt") as kept:
        assert kept.metadata()["how"] == "loop"
    assert Checkpoint(file, "another run").how() == ""
    with pytest.warns(UserWarning, match="trained another way: starting anew"):
        trained([made("beta-vae", steps=100)], checkpoint=file, strategy="stack", compiling="never")


def test_saving_takes_a_small_share_of_the_time(tmp_path):
    keeper = Checkpoint(tmp_path / "c", "about")
    keeper.cost = 3600.0
    keeper.keep([], 10_000, 1, last=False)
    assert not (tmp_path / "c").exists()
    keeper.keep([], 10_000, 1, last=True)
    assert (tmp_path / "c").exists()


# The race of strategies on a GPU, with a clock of our own --------------------------------------------------------


@pytest.fixture
def race(monkeypatch):
    """Which engine `_on_gpu` makes when steps take these seconds, and which it tried; some fail."""
    monkeypatch.setattr(engine, "_WINNERS", {})

    def run(clock, *, steps=10_000, models=4, convolutions=True, compiling="auto", strategy="auto"):
        tried = []

        def timed(made):
            tried.append(made)
            if isinstance(clock[made], Exception):
                raise clock[made]
            return clock[made]

        monkeypatch.setattr(engine, "_timed", timed)
        made = engine._on_gpu(
            lambda strategy, compiled: (strategy, compiled),
            ("key", "", "", models),
            steps,
            convolutions,
            compiling,
            strategy,
        )
        return made, tried

    return run


FORK, FORKED, STACKED = ("fork", False), ("fork", True), ("stack", True)


def test_a_long_run_takes_the_fastest_strategy_and_remembers_it(race):
    clock = {FORK: 0.1, FORKED: 0.05, STACKED: 0.02}
    assert race(clock) == (STACKED, [FORK, FORKED, STACKED])
    assert race(clock) == (STACKED, [])


def test_a_run_that_is_soon_over_is_not_raced_or_not_even_timed(race):
    assert race({FORK: 0.001}) == (FORK, [FORK])
    assert race({FORK: 0.001}) == (FORK, [])  # remembered too
    assert race({}, steps=900, models=128) == (FORK, [])
    assert race({}, steps=900, convolutions=False) == (("stack", False), [])


def test_who_asks_for_a_compiler_or_for_none_is_obeyed(race):
    assert race({FORKED: 0.001, STACKED: 0.0001}, compiling="always") == (FORKED, [FORKED])
    assert race({FORKED: 1.0, STACKED: 0.1}, compiling="always", models=5) == (STACKED, [FORKED, STACKED])
    assert race({FORK: 1.0}, compiling="never") == (FORK, [FORK])
    assert race({}, strategy="stack", compiling="never") == (("stack", False), [])


def test_a_strategy_that_fails_is_left_out_and_too_little_memory_is_told_as_such(race):
    broken = RuntimeError("no rule for this")
    with pytest.warns(RuntimeWarning, match="'fork' was left out: no rule"):
        assert race({FORK: broken, FORKED: broken, STACKED: 1.0})[0] == STACKED
    with pytest.warns(RuntimeWarning), pytest.raises(InputError, match="no strategy works on this device"):
        race({FORK: broken, FORKED: broken, STACKED: broken}, models=5)
    full = RuntimeError("capture failed")
    full.__context__ = torch.OutOfMemoryError("CUDA out of memory")
    with pytest.warns(RuntimeWarning), pytest.raises(torch.OutOfMemoryError):
        race({FORK: full}, models=6)


def test_a_race_ends_where_the_gpu_is_lost(race, monkeypatch):
    monkeypatch.setattr(engine, "device_lost", lambda error: "illegal" in str(error))
    with pytest.raises(RuntimeError, match="illegal memory access"):  # and no warning that a strategy was left out
        race({FORK: RuntimeError("an illegal memory access")})


# Studies --------------------------------------------------------------------------------------------------------


def test_runs_of_one_signature_are_trained_together_and_a_failure_costs_itself_alone(tmp_path):
    from unweave.datasets import SwissRoll
    from unweave.experiments.run import Run
    from unweave.experiments.study import execute, packs, sweep

    small = BetaVAE(steps=40, latent_dim=2, layers=(8,), batch_size=16)
    runs = sweep(SwissRoll(points=100), small, beta=[1.0, 4.0], seed=[0, 1])
    runs += [Run(SwissRoll(points=100), BetaTCVAE(steps=40, latent_dim=2, layers=(8,), batch_size=16))]
    runs += sweep(SwissRoll(points=100), small, lr=[1e30])
    assert sorted(map(len, packs(runs))) == [1, 5]
    assert sorted(map(len, packs(runs, workers=2))) == [1, 2, 3]  # six runs: no pack of more than three
    assert sorted(map(len, packs(runs, workers=50))) == [1] * 6
    again = sweep(SwissRoll(points=100), GIN(steps=40, restarts=5), seed=range(60))
    assert list(map(len, packs(again))) == [25, 25, 10]  # 125 models at most
    with pytest.warns(RuntimeWarning, match=r"beta-vae is not finite from step \d.*lr=1e\+30"):
        table = execute(runs, tmp_path, metrics=["mcc"])
    assert len(table) == 5
    alone = execute(runs[1:2], tmp_path / "alone", metrics=["mcc"])
    assert float(alone["mcc"].iloc[0]) == pytest.approx(float(table["mcc"].iloc[1]), abs=1e-5)
    assert not list(tmp_path.glob(".*.checkpoint"))


def test_a_crash_while_scoring_costs_no_training(tmp_path, monkeypatch):
    from unweave.datasets import SwissRoll
    from unweave.experiments import runner as perform
    from unweave.experiments import study

    small = BetaVAE(steps=40, latent_dim=2, layers=(8,), batch_size=16)
    runs = study.sweep(SwissRoll(points=100), small, seed=range(3))
    real, calls = perform.write_run, []

    def crashing(run, *rest):
        calls.append(run)
        if len(calls) == 2:
            raise RuntimeError("a fault")
        return real(run, *rest)

    monkeypatch.setattr(perform, "write_run", crashing)
    with pytest.warns(RuntimeWarning, match="failed: RuntimeError: a fault"):
        assert len(study.execute(runs, tmp_path, metrics=["mcc"])) == 2  # the others go on
    monkeypatch.setattr(perform, "write_run", real)
    seen = []
    monkeypatch.setattr(perform, "bar", lambda title: _Watching(seen.append))
    assert len(study.execute(runs, tmp_path, metrics=["mcc"])) == 2  # what failed is tried again when you say so
    assert len(study.execute(runs, tmp_path, metrics=["mcc"], retry=True)) == 3
    assert seen == []  # not one step more


class _Watching:
    def __init__(self, report):
        self.report = report

    def __enter__(self):
        return self.report

    def __exit__(self, *_):
        return None


def test_the_same_settings_make_the_same_recipe():
    recipe = made("beta-vae", seed=3).recipe()
    assert recipe["name"] == "beta-vae"
    assert recipe["layers"] == [8]
    assert json.loads(json.dumps(recipe)) == recipe
    assert set(catalog.methods()["beta-vae"].lane_names()) == {"lr", "beta"}


# Found by review ------------------------------------------------------------------------------------------------


def test_a_single_failure_is_named_too(tmp_path):
    from unweave.datasets import SwissRoll
    from unweave.experiments.run import Run
    from unweave.experiments.study import execute

    run = Run(SwissRoll(points=100), BetaVAE(steps=40, lr=1e30, latent_dim=2, layers=(8,)))
    with pytest.warns(RuntimeWarning, match="beta-vae is not finite"):
        assert len(execute([run], tmp_path, metrics=["mcc"])) == 0


@pytest.mark.parametrize("finished", [0, 1])
def test_a_grown_sweep_goes_on_where_its_parts_were_stopped(tmp_path, monkeypatch, finished):
    """One seed finished or not, two more stopped half-way, a fourth added: nothing is trained twice."""
    from unweave.datasets import SwissRoll
    from unweave.experiments import runner as perform
    from unweave.experiments import study

    small = BetaVAE(steps=1_200, latent_dim=2, layers=(8,), batch_size=8)
    seeds = study.sweep(SwissRoll(points=100), small, seed=range(4))
    study.execute(seeds[:finished], tmp_path, metrics=["mcc"])
    monkeypatch.setattr(perform, "bar", lambda title: _Watching(stop_at(800)))
    with pytest.raises(StopError):
        study.execute(seeds[:3], tmp_path, metrics=["mcc"])
    seen = []
    monkeypatch.setattr(perform, "bar", lambda title: _Watching(seen.append))
    assert len(study.execute(seeds, tmp_path, metrics=["mcc"])) == 4
    assert sum(p.step == 100 for p in seen) == 1  # the fourth alone began at the beginning
    assert not list(tmp_path.glob(".*.checkpoint"))


class Shifted(Counting):
    """Uses what it prepared: a tensor."""

    def prepare(self, data):
        self.mean_ = data.x.mean(0)

    def loss(self, net, batch):
        off = (batch["x"].mean(0) - self.mean_).abs().max()
        return {"loss": net(batch["x"]).square().mean(), "off": off}


class Seedy(Counting):
    """Prepares something that depends on the seed."""

    def prepare(self, data):
        self.w_ = float(self.seed)


def test_a_compiled_step_is_not_used_for_other_data_or_another_class(monkeypatch):
    monkeypatch.setattr(step, "BACKEND", "eager")
    for data in (DATA, as_data(X + 50)):
        (method,) = trained([Shifted(steps=3)], data, compiling="always")
        assert method.history["off"].max() < 2
    losses = []
    for target in (0.0, 100.0):

        class Redefined(Counting):
            """The same name, another loss."""

            def loss(self, net, batch, target=target):
                return {"loss": (net(batch["x"]) - target).square().mean()}

        (method,) = trained([Redefined(steps=2)], compiling="always")
        losses.append(method.history["loss"].iloc[0])
    assert losses[1] > 1_000 * losses[0]


def test_lanes_that_prepare_differently_are_no_pack():
    with pytest.raises(InputError, match="prepare set different values in a pack"):
        train(ready([Seedy(seed=1, steps=2), Seedy(seed=2, steps=2)]), DATA)


def test_a_checkpoint_knows_its_data(tmp_path):
    file = tmp_path / "c"
    (first,) = trained([made("beta-vae")], checkpoint=file)
    with pytest.warns(UserWarning, match="another run"):
        (second,) = trained([made("beta-vae")], as_data(X * 3 + 7), checkpoint=file)
    assert not torch.equal(weights(first), weights(second))


def test_what_failed_to_fit_is_not_fitted():
    from sklearn.exceptions import NotFittedError

    method = made("beta-vae", steps=0)
    with pytest.raises(InputError):
        method.fit(X)
    with pytest.raises(NotFittedError):
        method.transform(X)


class Tied(Counting):
    """Two names for one weight."""

    def build(self, shape):
        net = nn.ModuleDict({"a": nn.Linear(shape[0], 3, bias=False), "b": nn.Linear(shape[0], 3, bias=False)})
        net["b"].weight = net["a"].weight
        return net

    def loss(self, net, batch):
        return {"loss": (net["a"](batch["x"]) + net["b"](batch["x"]) - 1).square().mean()}

    def encode(self, x):
        return self.apply_network(lambda net, part: net["b"](part), x)


def test_tied_weights_are_trained_kept_and_saved(tmp_path):
    method = Tied(steps=20, latent_dim=3).fit(X)
    assert torch.equal(method.net_["a"].weight, method.net_["b"].weight)
    method.save(tmp_path / "m")
    np.testing.assert_array_equal(Tied.load(tmp_path / "m").transform(X), method.transform(X))


def test_rates_that_miss_their_parameters_are_named():
    with pytest.raises(InputError, match=r"no rate for the parameter 'b\.w'"):
        assign_optimizers(["a.w", "b.w"], ["a."])
    with pytest.raises(InputError, match=r"no parameter begins with 'c\.'"):
        assign_optimizers(["a.w"], ["", "c."])


def test_settings_out_of_range_are_refused():
    for settings, text in (({"clip": -1.0}, "clip=-1.0"), ({"batch_size": 0}, "batch_size=0")):
        with pytest.raises(InputError, match=text):
            made("beta-vae", **settings).fit(X)
    with pytest.raises(InputError, match="anneal=0"):
        made("annealed-vae", anneal=0.0).fit(X)
    with pytest.raises(InputError, match=r"widths=\(\)"):
        made("beta-vae", widths=()).fit(np.zeros((4, 1, 8, 8)) + np.arange(4)[:, None, None, None] / 4)


def test_many_observations_are_encoded_here_where_the_device_is_gone(monkeypatch):
    x = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
    model = BetaVAE(steps=2, layers=(8,), latent_dim=2).fit(x)
    z = model.transform(x)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(neural, "AT_ONCE", 30)  # ten rows
    model.device = "cuda:7"  # of the machine that it was trained on
    np.testing.assert_allclose(model.transform(x), z, rtol=1e-6)
