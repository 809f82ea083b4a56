"""Swap and contrast: its loss, pairs, final classifier and settings."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.exceptions import NotFittedError
from torch.nn import functional as F

import unweave
from unweave import InputError
from unweave.data.containers import Table
from unweave.data.conversion import as_data, as_pairs
from unweave.data.core import Factor
from unweave.data.splits import hold_out
from unweave.data.supervision import pairs
from unweave.datasets.colored import Painted
from unweave.methods import AdaGVAE, SwapContrast
from unweave.methods.invariance import swap_contrast
from unweave.methods.invariance.logistic import WEIGHT_DECAY, fit_classifier
from unweave.metrics import nuisance_probe
from unweave.nn.functional import Normal, squared_distance

SMALL = {"steps": 2, "batch_size": 16, "layers": (8,)}


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def labeled_table():
    """Features that tell a class of three and two nuisances, and all as a table."""
    generator = np.random.default_rng(0)
    y, s, t = generator.integers(0, 3, 900), generator.integers(0, 2, 900), generator.integers(0, 3, 900)
    x = np.c_[3.0 * (y == 0), 3.0 * (y == 1), 3.0 * s, 2.0 * t] + 0.2 * generator.normal(size=(900, 4))
    return x.astype(np.float32), pd.DataFrame({"kind": np.array(["a", "b", "c"])[y], "light": s, "size": t})


def exchange(z, k, progress=1.0, most=2, **settings):
    """L_dis of codes (2 n, 4), the first of which predicts, that are decoded to themselves."""
    method = SwapContrast(predictive_dim=1, nuisance_dim=3, likelihood="gaussian", **settings)
    method.max_changed_ = most
    z = torch.as_tensor(z)
    batch = {"changed": torch.as_tensor(k), "progress": torch.tensor(progress)}
    swapped = method.swap_codes(Normal(z, torch.zeros_like(z)), z, batch)
    return method.swap_loss(swapped, z, batch).item()


def lost(method, data, term="loss"):
    """Terms of a batch; and how much of one of them reaches encoder and classifier."""
    method.validate_settings(data)
    method.prepare(data)
    torch.manual_seed(0)
    net = method.build(data.shape)
    plan = method.plan(data, 16, rng())
    batch = {k: data.render(v).float() for k, v in plan.views.items()} | plan.extras
    batch |= method.sample_noise(16, rng(1)) | {"progress": torch.tensor(1.0)}
    terms = method.loss(net, batch)
    reached = [torch.autograd.grad(terms[term], list(p.parameters()), retain_graph=True, allow_unused=True)
               for p in (net.encoder, net.classifier)]  # fmt: skip
    return terms, *(sum(float(g.abs().sum()) for g in grads if g is not None) for grads in reached)


def test_swapped_codes_are_those_of_equations_5_and_6():
    pair = [[5.0, 1.0, 2.0, 3.0], [5.0, 1.0, 9.0, 3.0]]
    assert exchange(pair, [1]) == 0  # the third code differs, and is the one that is kept
    both = [[5.0, 0.0, 2.0, 3.0], [5.0, 1.0, 9.0, 3.0]]
    assert exchange(both, [2]) == 0
    assert exchange(both, [1]) == 1  # the second code is exchanged too, and differs by 1
    assert exchange([[4.0, 1.0, 2.0, 3.0], [5.0, 1.0, 9.0, 3.0]], [1]) == 1  # z_p always is


def test_warmups_swap_the_least_different_codes_first_and_skip_difficult_pairs():
    pair = [[0.0, 1.0, 2.0, 0.0], [0.0, 2.0, 9.0, 0.0]]
    assert exchange(pair, [1], progress=0.0) == 0  # one code is exchanged, the last
    assert exchange(pair, [1], progress=0.5) == 1
    assert exchange(pair, [1], progress=0.0, swap_warmup=0.0) == 1
    two = pair[:1] * 2 + pair[1:] * 2  # the same pair as one that is said to differ in one, and in two
    assert exchange(two, [2, 2], progress=0.2) == 0 and exchange(two, [1, 2], progress=0.5) == pytest.approx(1 / 2)
    method = SwapContrast()
    method.max_changed_ = 3
    assert [method.max_difficulty(torch.tensor(p)).item() for p in (0.0, 0.24, 0.26, 0.5, 1.0)] == [1, 1, 2, 3, 3]
    k, steps = torch.tensor([1, 3]), (0.0, 0.25, 0.5, 1.0)
    assert [method.count_swapped(k, torch.tensor(p), 5).tolist() for p in steps] == [[1, 1], [2, 1], [4, 2], [4, 2]]


def test_the_loss_is_the_weighted_sum_of_equation_10(labeled_table):
    data = as_data(*labeled_table)
    weights = {"alpha": 2.0, "beta": 3.0, "gamma": 5.0, "generative": 7.0}
    method = SwapContrast(**SMALL, **weights)
    terms, _, _ = lost(method, data)
    assert set(terms) == {"loss", "rec", "kl", "ce", "zp", "sup", "dis"}
    parts = {"rec": 1, "ce": 1, "dis": 2, "sup": 3, "zp": 5, "kl": 7}
    torch.testing.assert_close(terms["loss"], sum(w * terms[name] for name, w in parts.items()))
    torch.testing.assert_close(squared_distance(torch.ones(2, 3), torch.zeros(2, 3)), torch.tensor([3.0, 3.0]))


@pytest.mark.parametrize(("scheme", "encoder"), [("alternate", False), ("joint", True), ("ce", True)])
def test_the_scheme_decides_who_learns_from_the_cross_entropy(labeled_table, scheme, encoder):
    terms, to_encoder, to_classifier = lost(SwapContrast(**SMALL, scheme=scheme), as_data(*labeled_table), "ce")
    assert (to_encoder > 0) == encoder and to_classifier > 0
    assert ("sup" in terms) == (scheme != "ce")
    more, *_ = lost(SwapContrast(**SMALL, scheme=scheme, prediction=301.0), as_data(*labeled_table), "ce")
    assert (more["loss"] - terms["loss"]).item() == pytest.approx(encoder * terms["ce"].item(), abs=1e-3)


def test_pairs_share_the_class_and_differ_in_the_named_nuisances(labeled_table):
    data = as_data(*labeled_table)
    method = SwapContrast(**SMALL, nuisances=("size",))
    method.prepare(data)
    plan = method.plan(data, 200, rng())
    c, c2 = (data.labels(plan.views[v]) for v in ("x", "x2"))
    assert ((c != c2).float().mean(0) == torch.tensor([0.0, 0.0, 1.0])).all() and (plan.extras["changed"] == 1).all()
    every = SwapContrast(**SMALL)
    every.prepare(data)
    plan = every.plan(data, 400, rng())
    differ = (data.labels(plan.views["x"]) != data.labels(plan.views["x2"])).sum(1)
    assert (differ == plan.extras["changed"]).all() and set(differ.tolist()) == {1, 2}


def test_a_recolored_digit_stays_the_same_digit():
    gray = Table(torch.rand(20, 1, 4, 4), torch.arange(20)[:, None] % 2.0, [Factor("label", 2, "nominal")])
    color = Factor("color", 3, "nominal")
    data = Painted(gray, {color: (0, 1, 2)}, lambda x, extra, inks: x * inks[extra[:, 0]], [torch.rand(3, 3, 1, 1)])
    a, b = pairs(data, 50, rng(), k=1, among=["color"]).views.values()
    assert (a[:, 0] == b[:, 0]).all() and (a[:, 1] != b[:, 1]).all()
    a, b = pairs(data, 50, rng(), k=1, among=["label"]).views.values()
    assert (gray.labels(a[:, :1]) != gray.labels(b[:, :1])).all() and (a[:, 1] == b[:, 1]).all()


def test_pairs_of_the_user_are_used_unchanged(labeled_table):
    x, table = labeled_table
    data = as_pairs(x[:5], x[5:10], [0, 1, 0, 1, 1], changed=[1, 2, 1, 2, 2])
    plan = pairs(data, 100, rng())
    a, b = (plan.views[v][:, 0] for v in ("x", "x2"))
    assert ((a - b).abs() == 5).all() and set(a.tolist()) == set(range(10))
    assert (plan.extras["k"] == torch.tensor([1, 2, 1, 2, 2])[a % 5]).all()
    model = SwapContrast(**SMALL).fit(as_pairs(x[:450], x[450:], table["light"].to_numpy()[:450]))
    assert model.max_changed_ == 1 and "dis" in model.terms_


def test_pairs_that_do_not_match_are_refused(labeled_table):
    x, _ = labeled_table
    with pytest.raises(InputError, match=r"unequal length or shape, \(5, 4\) and \(4, 4\)"):
        as_pairs(x[:5], x[:4])
    with pytest.raises(InputError, match="unequal"):
        as_pairs(x[:5], x[:5, :3])
    for changed in (-1, 0.5, [1, 2]):
        with pytest.raises(InputError, match="how many factors differ"):
            as_pairs(x[:5], x[5:10], changed=changed)
    with pytest.raises(InputError, match="built from arrays"):
        as_pairs(unweave.datasets.SquaresXY(points=5).load(), x[:5])


def test_it_classifies_and_its_predictive_codes_hide_the_nuisances(labeled_table):
    x, table = labeled_table
    model = SwapContrast(
        steps=600, lr=5e-3, layers=(32,), predictive_dim=2, nuisance_dim=4, alpha=1.0, beta=20.0, gamma=1.0
    ).fit(x, table)
    assert model.score(x, table["kind"].to_numpy()) > 0.97
    z = model.transform(x)
    nuisance = table[["light", "size"]].to_numpy()
    left, moved = nuisance_probe(nuisance, z[:, :2]), nuisance_probe(nuisance, z[:, 2:])
    assert left.chance < 0.55 and left.accuracy < left.chance + 0.2 and moved.accuracy > 0.95
    assert model.get_feature_names_out()[[0, 1, 2, 5]].tolist() == [
        "predictive1",
        "predictive2",
        "nuisance1",
        "nuisance4",
    ]


@pytest.mark.parametrize("classes", [2, 3])
def test_the_refitted_classifier_is_a_minimum(classes):
    z = torch.randn(400, 3, generator=rng()).double()
    true = torch.randn(3, classes, generator=rng(1)).double()
    u = torch.multinomial(torch.softmax(z @ true + 0.5 * torch.arange(classes), 1), 1, generator=rng(2))[:, 0]
    weight, bias = (v.requires_grad_() for v in fit_classifier(z, u).values())
    decay = (
        WEIGHT_DECAY * z.square().mean() * weight.square().sum() * (2 if classes == 2 else 1)
    )  # of one row, their difference
    slopes = torch.autograd.grad(F.cross_entropy(z @ weight.T + bias, u) + decay, [weight, bias])
    assert all(float(slope.abs().max()) < 1e-4 for slope in slopes)
    assert float(bias.abs().max()) > 0.05


@pytest.mark.parametrize("scheme", ["alternate", "joint", "ce"])
def test_the_classifier_is_refitted_in_every_scheme(labeled_table, scheme):
    """It is the best one for the codes that were learned, and predicts where it learned nothing beside them."""
    x, table = labeled_table
    settings = {"steps": 300, "lr": 5e-3, "layers": (32,), "predictive_dim": 2, "nuisance_dim": 4, "beta": 20.0}
    method = SwapContrast(**settings, classifier_lr=1e-9, scheme=scheme).fit(x, table)
    assert method.score(x, table["kind"].to_numpy()) > 0.9
    u = torch.as_tensor(np.unique(table["kind"].to_numpy(), return_inverse=True)[1])
    best = fit_classifier(method.select_predictive(torch.from_numpy(method.transform(x))), u)
    torch.testing.assert_close(method.net_.classifier.weight.detach(), best["weight"].float(), atol=0.05, rtol=0.05)


def test_without_a_refit_the_classifier_stays_as_trained(labeled_table):
    one, other, still = (
        SwapContrast(**SMALL | {"steps": 20}, refit_classifier=refit, classifier_lr=lr)
        .fit(*labeled_table)
        .predict_proba(labeled_table[0])
        for refit, lr in ((True, 1e-2), (True, 1e-9), (False, 1e-9))
    )
    np.testing.assert_allclose(one, other)
    assert np.abs(still - other).max() > 0.1


def test_a_rare_class_is_in_the_refit_sample(monkeypatch):
    """Of many rows some are drawn to refit the classifier on; every class is among them."""
    monkeypatch.setattr(swap_contrast, "REFIT_OBSERVATIONS", 40)
    x = np.random.default_rng(0).normal(size=(600, 3)).astype(np.float32)
    y = np.repeat([0, 1, 2], [300, 299, 1])
    x[:, 0] += 4 * y
    model = SwapContrast(**SMALL | {"steps": 30}).fit(x, y)
    points, u = model.refit_points(as_data(x, y))
    assert len(points) == 43 and set(u.tolist()) == {0, 1, 2}


def test_a_training_that_was_too_short_is_diagnosed_and_a_good_one_is_not(labeled_table):
    x, table = labeled_table
    settings = {"layers": (32,), "predictive_dim": 2, "nuisance_dim": 4, "lr": 5e-3}
    idle = SwapContrast(**settings, steps=3, beta=1.5, refit_classifier=False).fit(x, table).diagnosis_
    reason = "after 3 steps, the class is not learned; the decoder explains 0% of the variance"
    assert idle[-1] == f"Train longer: {reason}."
    alive = SwapContrast(**settings, steps=300, beta=20.0).fit(x, table)
    assert alive.train_accuracy_ > 0.8
    assert not any("decoder" in line or "beta" in line for line in alive.diagnosis_)


@pytest.mark.parametrize("scheme", ["alternate", "ce"])
@pytest.mark.parametrize(
    ("accuracy", "explained", "advice"),
    [
        (0.9, 0.5, []),
        (0.8, 0.1, []),
        (0.9, 0.02, ["Use a smaller WEIGHT: with WEIGHT=300 the class is learned, but the decoder explains 2%"]),
        (0.5, 0.5, ["Use a larger WEIGHT: WEIGHT=300 weighs little against a reconstruction of 64 numbers"]),
        (0.5, 0.02, ["Train longer: after 5,000 steps, the class is not learned; the decoder explains 2%"]),
    ],
)
def test_one_piece_of_advice_fits_what_was_learned(scheme, accuracy, explained, advice):
    model = SwapContrast(scheme=scheme)
    model.train_accuracy_ = accuracy
    weight = {"alternate": "beta", "ce": "prediction"}[scheme]  # of the loss that learns the class
    texts = model.advise(explained, 64)
    assert len(texts) == len(advice)
    assert all(text.startswith(start.replace("WEIGHT", weight)) for text, start in zip(texts, advice, strict=True))


def test_without_nuisances_nothing_is_swapped(labeled_table):
    x, table = labeled_table
    model = SwapContrast(**SMALL).fit(x, table["kind"].to_numpy())
    assert "dis" not in model.terms_ and "no codes are exchanged" in model.diagnosis_[0]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"predictive_dim": 3, "nuisance_dim": 1}, "nuisance_dim=2 at least"),
        ({"changed": 3}, "2 factors may differ"),
        ({"nuisances": ("color",)}, "there are: light, size"),
        ({"predictive_dim": 3, "nuisance_dim": 3, "latent_dim": 5}, "their sum"),
        ({"latent_dim": 4, "predictive_dim": 4}, "one code of each"),
        ({"swap_warmup": 2.0}, "a share of the steps"),
    ],
)
def test_impossible_settings_are_refused(labeled_table, settings, message):
    with pytest.raises(InputError, match=message):
        SwapContrast(**SMALL, **settings).fit(*labeled_table)


def test_missing_and_unseen_labels_are_refused(labeled_table):
    x, table = labeled_table
    with pytest.raises(InputError, match="requires y"):
        SwapContrast(**SMALL).fit(x)
    model = SwapContrast(**SMALL).fit(x, table)
    with pytest.raises(InputError, match="class 'd' was not learned"):
        model.score(x[:2], ["a", "d"])
    with pytest.raises(InputError, match="one class only"):
        SwapContrast(**SMALL).fit(x, np.zeros(len(x), int))


def test_a_class_with_a_nuisance_value_of_its_own_is_refused(labeled_table):
    x, table = labeled_table
    y = pd.DataFrame({"kind": table["kind"], "own": (table["kind"] == "a").astype(int)})
    with pytest.raises(InputError, match="no two observations of a class differ in own"):
        SwapContrast(**SMALL).fit(x, y)


def test_pairs_are_kept_together_in_a_split(labeled_table):
    x, table = labeled_table
    data = as_pairs(x[:450], x[450:], table["light"].to_numpy()[:450])
    train, test = hold_out(data, 100)
    rows = {int(p) % 450 for p in train.points[:, 0]}
    assert len(train) == 2 * len(rows) and not rows & {int(p) % 450 for p in test.points[:, 0]}
    assert "dis" in SwapContrast(**SMALL).fit(train).terms_
    AdaGVAE(**SMALL, latent_dim=2).fit(as_pairs(x[:450], x[450:]))  # which needs no label


def test_further_mistakes_are_refused(labeled_table):
    x, table = labeled_table
    for settings, message in (({"temperature": 0.0}, "positive"), ({"changed": -1}, "changed=-1")):
        with pytest.raises(InputError, match=message):
            SwapContrast(**SMALL, **settings).fit(x, table)
    with pytest.raises(InputError, match="these data are pairs"):
        SwapContrast(**SMALL, changed=1).fit(as_pairs(x[:5], x[5:10], [0, 1, 0, 1, 1]))
    with pytest.raises(InputError, match="bytes"):
        as_pairs(np.zeros((5, 1, 4, 4), np.uint8), np.zeros((5, 1, 4, 4), np.float32))
    with pytest.raises(InputError, match="how many"):
        as_pairs(x[:5], x[5:10], changed=[[1], [1, 2]])
    with pytest.raises(NotFittedError):
        SwapContrast().get_feature_names_out()


def test_class_and_nuisance_codes_are_named(labeled_table):
    x, c = labeled_table
    method = SwapContrast(predictive_dim=2, nuisance_dim=3, label="kind", **SMALL).fit(x, c)
    assert method.named_codes() == {"class codes": [0, 1], "nuisance codes": [2, 3, 4]}
    assert unweave.methods.VAEClassifier(latent_dim=3, label="kind", **SMALL).fit(x, c).named_codes() == {}


def weighted_terms(method, batch):
    """Return the loss and its terms with the weights of Eq. 10, for a network of fixed weights."""
    torch.manual_seed(0)
    terms = method.loss(method.net_, batch)
    return terms["loss"].item(), {name: value.item() for name, value in terms.items() if name != "loss"}


@pytest.mark.parametrize("progress", [0.0, 0.1, 0.25, 1.0])
def test_the_weight_of_the_kl_term_grows_and_numbers_are_counted(labeled_table, progress):
    x, c = labeled_table
    method = SwapContrast(label="kind", beta=7.0, generative=3.0, kl_warmup=0.5, latent_dim=4, **SMALL).fit(x, c)
    data = as_data(x, c)
    plan = method.plan(data, 8, rng())
    batch = {name: data.render(points).float() for name, points in plan.views.items()}
    batch |= plan.extras | method.sample_noise(8, rng()) | {"progress": torch.tensor(progress)}
    loss, terms = weighted_terms(method, batch)
    share = min(1.0, progress / 0.5)
    summed = terms["rec"] + 3 * share * terms["kl"] + terms["zp"] + terms["dis"]
    assert loss == pytest.approx(summed + 7 * terms["sup"] + terms["ce"], rel=1e-5)
    method.per_number = True
    assert weighted_terms(method, batch)[0] == pytest.approx(summed / 4 + 7 * terms["sup"] + terms["ce"], rel=1e-5)


def test_settings_that_were_added_later_do_not_change_recipes(labeled_table):
    plain = SwapContrast(label="kind").recipe()
    assert not {"kl_warmup", "per_number", "lr_schedule"} & set(plain)
    assert SwapContrast(label="kind", kl_warmup=0.1).recipe() == plain | {"kl_warmup": 0.1}
    with pytest.raises(InputError, match=r"kl_warmup=2: expected a share of the steps"):
        SwapContrast(label="kind", kl_warmup=2, **SMALL).fit(*labeled_table)


@pytest.mark.parametrize(
    ("latent_dim", "predictive_dim", "nuisance_dim", "sizes"),
    [
        ("auto", "auto", "auto", (16, 16)),
        (10, "auto", "auto", (5, 5)),
        (9, "auto", "auto", (5, 4)),
        ("auto", 3, "auto", (3, 16)),
        ("auto", "auto", 3, (16, 3)),
        (9, 2, "auto", (2, 7)),
        (9, "auto", 2, (7, 2)),
        (9, 4, 5, (4, 5)),
    ],
)
def test_codes_are_split_in_two(latent_dim, predictive_dim, nuisance_dim, sizes):
    method = SwapContrast(latent_dim=latent_dim, predictive_dim=predictive_dim, nuisance_dim=nuisance_dim)
    assert method.split_sizes() == sizes
    assert method.select_predictive(torch.zeros(3, sum(sizes))).shape == (3, sizes[0])
    method.max_changed_ = 1
    noise = method.sample_noise(4, rng())
    assert {name: v.shape[1] for name, v in noise.items()} == {
        "eps0": sum(sizes), "eps1": sum(sizes), "zeta0": sizes[0], "zeta1": sizes[0],
    }  # fmt: skip
    method.max_changed_ = 0
    assert method.sample_noise(4, rng()).keys() == {"eps0", "zeta0"}
    assert method.sample_prior(4, rng()).shape == (4, sum(sizes))


def test_warmups_are_shares_of_the_steps():
    method = SwapContrast(swap_warmup=0.5, difficulty_warmup=0.25)
    method.max_changed_ = 3
    k = torch.tensor([1, 2, 4])
    counts = {0.0: [1, 1, 1], 0.2: [2, 1, 1], 0.25: [2, 2, 1], 0.49: [3, 2, 1], 0.5: [4, 3, 1], 1.0: [4, 3, 1]}
    for progress, expected in counts.items():
        assert method.count_swapped(k, torch.tensor(progress), 5).tolist() == expected
    for progress, expected in ((0.0, 1), (0.12, 1), (0.13, 2), (0.24, 2), (0.25, 3), (1.0, 3)):
        assert method.max_difficulty(torch.tensor(progress)) == expected
    method.swap_warmup = method.difficulty_warmup = 0.0
    assert method.count_swapped(k, torch.tensor(0.0), 5).tolist() == [4, 3, 1]
    assert method.max_difficulty(torch.tensor(0.0)) == 3


def test_the_swap_loss_counts_pairs_that_are_not_too_difficult():
    method = SwapContrast(difficulty_warmup=1.0)
    method.max_changed_ = 3
    x = torch.zeros(6, 2)
    swapped = torch.tensor([[1.0, 0], [2, 0], [3, 0], [0, 4], [0, 5], [0, 6]])
    batch = {"changed": torch.tensor([1, 2, 3]), "progress": torch.tensor(0.0)}
    assert method.swap_loss(swapped, x, batch) == (1 + 16) / 2
    assert method.swap_loss(swapped, x, batch | {"progress": torch.tensor(0.5)}) == (1 + 4 + 16 + 25) / 4
    assert method.swap_loss(swapped, x, batch | {"changed": torch.tensor([2, 2, 3])}) == 0


def test_partners_are_described(labeled_table):
    x, table = labeled_table
    lonely = table.assign(light=np.where(table["kind"] == "a", 7, np.arange(900) % 2))
    text = SwapContrast(**SMALL, nuisances=("light",), label="kind").fit(x, lonely).diagnosis_[0]
    start, _, end = text.partition(" 3")
    assert start == "Pairs differ in: light." and end[1:] == "% of observations have no partner."
    assert SwapContrast(**SMALL, label="kind").fit(x, table).diagnosis_[0] == "Pairs differ in: light, size."
