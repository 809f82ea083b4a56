"""Translation difficulty against known answers."""

import math

import numpy as np
import pytest
import torch

from unweave import InputError, Method
from unweave.data.containers import Table
from unweave.datasets import SquaresXY
from unweave.experiments.run import Run, read_run
from unweave.experiments.study import execute
from unweave.methods import PCA, BetaVAE, InterventionAutoencoder
from unweave.metrics import translation_difficulty
from unweave.metrics.contract import Scorer, variants
from unweave.metrics.translation import (
    Translator,
    _decode_with,
    _draw_pair,
    _effects,
    _feature_groups,
    _select_codes,
    _translate_by_network,
    _translate_linearly,
    _translation_losses,
)
from unweave.metrics.uncertainty import score_table

SMALL = {"steps": 3, "batch_size": 6, "layers": (8,), "discriminator_hidden": (8,), "translator": 4, "inner_steps": 2}


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def sheet():
    return np.random.default_rng(0).uniform(-1, 1, (60, 6)).astype(np.float32)


class Exact:
    """A decoder that knows the truth, up to a rotation of its codes."""

    def __init__(self, degrees):
        self.data = SquaresXY(points=300).load()
        z = self.data.sources.numpy()
        self.middle, a = z.mean(0), np.deg2rad(degrees)
        self.turn = np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])
        self.codes = (z - self.middle) @ self.turn

    def inverse_transform(self, z):
        return self.data.render(torch.as_tensor((z @ self.turn.T + self.middle).clip(0, 48)).float()).numpy()[
            ..., ::8, ::8
        ]


class Linear:
    """A decoder that is a matrix."""

    def __init__(self, matrix):
        self.matrix = matrix

    def inverse_transform(self, z):
        return z @ self.matrix


class OneWay(Method):
    """A method without a decoder, and not in the catalog."""

    def learn(self, data):
        self.mean_ = data.collect(10, rng()).x.double().mean(0)

    def encode(self, x):
        return (x - self.mean_).flatten(1)[:, 2000:2002]


@pytest.mark.parametrize("bernoulli", [False, True])
def test_losses_are_nats_per_observation_of_the_second_half(bernoulli):
    u, v = np.random.default_rng(0).uniform(0, 1, (2, 8, 2, 3))
    v[5, 0, 0] = 0.0

    def nats(target, prediction):
        p = prediction.clip(1e-4, 1 - 1e-4)
        each = -target * np.log(p) - (1 - target) * np.log(1 - p) if bernoulli else 0.5 * (target - prediction) ** 2
        return each.sum((1, 2)).mean()

    seen = []

    def translate(a, b, test, binary):
        seen.append((a.shape, b.shape, test.shape, binary))
        return test / 2

    found = _translation_losses(torch.from_numpy(u), torch.from_numpy(v), translate, bernoulli)
    test, flat = v[4:], np.full((4, 2, 3), v[4:].mean())
    np.testing.assert_allclose(found, [nats(test, w) for w in (u[4:] / 2, test, u[4:], flat)], rtol=1e-5)
    assert seen == [((4, 2, 3), (4, 2, 3), (4, 2, 3), bernoulli)]


def test_the_linear_translator_is_a_ridge_regression_between_deviations():
    u, v, test = np.random.default_rng(0).normal(size=(3, 12, 2, 2)) + 5
    U, V, T = (x.reshape(12, 4) for x in (u, v, test))
    a, b = U - U.mean(0), V - V.mean(0)
    weights = np.linalg.solve(a.T @ a + 1e-3 * (a**2).sum(1).mean() * np.eye(4), a.T @ b)
    expected = (T - U.mean(0)) @ weights + V.mean(0)
    found = _translate_linearly(*map(torch.from_numpy, (u, v, test)), False)
    np.testing.assert_allclose(found.numpy().reshape(12, 4), expected, rtol=1e-4)


