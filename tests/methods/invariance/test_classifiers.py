"""Classifiers and invariance to nuisances: losses against hand-computed values, scikit-learn's interface."""

import math

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch.nn import functional as F

import unweave
from unweave import InputError
from unweave.data.conversion import as_data
from unweave.methods import CAI, CVIB, UAI, VFAE, CNNClassifier, VAEClassifier
from unweave.methods.invariance.vfae import bound_variance
from unweave.nn.functional import mean_discrepancy, random_fourier_features, scale_gradient

SMALL = {"steps": 2, "batch_size": 16, "layers": (8,), "latent_dim": 4}


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def labeled_table():
    """Features that tell a class of three and a nuisance of two, and both as a table."""
    generator = np.random.default_rng(0)
    y, s = generator.integers(0, 3, 600), generator.integers(0, 2, 600)
    x = np.c_[3.0 * (y == 0), 3.0 * (y == 1), 3.0 * s, np.zeros(600)] + 0.3 * generator.normal(size=(600, 4))
    return x.astype(np.float32), pd.DataFrame({"kind": np.array(["a", "b", "c"])[y], "light": s})


def ready(cls, labeled_table, **settings):
    """A method that knows its data, its network, and a batch."""
    data = as_data(*labeled_table)
    method = cls(**SMALL | settings).fit(data)
    plan = method.plan(data, 16, rng())
    batch = {"x": data.render(plan.views["x"]).float(), **plan.extras, **method.sample_noise(16, rng())}
    return method, method.build((4,)), batch | {"progress": torch.tensor(0.0)}


def scale(both):
    q = bound_variance(unweave.nn.functional.Normal(*both.chunk(2, 1)))
    return q.mean, (q.logvar / 2).exp()


def test_classes_keep_their_names_and_probabilities_sum_to_one(labeled_table, tmp_path):
    x, table = labeled_table
    model = CNNClassifier(**SMALL | {"steps": 150, "lr": 0.02}).fit(x, table["kind"].to_numpy())
    assert model.classes_.tolist() == ["a", "b", "c"]
    proba = model.predict_proba(x)
    np.testing.assert_allclose(proba.sum(1), 1)
    assert (model.predict(x) == model.classes_[proba.argmax(1)]).all()
    assert model.score(x, table["kind"].to_numpy()) > 0.95
    model.save(tmp_path / "model")
    again = unweave.load(tmp_path / "model")
    assert (again.predict(x) == model.predict(x)).all() and again.classes_.tolist() == ["a", "b", "c"]


def test_labels_of_the_data_are_used(labeled_table):
    x, table = labeled_table
    data = as_data(x, table)
    model = CNNClassifier(**SMALL | {"steps": 150, "lr": 0.02}).fit(data)
    assert model.score(data) == model.score(x, table["kind"].to_numpy())
    other = CNNClassifier(**SMALL | {"steps": 150, "lr": 0.02}, label="light").fit(data)
    assert other.classes_.tolist() == [0, 1] and other.score(data) > 0.95


def test_the_score_uses_the_column_of_the_class(labeled_table):
    x, table = labeled_table
    codes = np.c_[table["light"], table["kind"].map({"a": 0, "b": 1, "c": 2})]
    model = CNNClassifier(**SMALL | {"steps": 150, "lr": 0.02}, label="y2").fit(x, codes)
    assert model.score(x, codes) == model.score(x, codes[:, 1]) == model.score(x, codes[:, 1:]) > 0.95
    with pytest.raises(InputError, match="y has 3 columns, and 2 factors were learned from"):
        model.score(x, np.c_[codes, codes[:, 0]])
    model = CNNClassifier(**SMALL | {"steps": 150, "lr": 0.02}).fit(x, table)
    assert model.score(x, table[["light", "kind"]]) == model.score(x, table) > 0.95
    assert model.score(as_data(x, table[["light", "kind"]])) == model.score(x, table)
    with pytest.raises(InputError, match=r"y has no column 'kind' \(there are: light, color\)"):
        model.score(x, pd.DataFrame({"light": table["light"], "color": table["kind"]}))


