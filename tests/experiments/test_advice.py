"""Facts about data, and the methods that they recommend to typical users."""

import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from markupsafe import escape

import unweave
from unweave import as_data, as_pairs
from unweave.data.containers import Table
from unweave.data.core import Factor
from unweave.data.own_data import OwnData
from unweave.datasets import SquaresXY, SwissRoll
from unweave.experiments.advice import Recommendation, advise, merge_obstacles
from unweave.experiments.advice_rules import Obstacle
from unweave.experiments.commands import fit_command
from unweave.experiments.inspection import inspect_data
from unweave.utils.errors import InputError

RNG = np.random.default_rng(0)
FACTORS = RNG.uniform(size=(300, 3))
UNITS = (FACTORS @ RNG.normal(size=(3, 8)) + 0.02 * RNG.normal(size=(300, 8))) * 10.0 ** np.arange(-3, 5)
CLASSES = np.arange(300) % 5


def blobs(points: np.ndarray, side: int = 16) -> np.ndarray:
    """Return images of a soft spot at points (n, 2) of the unit square."""
    y, x = np.mgrid[0:side, 0:side] / (side - 1)
    square = (x - points[:, 0, None, None]) ** 2 + (y - points[:, 1, None, None]) ** 2
    return np.exp(-square / 0.02).astype(np.float32)


def names(advice) -> list[str]:
    return [each.method for each in advice.recommendations]


def obstacles(advice) -> dict[str, str]:
    return {method: each.reason for each in advice.cannot for method in each.method.split(", ")}


# Facts ---------------------------------------------------------------------------------------------------------------


def test_facts_of_images_with_known_answers():
    facts = inspect_data(SquaresXY(points=600, size=32, side=8).load())
    assert (facts.rows, facts.shape, facts.parts.number, facts.binary) == (600, (1, 32, 32), 1, False)
    assert facts.dimension is not None and facts.dimension.low <= 2.1 and facts.dimension.high >= 1.9
    assert facts.gaussianity is None and facts.duplicates == 0
    twice = inspect_data(as_data(np.repeat(blobs(RNG.uniform(size=(50, 2))), 2, 0)))
    assert twice.duplicates == pytest.approx(0.5)
    spots = blobs(RNG.uniform(size=(200, 2)))
    repeated = inspect_data(as_data(np.repeat(spots, 3, 0)))
    assert repeated.dimension == inspect_data(as_data(spots)).dimension, "repeats are no neighbors"
    assert "50% of the observations repeat others" in twice.lines()


def test_units_of_a_table_do_not_count():
    facts, plain = inspect_data(as_data(UNITS)), inspect_data(as_data(UNITS / UNITS.std(0)))
    assert facts.rank == plain.rank == 3
    assert facts.dimension == pytest.approx(plain.dimension, rel=1e-6)
    assert facts.deviations[1] / facts.deviations[0] > 1e5


def test_classes_are_counted_with_their_names():
    kinds = np.array(["a", "b", "b", "c", "c", "c"] * 20)
    facts = inspect_data(as_data(RNG.normal(size=(120, 3)), pd.DataFrame({"kind": kinds, "age": RNG.normal(size=120)})))
    assert facts.classes == {"kind": {"a": 20, "b": 40, "c": 60}}
    assert "kind (nominal: a, b, c): a 20, b 40, c 60" in facts.lines()
    assert "known factors: age (continuous)" in facts.lines()


def test_large_data_are_sampled_and_this_is_reported(sprites):
    facts = inspect_data(sprites)
    assert facts.rows == 737_280 and facts.sampled == 1_500 and facts.binary
    assert facts.lines()[-1].startswith("measured on 1,500 observations")
    large = inspect_data(as_data(blobs(RNG.uniform(size=(30, 2)), side=200)))
    assert large.shape == (200, 200) and large.rows == 30
    with pytest.raises(InputError, match="is constant"):
        inspect_data(as_data(np.ones((30, 4))))


# Users ---------------------------------------------------------------------------------------------------------------


