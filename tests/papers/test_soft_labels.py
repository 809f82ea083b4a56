"""GIN with finer conditions than classes: strokes of digits, clusters, soft labels, and the whole script in small."""

import json

import numpy as np
import pytest
import torch

from unweave.data.containers import Table
from unweave.data.core import Factor
from unweave.methods import GIN, CNNClassifier
from unweave.papers.flow_digits import DigitData
from unweave.papers.gin import conditions, soft_labels, strokes

TINY = {"steps": 2, "batch_size": 30, "conv_blocks": 1, "conv_widths": (4,), "width": 4, "blocks": 1}


def draw_seven(*, bar: bool = False, hook: bool = False) -> np.ndarray:
    """Return a 7 with a slanted stem of two pixels, (1, 28, 28)."""
    image = np.zeros((28, 28))
    image[4:6, 8:20] = 1
    for row in range(6, 24):
        left = 18 - (row - 6) // 2
        image[row, left : left + 2] = 1
    if bar:
        image[13:15, 10:21] = 1
    if hook:
        image[6:15, 8:10] = 1
    return image[None]


def test_a_crossbar_is_a_long_run_of_ink_in_the_middle():
    images = np.stack([draw_seven(), draw_seven(bar=True), draw_seven(hook=True), np.zeros((1, 28, 28))])
    assert strokes.has_crossbar(images).tolist() == [False, True, False, False]
    np.testing.assert_allclose(strokes.crossbar(images), [1, 5.5, 1, 1])
    assert strokes.longest_run(np.array([True, True, False, True])) == 2 and strokes.longest_run(np.zeros(3, bool)) == 0


def test_a_loop_encloses_an_area():
    ring = np.zeros((1, 28, 28))
    ring[:, 10:16, 10:16] = 1
    full = ring.copy()
    ring[:, 12:14, 12:14] = 0
    assert strokes.has_loop(np.stack([ring, full])).tolist() == [True, False]


def test_clusters_split_a_class_where_it_has_two_kinds():
    rng = np.random.default_rng(0)
    labels, kinds = np.arange(200) % 2, np.arange(200) // 2 % 2
    x = rng.standard_normal((200, 5)) + 20 * kinds[:, None]
    names = conditions.cluster_classes(x, labels, 2)
    for k in (0, 1):
        split = [set(names[(labels == k) & (kinds == j)]) for j in (0, 1)]
        assert sorted(map(len, split)) == [1, 1] and split[0] != split[1]
        assert set().union(*split) == {f"{k}.1", f"{k}.2"}


def test_a_temperature_divides_the_logits():
    logits = np.array([[0.0, 2.0, -1.0]])
    p = np.exp(logits) / np.exp(logits).sum()
    softer = np.exp(logits / 4) / np.exp(logits / 4).sum()
    np.testing.assert_allclose(conditions.soften(p, 4.0), softer)


@pytest.fixture(scope="module")
def digits():
    """Sevens with and without a crossbar, and rings as twos."""
    rng = np.random.default_rng(0)
    sevens = [draw_seven(bar=bool(i % 4 == 0)) for i in range(60)]
    rings = np.zeros((60, 1, 28, 28))
    rings[:, :, 10:18, 10:18] = 1
    rings[::2, :, 12:16, 12:16] = 0
    x = np.concatenate([np.stack(sevens), rings]) + 0.1 * rng.standard_normal((120, 1, 28, 28))
    x, labels = torch.from_numpy(x.astype(np.float32)), torch.tensor([7] * 60 + [2] * 60)
    values = tuple(str(k) for k in range(10))
    data = Table(x, labels[:, None].float(), (Factor("label", 10, "nominal", values=values),))
    return DigitData(data, data, x.numpy(), labels.numpy())


def test_a_class_is_the_mixture_of_its_clusters(digits):
    names = np.array([f"{k}.{i % 2 + 1}" for i, k in enumerate(digits.labels)])
    model = GIN(**TINY).fit(digits.images, names)
    noisy = (
        digits.images
        + model.noise * torch.randn(digits.images.shape, generator=torch.Generator().manual_seed(0)).numpy()
    )
    each = {name: model.log_prob(noisy, name) for name in model.class_names_}
    of_two, of_seven = (np.logaddexp(each[f"{k}.1"], each[f"{k}.2"]) - np.log(2) for k in (2, 7))
    expected = np.where(digits.labels == 2, of_two, of_seven).mean()
    assert soft_labels.nats_given_class(model, digits) == pytest.approx(expected, rel=1e-4)


def test_the_variable_that_moves_a_feature_is_found(digits):
    model = GIN(**TINY).fit(digits.images, digits.labels.astype(str))
    model.n_informative_ = 5
    j = int(model.order_[3])
    own = np.array(["7"] * 4)

    def is_moved(images):
        return model.outputs(torch.from_numpy(images))[:, j].numpy() > float(model.means_[1, j])

    assert model.class_names_ == ["2", "7"] and soft_labels.strongest_variable(model, own, is_moved) == (3, 1.0)


def test_all_conditions_are_trained_scored_and_drawn(tmp_path, digits, monkeypatch):
    def make(options, seed):
        return GIN(seed=seed, statistics="learned", **TINY | {"steps": options.steps})

    monkeypatch.setattr(soft_labels, "load_digits", lambda name: digits)
    monkeypatch.setattr(soft_labels, "make_method", make)
    monkeypatch.setattr(soft_labels, "make_classifier", lambda options: CNNClassifier(steps=2, latent_dim=4))
    monkeypatch.setattr(soft_labels, "N_SAMPLES", 12)
    monkeypatch.setattr(soft_labels, "MAX_VARIABLES", 3)
    options = soft_labels.Options(out=tmp_path, seeds=1, steps=2, clusters=2)
    assert soft_labels.tables(options) == [] and not soft_labels.findings(options, "soft-labels").claims
    soft_labels.main(options)
    shares, effects = soft_labels.tables(options)
    assert shares.rows[0][-2:] == ["25.0%", "50.0%"], "test digits"
    assert [row[:2] for row in effects.rows] == [[kind, "0"] for kind in soft_labels.KINDS]
    assert [bool(row[3]) for row in shares.rows[1:]] == [True, True, False]
    found = soft_labels.findings(options, "soft-labels")
    assert len(found.claims) == 5 and all(claim.own for claim in found.claims)
    assert len(found.figures) == 4 + 4 + 2 and all(path.is_file() for path in found.figures)
    record = json.loads((soft_labels.folders(options, "distilled").results / "seed-0" / "numbers.json").read_text())
    assert soft_labels.NATS not in record and "Labels are probabilities." not in record