def test_columns_of_labels_may_be_numbered(labeled_table):
    x, table = labeled_table
    numbered = pd.DataFrame(np.c_[table["light"], table["kind"].map({"a": 0, "b": 1, "c": 2})])
    model = CNNClassifier(**SMALL | {"steps": 150, "lr": 0.02}, label="1").fit(x, numbered)
    assert model.score(x, numbered) > 0.95
    with pytest.raises(InputError, match="y has two columns '0': rename one"):
        model.fit(x, numbered.set_axis([0, 0], axis=1))


def test_unknown_classes_and_missing_labels_are_refused(labeled_table):
    x, table = labeled_table
    model = CNNClassifier(**SMALL).fit(x, table["light"].to_numpy())
    with pytest.raises(InputError, match="class '7' was not learned"):
        model.score(x[:2], [0, 7])
    with pytest.raises(InputError, match="pass y"):
        model.score(x)
    with pytest.raises(InputError, match="requires y"):
        CNNClassifier(**SMALL).fit(x)
    with pytest.raises(InputError, match="one class only"):
        CNNClassifier(**SMALL).fit(x, np.zeros(600, int))
    with pytest.raises(InputError, match="no factor is discrete"):
        CNNClassifier(**SMALL).fit(as_data(x))
    data = as_data(x, np.arange(600) % 4)
    with pytest.raises(InputError, match="class '2' was not learned"):
        model.score(data)
    with pytest.raises(InputError, match="no decoder"):
        model.inverse_transform(model.transform(x))


def test_nuisances_are_all_other_factors_by_default(labeled_table):
    method, _, batch = ready(CAI, labeled_table)
    assert method.nuisance_sizes_ == [2] and method.diagnosis_[0] == "Nuisances: light."
    assert method.one_hot(batch["s"]).tolist() == F.one_hot(batch["s"][:, 0], 2).float().tolist()
    torch.testing.assert_close(method.uniform_nuisances(torch.zeros(3, 4)), torch.full((3, 2), 0.5))
    method.nuisance_sizes_, method.nuisance_levels_ = [4], [[0, 2]]  # two of four colors, say, are in the training set
    torch.testing.assert_close(method.uniform_nuisances(torch.zeros(1, 4)), torch.tensor([[0.5, 0.0, 0.5, 0.0]]))
    alone = CAI(**SMALL).fit(labeled_table[0], labeled_table[1]["kind"].to_numpy())
    assert "nothing to be invariant to" in alone.diagnosis_[0]
    assert alone.one_hot(torch.zeros(5, 0, dtype=torch.long)).shape == (5, 0)


def test_cai_reverses_the_gradient_of_its_discriminators(labeled_table):
    method, net, batch = ready(CAI, labeled_table, strength=0.5)
    nuisance = method.loss(net, batch)["nuisance"]
    z = net.encoder(batch["x"])
    plain = F.cross_entropy(net.discriminators[0](z), batch["s"][:, 0])
    assert float(nuisance) == pytest.approx(float(plain), rel=1e-5)
    weights, heads = list(net.encoder.parameters()), list(net.discriminators.parameters())
    for turned, straight in zip(
        torch.autograd.grad(nuisance, weights + heads, retain_graph=True),
        [
            *(-0.5 * g for g in torch.autograd.grad(plain, weights, retain_graph=True)),
            *torch.autograd.grad(plain, heads),
        ],
        strict=True,
    ):
        torch.testing.assert_close(turned, straight, rtol=1e-4, atol=1e-7)
    x = torch.tensor(2.0, requires_grad=True)
    (slope,) = torch.autograd.grad(scale_gradient(x, -3.0) ** 2, x)
    assert float(scale_gradient(x, -3.0)) == pytest.approx(2.0) and float(slope) == pytest.approx(-12.0)