def test_photographs_around_an_object(monkeypatch):
    angle = np.arange(59) / 59 * 2 * np.pi
    images = blobs(0.5 + 0.3 * np.c_[np.cos(angle), np.sin(angle)], 32)
    loops = SimpleNamespace(find_loop=lambda points, neighbors: "a loop")
    monkeypatch.setitem(sys.modules, "unweave.methods.spectral.loops", loops)
    advice = advise(images)
    assert names(advice) == ["hessian-ica"]
    assert "closed loop: a code is an angle" in advice.recommendations[0].reason
    assert advice.recommendations[0].seconds is not None
    assert "59 images: a VAE needs about 5,000" in obstacles(advice)["beta-tc-vae"]


def test_many_images_without_labels():
    advice = advise(RNG.uniform(size=(6_000, 8, 8)).astype(np.float32), timed=False)
    assert names(advice) == ["beta-tc-vae"]
    assert "20 or more" in obstacles(advice)["hessian-ica"]
    parts = np.concatenate([blobs(0.1 * RNG.uniform(size=(100, 2)) + corner) for corner in ([0, 0], [0.9, 0.9])])
    assert "2 separate parts" in obstacles(advise(parts, timed=False))["hessian-ica"]


def test_tables_by_their_distribution_and_curvature():
    units = advise(UNITS, timed=False)
    assert names(units) == ["linear-ica"]
    assert units.recommendations[0].command == "unweave.methods.LinearICA(latent_dim=3).fit(X)"
    gaussian = advise(np.random.default_rng(0).normal(size=(400, 6)) @ RNG.normal(size=(6, 6)), timed=False)
    assert names(gaussian) == ["pca"]
    assert "ICA cannot separate Gaussian factors" in obstacles(gaussian)["linear-ica"]
    roll = advise(SwissRoll(points=1_000), timed=False)
    assert names(roll)[:2] == ["hessian-ica", "linear-ica"]
    assert roll.recommendations[0].command == "unweave fit hessian-ica swiss-roll --data.points 1000"


def test_few_rows_allow_little():
    advice = advise(UNITS[:30], CLASSES[:30])
    assert names(advice) == ["pca"] and "30 rows" in advice.recommendations[0].reason
    assert "class '0' has 6 observations" in obstacles(advice)["gin"] == obstacles(advice)["ivae"]


def test_labels():
    advice = advise(UNITS, CLASSES, timed=False)
    assert names(advice) == ["gin", "ivae"]
    gin = advice.recommendations[0]
    assert gin.command == "unweave.methods.GIN(standardize=True).fit(X, y)"
    assert "60 observations or more of each class; 5 classes identify 2 factors" in gin.reason
    binary = advise((RNG.uniform(size=(300, 8, 8)) > 0.5).astype(np.float32), CLASSES, timed=False)
    assert names(binary) == ["ivae"] and "two values" in obstacles(binary)["gin"]
    continuous = advise(UNITS, FACTORS[:, 0], timed=False)
    assert names(continuous) == ["linear-ica"] and "'y' is continuous" in obstacles(continuous)["gin"]
    large = advise(RNG.uniform(size=(100, 3, 64, 64)).astype(np.float32), CLASSES[:100], timed=False)
    assert "12,288 values" in obstacles(large)["gin"]
    hinted = advise(as_data(UNITS, CLASSES.astype(str)), timed=False)
    assert names(hinted) == ["linear-ica"] and "--labels y" in hinted.hints[0]