def test_a_translator_learns_from_codes_with_one_value_of_a_feature():
    z = np.arange(12.0).reshape(4, 3)
    method = Linear(2 * np.eye(3))
    np.testing.assert_allclose(
        _decode_with(method, z, np.array([0, 2]), 1).numpy(), 2 * np.column_stack([[3] * 4, z[:, 1], [5] * 4])
    )
    values = np.array([[0.0, 1], [0, 1], [0, 2]])
    pairs = {_draw_pair(values, np.random.default_rng(seed)) for seed in range(30)}
    assert pairs == {(0, 2), (2, 0), (1, 2), (2, 1)}, "different values"
    effects = _effects(Linear(np.diag([1.0, 2, 0])), z, [np.array([0]), np.array([1]), np.array([2])],
                       np.random.default_rng(0))  # fmt: skip
    rng = np.random.default_rng(0)
    shuffled = [np.mean((s * (z[rng.permutation(4), j] - z[:, j])) ** 2) / 3 for j, s in enumerate([1, 2, 0])]
    np.testing.assert_allclose(effects, shuffled)


def test_rotated_codes_are_harder_to_translate():
    right, turned = (translation_difficulty(m, m.codes, translator="linear") for m in (Exact(0), Exact(30)))
    assert right.excess < 0.3 * turned.excess
    assert right.relative < 0.3 * turned.relative
    assert right.excess < right.difficulty


def test_a_network_learns_to_translate_and_starts_from_the_identity():
    m = Exact(0)
    none, some = (translation_difficulty(m, m.codes, translator="network", steps=steps, pairs=1) for steps in (0, 40))
    assert none.relative == pytest.approx(1.0, abs=1e-3)
    assert some.relative < 0.9
    again = translation_difficulty(m, m.codes, translator="network", steps=40, pairs=1)
    assert again == some


def test_idle_features_do_not_lower_the_difficulty():
    class Half(Exact):
        def inverse_transform(self, z):
            return super().inverse_transform(z[:, :2])

    m = Half(30)
    noise = np.random.default_rng(0).normal(size=m.codes.shape)
    plain = translation_difficulty(m, m.codes, translator="linear", pairs=8)
    padded = translation_difficulty(m, np.c_[m.codes, noise], translator="linear", pairs=8)
    assert padded.excess < 0.75 * plain.excess  # as the paper has it, idle codes look easy
    assert padded.relative == pytest.approx(plain.relative, rel=0.3)


@pytest.mark.parametrize("pixels", [0.3, 7.0])
@pytest.mark.parametrize("gain", [0.0, 1e-7, 1e-5])
def test_a_decoder_that_does_nothing_has_difficulty_one(pixels, gain):
    class Dead(Exact):
        def inverse_transform(self, z):
            wave = np.sin(np.arange(64)).reshape(1, 1, 8, 8) / 4
            return pixels + pixels * wave + gain * np.asarray(z)[:, :1, None, None]

    dead = translation_difficulty(Dead(0), Exact(0).codes, translator="linear")
    assert dead.relative == 1.0
    assert 0 <= translation_difficulty(Exact(0), Exact(0).codes, translator="linear").relative < 1


@pytest.mark.parametrize("other", [0.0, 1.0])
def test_a_single_code_that_holds_everything_has_difficulty_one(other):
    class Curve(Exact):
        def inverse_transform(self, z):
            t = np.asarray(z)[:, :1]
            return super().inverse_transform(np.c_[20 * np.cos(t), 20 * np.sin(3 * t)])

    generator = np.random.default_rng(0)
    codes = np.c_[generator.uniform(0, 6, 300), other * generator.normal(size=300)]  # the decoder ignores the second
    found = translation_difficulty(Curve(0), codes, translator="linear")
    assert found.excess < 0.01 and found.relative == 1.0