def test_cai_removes_nuisance_information_from_the_codes(labeled_table):
    x, table = labeled_table
    settings = {"steps": 400, "lr": 0.01, "batch_size": 64, "layers": (16,), "latent_dim": 4}
    left = {}
    for name, model in (("plain", CNNClassifier(**settings)), ("cai", CAI(**settings, strength=2.0))):
        z = model.fit(x, table).transform(x)
        assert model.score(x, table["kind"].to_numpy()) > 0.95
        left[name] = LogisticRegression().fit(z[:300], table["light"][:300]).score(z[300:], table["light"][300:])
    assert left["plain"] > 0.95 and left["cai"] < left["plain"] - 0.1


def test_the_loss_of_cvib_weights_three_terms_and_conditions_on_nuisances(labeled_table):
    method, net, batch = ready(CVIB, labeled_table, beta=0.3, strength=0.2)
    terms = method.loss(net, batch)
    mean, logvar = net.encoder(batch["x"]).chunk(2, 1)
    z = mean + batch["eps"] * (logvar / 2).exp()
    kl = 0.5 * (mean**2 + logvar.exp() - 1 - logvar).sum(1).mean()
    s = F.one_hot(batch["s"][:, 0], 2).float()
    rec = 0.5 * (net.decoder(torch.cat([z, s], 1)) - batch["x"]).square().sum(1).mean()
    ce = F.cross_entropy(net.classifier(z), batch["u"])
    assert float(terms["loss"]) == pytest.approx(float(ce + 0.5 * kl + 0.2 * rec), rel=1e-5)


def test_random_fourier_features_approximate_a_gaussian_kernel():
    torch.manual_seed(0)
    z = torch.randn(6, 3)
    slopes, phases = torch.randn(20_000, 3), 2 * math.pi * torch.rand(20_000)
    features = random_fourier_features(z, slopes, phases)
    expected = torch.exp(-torch.cdist(z, z).square() / (2 * 3))
    torch.testing.assert_close(features @ features.T, expected, atol=0.03, rtol=0)


def test_mean_discrepancy_is_the_distance_of_group_means_to_the_overall_mean():
    features = torch.tensor([[0.0, 0.0], [0.0, 2.0], [4.0, 0.0], [4.0, 2.0]])
    s = torch.tensor([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0, 0.0]])  # nobody has the third value
    assert float(mean_discrepancy(features, s)) == pytest.approx(4.0)  # each of two means is 2 away from the common one
    mixed = s[[0, 2, 0, 2]]
    assert float(mean_discrepancy(features, mixed)) == pytest.approx(1.0)
    assert float(mean_discrepancy(features, torch.zeros(4, 0))) == 0


@pytest.mark.parametrize("likelihood", ["gaussian", "bernoulli"])
def test_the_loss_of_vfae_is_cross_entropy_bound_and_mmd(labeled_table, likelihood):
    x, table = labeled_table
    shares = (x - x.min()) / (x.max() - x.min())
    method, net, batch = ready(VFAE, (shares, table), generative=0.1, mmd=3.0, likelihood=likelihood)
    terms = method.loss(net, batch)
    total = terms["ce"] + 0.1 * terms["bound"] + 3 * terms["mmd"]
    assert float(terms["loss"]) == pytest.approx(float(total), rel=1e-5)
    y, s = F.one_hot(batch["u"], 3).float(), F.one_hot(batch["s"][:, 0], 2).float()
    q1 = torch.distributions.Normal(*scale(net.encoder(batch["x"])))
    z1 = q1.mean + q1.stddev * batch["eps"]
    q2 = torch.distributions.Normal(*scale(net.up(torch.cat([z1, y], 1))))
    z2 = q2.mean + q2.stddev * batch["eps2"]
    p1 = torch.distributions.Normal(*scale(net.down(torch.cat([z2, y], 1))))
    decoded = net.decoder(torch.cat([z1, s], 1))
    rec = 0.5 * (decoded - batch["x"]).square().sum(1)
    if likelihood == "bernoulli":
        rec = F.binary_cross_entropy_with_logits(decoded, batch["x"], reduction="none").sum(1)
    divergence = torch.distributions.kl_divergence
    upper = divergence(q2, torch.distributions.Normal(0.0, 1.0)).sum(1)
    explained = (q1.log_prob(z1) - p1.log_prob(z1)).sum(1)
    assert float(terms["bound"]) == pytest.approx(float((rec + upper + explained).mean()), rel=1e-4)