def test_labels_and_nuisances():
    y = pd.DataFrame({"kind": CLASSES.astype(str), "lab": (np.arange(300) // 5 % 2).astype(str)})
    advice = advise(UNITS, y, labels="kind", nuisances=["lab"], timed=False)
    assert names(advice) == ["swap-contrast", "vae-classifier", "gin"]
    call = "unweave.methods.SwapContrast(label='kind', nuisances=('lab',)).fit(X, y)"
    assert advice.recommendations[0].command == call
    tied = advise(UNITS, y.assign(lab=y["kind"]), labels="kind", nuisances=["lab"], timed=False)
    assert "occurs with one value of lab only (5 of 5)" in obstacles(tied)["swap-contrast"]
    assert "swap-contrast" not in names(tied)
    with pytest.raises(InputError, match="no factor named 'color'"):
        advise(UNITS, y, labels="color")


def test_pairs_augmentations_and_correlated_factors():
    images = RNG.uniform(size=(600, 8, 8)).astype(np.float32)
    own = advise(as_pairs(images, images + 0.1), timed=False)
    assert names(own) == ["ada-gvae"] and own.recommendations[0].command.endswith("AdaGVAE().fit(data)")
    unpaired = advise(images, pairs=True)
    assert unpaired.recommendations[0].command == "unweave.methods.AdaGVAE().fit(unweave.as_pairs(X, X2))"
    assert "300 rows" in obstacles(advise(UNITS, pairs=True, timed=False))["ada-gvae"]
    assert names(advise(images, augmentations=True, timed=False)) == ["self-supervised-gin"]
    assert "no images" in obstacles(advise(UNITS, augmentations=True, timed=False))["self-supervised-gin"]
    many = advise(RNG.uniform(size=(2_000, 8, 8)).astype(np.float32), correlated=True, timed=False)
    assert names(many) == ["intervention-autoencoder"] and {"hessian-ica", "beta-tc-vae"} <= set(obstacles(many))


def test_an_error_of_the_method_is_an_obstacle(monkeypatch):
    def refuse(method, data):
        raise InputError(f"{method.name} cannot")

    monkeypatch.setattr("unweave.experiments.advice.estimate_seconds", refuse)
    advice = advise(UNITS, CLASSES)
    assert obstacles(advice)["gin"] == "gin cannot" and names(advice) == []


def test_advice_as_text_and_as_values():
    advice = unweave.advise(UNITS, timed=False)
    lines = str(advice).splitlines()
    assert lines[0] == "The data:" and "Recommended:" in lines
    assert lines[lines.index("Recommended:") + 1].startswith("1. linear-ica: 3 of 3 components are not Gaussian")
    values = advice.as_dict()
    assert values["recommendations"][0]["method"] == "linear-ica" and values["facts"]["rows"] == 300
    assert merge_obstacles([Obstacle("a", "x"), Obstacle("b", "y"), Obstacle("c", "x")])[0] == Obstacle("a, c", "x")


def test_commands_repeat_what_the_user_chose():
    data = OwnData(path="my photos", table="t.csv", factors=("a", "b c"), drop_constant=True)
    command = fit_command("gin", {"label": "a", "standardize": True}, data)
    flags = "--label a --standardize --data.table t.csv --data.factors a 'b c' --data.drop-constant"
    assert command == f"unweave fit gin 'my photos' {flags}"


def test_generators_have_no_number_of_rows():
    class Endless(Table):
        def all_points(self, limit):
            return None

    x = torch.rand(500, 4, generator=torch.Generator().manual_seed(0))
    facts = inspect_data(Endless(x, torch.zeros(500, 1), [Factor("u", 2, "nominal")]))
    assert facts.rows is None and facts.lines()[0].startswith("a generator of rows")


def test_a_notebook_shows_advice():
    factors = pd.DataFrame({"<b>sick</b>": CLASSES % 2})
    advice = advise(FACTORS, factors, timed=False)
    page = advice._repr_html_()
    assert all(f"<strong>{each.method}</strong>" in page for each in advice.recommendations)
    assert all(f"<code>{each.command}</code>" in page for each in advice.recommendations)
    assert all(str(escape(line)) in page for line in advice.facts.lines())
    assert "<b>" not in page
    assert "&lt;b&gt;sick" in page


def test_a_notebook_shows_obstacles_and_times():
    advice = advise(FACTORS, timed=False)
    known = Recommendation("pca", "why <i>", "pca(x)", 0.2)
    shown = replace(advice, recommendations=(known,), cannot=(Obstacle("gin", "few <rows>"),), hints=("try <it>",))
    page = shown._repr_html_()
    assert "why &lt;i&gt; (less than 5 s)<br><code>pca(x)</code>" in page
    assert "<li>gin: few &lt;rows&gt;</li>" in page
    assert "<li>try &lt;it&gt;</li>" in page
    assert "No method is recommended" in replace(advice, recommendations=())._repr_html_()