@pytest.mark.parametrize("weaker", [1.0, 8.0])
@pytest.mark.parametrize("binary", [False, True])
def test_two_separate_codes_are_not_taken_for_one(weaker, binary):
    class Linear:
        def inverse_transform(self, z):
            return np.asarray(z) @ np.array([[1.0, 0, 0.3, 0], [0, 1, 0, -1]]) / np.array([1.0, weaker, 1.0, weaker])

    for seed in range(20):  # of values that are drawn, some are the same
        z = np.random.default_rng(seed).normal(size=(100, 2))
        found = translation_difficulty(Linear(), np.sign(z) if binary else z, translator="linear", seed=seed)
        assert found.relative < 0.05


def test_codes_that_cannot_be_translated_are_refused():
    m = Exact(0)
    with pytest.raises(InputError, match="at least two"):
        translation_difficulty(m, m.codes, features=[[0, 1]])
    with pytest.raises(InputError, match="every code from 0 to 1"):
        translation_difficulty(m, m.codes, features=[[0], [0]])
    with pytest.raises(InputError, match="varies"):
        translation_difficulty(m, np.ones((20, 2)))
    with pytest.raises(InputError, match="no inverse_transform"):
        translation_difficulty(object(), m.codes)
    with pytest.raises(InputError, match="2 rows of codes"):
        translation_difficulty(m, m.codes[:2])
    with pytest.raises(InputError, match="translator='tree'"):
        translation_difficulty(m, m.codes, translator="tree")
    with pytest.raises(InputError, match="pairs=0"):
        translation_difficulty(m, m.codes, pairs=0)
    one_way = OneWay(latent_dim=2).fit(np.random.default_rng(0).random((20, 2100)))
    for width in (2, 2100):  # its codes, or what somebody took for them
        with pytest.raises(InputError, match="OneWay has no decoder"):
            translation_difficulty(one_way, np.random.default_rng(0).random((20, width)))


def test_a_score_without_factors_has_no_interval_and_no_chance_level():
    m = Exact(30)
    scorer = next(iter(variants(translation_difficulty, "linear").values()))
    found = score_table("translation", scorer, m, m.codes, chance=True, bootstrap=3)["translation.excess"]
    assert math.isnan(found["chance"]) and found["low"] <= found["value"] <= found["high"]


def test_methods_data_and_feature_groups_are_accepted(sheet, tmp_path):
    method = InterventionAutoencoder(**SMALL, features=2, feature_dim=2).fit(sheet)
    data = Table(torch.from_numpy(sheet), torch.zeros(60, 0), [])
    found = translation_difficulty(method, data, translator="linear")
    assert found == translation_difficulty(method, data, translator="linear", features=[[0, 1], [2, 3]])
    assert found != translation_difficulty(method, data, translator="linear", features=[[0], [1], [2], [3]])
    value = Scorer(translation_difficulty, "relative")(method, sheet)
    assert value <= 0, "smaller is better, so scikit-learn is given its negative"


def test_runs_are_scored_if_their_method_has_a_decoder(tmp_path):
    data = SquaresXY(points=60)
    small = {"steps": 2, "batch_size": 8, "widths": (4, 4), "hidden": (8,), "latent_dim": 2}
    runs = [Run(data, m) for m in (BetaVAE(**small), PCA(latent_dim=2), OneWay(latent_dim=2))]
    table = execute(runs, tmp_path, metrics=["translation-difficulty[linear]"])
    assert table["translation-difficulty[linear].relative"].notna().tolist() == [True, True, False]
    done = read_run(tmp_path / runs[0].key)
    again = execute(runs, tmp_path, metrics=["translation-difficulty[linear]", "mcc"])  # scored later, from the folder
    assert again["mcc"].notna().all() and done.scores.items() <= read_run(done.folder).scores.items()