def test_uai_reconstructs_after_dropout_and_reverses_gradients(labeled_table):
    method, net, batch = ready(UAI, labeled_table, dropout=0.5, gamma=2.0)
    terms = method.loss(net, batch)
    e = net.encoder(batch["x"])
    e1, e2 = e[:, :2], e[:, 2:]
    noisy = torch.where(batch["drop"] >= 0.5, 2 * e1, 0.0)
    rec = 0.5 * (net.decoder(torch.cat([noisy, e2], 1)) - batch["x"]).square().sum(1).mean()
    assert float(terms["rec"]) == pytest.approx(float(rec), rel=1e-5)
    plain = (net.guess[0](e1) - e2.detach()).square().mean() + (net.guess[1](e2) - e1.detach()).square().mean()
    assert float(terms["guess"]) == pytest.approx(float(plain), rel=1e-5)
    weights = list(net.encoder.parameters())
    turned, straight = (torch.autograd.grad(v, weights, retain_graph=True) for v in (terms["guess"], plain))
    for a, b in zip(turned, straight, strict=True):
        torch.testing.assert_close(a, -2 * b, rtol=1e-4, atol=1e-7)
    torch.testing.assert_close(net.classifier(e1), net.classifier(method.select_predictive(e)))
    with pytest.raises(InputError, match="dropout=1"):
        UAI(**SMALL, dropout=1.0).fit(*labeled_table)


def test_the_loss_of_the_vae_classifier_weights_three_terms(labeled_table):
    method, net, batch = ready(VAEClassifier, labeled_table, beta=3.0, generative=0.5)
    terms = method.loss(net, batch)
    total = terms["ce"] + 0.5 * terms["rec"] + 1.5 * terms["kl"]
    assert float(terms["loss"]) == pytest.approx(float(total), rel=1e-5)
    assert method.inverse_transform(method.transform(labeled_table[0][:3])).shape == (3, 4)


def test_labels_are_compared_by_value_in_every_form(labeled_table):
    x, table = labeled_table
    model = CNNClassifier(**SMALL | {"steps": 150, "lr": 0.02}).fit(x, table["kind"].to_numpy())
    part = table["kind"].to_numpy() != "a"  # in these data "b" is level 0
    assert model.score(as_data(x[part], table["kind"].to_numpy()[part])) > 0.95
    assert model.score(x, table[["kind"]]) == model.score(x, table["kind"]) > 0.95
    with pytest.raises(InputError, match=r"y has no column 'y' \(there are: kind, light\)"):  # which is the class?
        model.score(x, table)
    with pytest.raises(InputError, match="class 'z' was not learned"):
        model.score(as_data(x, table["kind"].replace("a", "z").to_numpy()))
    with pytest.raises(InputError, match="no factor is discrete"):
        model.score(as_data(x))
    light = table["light"].to_numpy()
    for y in (light.astype(float), light.astype(bool)):
        other = CNNClassifier(**SMALL | {"steps": 150, "lr": 0.02}).fit(x, y)
        assert other.score(x, y) > 0.95 and set(other.predict(x).tolist()) <= set(y.tolist())
    with pytest.raises(InputError, match="missing values"):
        CNNClassifier(**SMALL).fit(x, table["kind"].where(table["kind"] != "a").to_numpy())


def test_predictions_work_with_pandas_output(labeled_table):
    x, table = labeled_table
    model = CNNClassifier(**SMALL).fit(x, table["kind"].to_numpy()).set_output(transform="pandas")
    assert model.transform(x).columns[0] == "cnnclassifier0" and len(model.predict(x)) == len(x)


def test_only_named_nuisances_are_used(labeled_table):
    x, table = labeled_table
    model = CAI(**SMALL, nuisances=("light",)).fit(x, table.assign(extra=0 * table["light"]))
    assert model.nuisance_sizes_ == [2]
    with pytest.raises(InputError, match="named twice"):
        CAI(**SMALL, nuisances=("light", "light")).fit(x, table)