@pytest.mark.parametrize(
    ("shape", "bernoulli", "is_convolutional"),
    [
        ((1, 8, 8), True, True),
        ((2, 4, 9), False, True),
        ((1, 3, 8), False, False),
        ((6,), True, False),
        ((5, 5), False, False),
    ],
)
def test_the_translator_is_the_identity_at_the_start_and_convolutional_for_images(shape, bernoulli, is_convolutional):
    net = Translator(shape, bernoulli)
    assert any(isinstance(m, torch.nn.Conv2d) for m in net.modules()) == is_convolutional
    u = torch.rand(3, *shape, generator=rng()) * 0.9 + 0.05
    torch.testing.assert_close(net(u), u)
    with torch.no_grad():
        net.share.fill_(2.0)
    torch.testing.assert_close(net(u), torch.sigmoid(2 * torch.logit(u)) if bernoulli else 2 * u)


def test_observations_are_selected_at_random_and_features_are_grouped():
    method = Linear(np.eye(3))
    z = np.arange(30.0).reshape(10, 3)
    chosen = _select_codes(method, z, 6, seed=1)
    assert chosen.shape == (6, 3) and chosen.dtype == np.float32
    np.testing.assert_array_equal(chosen, z[np.random.default_rng(1).permutation(10)[:6]])
    assert [g.tolist() for g in _feature_groups(method, z, None)] == [[0], [1], [2]]
    assert [g.tolist() for g in _feature_groups(method, z, [[2], [0, 1]])] == [[2], [0, 1]]
    with pytest.raises(InputError, match="has no decoder"):
        _select_codes(object(), z, 6, seed=1)


def test_the_score_is_the_share_of_what_an_exchange_changes():
    """By the parts: losses of all pairs of values, their mean, and the excess over the entropy of the targets."""
    generator = np.random.default_rng(3)
    z = generator.normal(size=(40, 2))
    method = Linear(generator.normal(size=(2, 5)))
    found = translation_difficulty(method, z, pairs=2, observations=15, seed=4)
    rows = np.random.default_rng(4)
    chosen = _select_codes(method, z, 30, 4)
    losses = []
    for group in (np.array([0]), np.array([1])):
        for a, b in [_draw_pair(chosen[:, group], rows) for _ in range(2)]:
            u, v = (_decode_with(method, chosen, group, row) for row in (a, b))
            losses.append(_translation_losses(u, v, _translate_linearly, False))
    loss, entropy, before, _ = np.mean(losses, 0)
    np.testing.assert_allclose(found, [loss, loss - entropy, (loss - entropy) / (before - entropy)], rtol=1e-5)


def test_the_translator_is_as_small_as_it_may_be():
    net, flat = Translator((1, 16, 16), True), Translator((6,), True)
    assert [m.out_channels for m in net.modules() if isinstance(m, torch.nn.Conv2d)] == [16, 16, 32, 32]
    assert [m.out_channels for m in net.modules() if isinstance(m, torch.nn.ConvTranspose2d)] == [16, 1]
    assert [m.out_features for m in net.modules() if isinstance(m, torch.nn.Linear)] == [64, 256]
    assert [m.out_features for m in flat.modules() if isinstance(m, torch.nn.Linear)] == [64, 64, 64, 6]


def test_the_network_learns_probabilities_of_binary_pixels():
    """Targets that cannot be predicted: the cross-entropy is smallest at their frequency, and not at 0 or 1."""
    u = torch.full((200, 4), 0.5)
    v = (torch.rand(200, 4, generator=rng()) < 0.3).float()
    found = _translate_by_network(u, v, u[:5], True, steps=80, seed=0, device="cpu")
    torch.testing.assert_close(found, v.mean(0).expand(5, -1), atol=0.08, rtol=0)


def test_a_single_code_that_does_anything_has_difficulty_one():
    m = Exact(0)

    class Weak(Exact):
        def inverse_transform(self, z):
            return (
                super().inverse_transform(z[:, :2] * [1, 0] + m.codes.mean(0) * [0, 1])
                + 1e-6 * z[:, 2, None, None, None]
            )

    codes = np.c_[m.codes, np.random.default_rng(0).normal(size=len(m.codes))]
    one = translation_difficulty(Weak(0), codes, translator="linear")
    assert one.relative == 1.0, "exchanging everything is easy, and separates nothing"
    assert translation_difficulty(m, m.codes, translator="linear").relative < 1