def test_the_accuracy_on_training_observations_is_told(labeled_table):
    x, table = labeled_table
    model = CNNClassifier(**SMALL | {"steps": 150, "lr": 0.02}, label="kind").fit(x, table)
    assert 0.9 < model.train_accuracy_ <= 1
    right = f"{model.train_accuracy_:.1%} (3 classes); for other observations, call score."
    assert model.diagnosis_ == [f"Training accuracy for 'kind': {right}"]
    assert (model.label_, model.column_, model.n_factors_, model.levels_) == ("kind", 0, 2, [0, 1, 2])
    assert model.named_codes() == {} and model.class_index(torch.tensor([2, 0])).tolist() == [2, 0]
    model.levels_ = [1, 5, 9]
    assert model.class_index(torch.tensor([9, 1, 5])).tolist() == [2, 0, 1]


def test_probabilities_are_the_softmax_of_the_head_in_double_precision(labeled_table):
    x, table = labeled_table
    model = CAI(**SMALL).fit(x, table)
    z = torch.from_numpy(np.asarray(model.transform(x[:5]))).double()
    head = model.net_.classifier[1]
    logits = torch.relu(z) @ head.weight.double().T + head.bias.double()
    np.testing.assert_allclose(model.predict_proba(x[:5]), torch.softmax(logits, 1).detach().numpy(), atol=1e-9)
    assert model.net_.classifier[1].weight.dtype == torch.float32, "the head itself is not changed"


def test_scores_of_weighted_observations(labeled_table):
    x, table = labeled_table
    model = CNNClassifier(**SMALL | {"steps": 150, "lr": 0.02}).fit(x, table["kind"].to_numpy())
    wrong = table["kind"].map({"a": "b", "b": "c", "c": "a"}).to_numpy()
    half = np.where(np.arange(600) < 300, table["kind"].to_numpy(), wrong)
    weight = np.where(np.arange(600) < 300, 3.0, 1.0)
    assert model.score(x, half) == pytest.approx(0.5, abs=0.05)
    assert model.score(x, half, weight) == pytest.approx(0.75, abs=0.05)
    assert model.score(as_data(x, half), sample_weight=weight) == pytest.approx(0.75, abs=0.05)
    with pytest.raises(InputError, match="score needs the classes: pass y"):
        model.score(x)
    with pytest.raises(InputError, match=r"class 'd' was not learned \(there are: a, b, c\)"):
        model.score(x[:1], ["d"])


def test_networks_have_a_head_for_every_nuisance(labeled_table):
    x, table = labeled_table
    model = CAI(**SMALL, discriminator=(5,)).fit(x, table.assign(size=np.arange(600) % 4))
    linear = [[m for m in d.modules() if isinstance(m, torch.nn.Linear)] for d in model.net_.discriminators]
    heads = [[m.out_features for m in layers] for layers in linear]
    assert heads == [[5, 2], [5, 4]] and model.net_.classifier[1].out_features == 3
    assert model.nuisance_columns_ == [1, 2] and model.diagnosis_[0] == "Nuisances: light, size."
    plan = model.plan(as_data(x, table.assign(size=np.arange(600) % 4)), 9, rng())
    assert plan.extras["s"].shape == (9, 2) and plan.extras["u"].shape == (9,)
    losses = [F.cross_entropy(torch.zeros(9, k), torch.zeros(9, dtype=torch.long)) for k in (2, 4)]
    net = model.net_
    for p in net.discriminators.parameters():
        torch.nn.init.zeros_(p)
    batch = {"x": torch.from_numpy(x[:9]), **plan.extras, "progress": torch.tensor(0.0)}
    terms = model.loss(net, batch)
    assert float(terms["nuisance"]) == pytest.approx(float(sum(losses)) / 2, rel=1e-5)
    assert float(terms["loss"]) == pytest.approx(float(terms["ce"] + terms["nuisance"]), rel=1e-5)
