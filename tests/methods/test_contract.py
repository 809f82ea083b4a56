"""The contract of methods. A new method is tested by being in the catalog."""

import inspect
import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import unweave
from tests.helpers import METHODS, NETWORKS, small_method
from unweave import InputError, as_data
from unweave.report.figures.registry import FIGURES

CLASSIFIERS = [name for name in NETWORKS if hasattr(METHODS[name], "predict")]
CLOSED = [name for name in METHODS if name not in NETWORKS]
Y = np.arange(120) % 3  # for those that need labels or pairs; the others ignore it


@pytest.fixture(scope="module")
def x():
    """Two uniform factors on a gently curved sheet in four dimensions."""
    z = np.random.default_rng(0).uniform(-1, 1, (120, 2))
    return np.stack([z[:, 0], z[:, 1], 0.1 * z[:, 0] ** 2, 0.1 * z[:, 1] ** 2], 1)


@pytest.mark.parametrize("name", METHODS)
def test_scikit_learn_accepts_the_estimator(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        # What is checked does not depend on how much was learned, but for classifiers, which must be right at times.
        right = {"steps": 25, "lr": 0.03, "latent_dim": 8, "layers": (32,)}
        right |= (
            {"classifier_lr": 0.1, "steps": 40, "lr": 0.02} if name == "swap-contrast" else {}
        )  # it follows the rest
        few = right if name in CLASSIFIERS else {"steps": 3} if name in NETWORKS else {}
        results = check_estimator(small_method(name, **few), on_fail=None, on_skip=None)
    failed = [f"{r['check_name']}: {r['exception']}" for r in results if r["status"] == "failed"]
    assert not failed, failed
    assert len([r for r in results if r["status"] == "passed"]) > 40


@pytest.mark.parametrize("name", METHODS)
def test_a_saved_and_loaded_method_gives_the_same_codes_to_the_bit(name, x, tmp_path):
    method = small_method(name, seed=3).fit(x, Y)
    method.save(tmp_path / "model")
    again = unweave.load(tmp_path / "model")
    assert again.get_params() == method.get_params()
    assert np.array_equal(again.transform(x), method.transform(x))


@pytest.mark.parametrize("name", METHODS)
def test_the_same_seed_gives_the_same_codes_to_the_bit(name, x):
    first, second = (small_method(name, seed=5).fit(x, Y).transform(x) for _ in range(2))
    assert np.array_equal(first, second)


@pytest.mark.parametrize("name", METHODS)
def test_it_works_in_a_pipeline_and_with_clone(name, x):
    method = small_method(name, seed=1)
    pipeline = make_pipeline(StandardScaler(), clone(method))
    codes = pipeline.fit_transform(x, Y)
    assert codes.shape == (len(x), 2)
    assert np.array_equal(
        codes, method.fit(StandardScaler().fit_transform(x), Y).transform(StandardScaler().fit_transform(x))
    )


@pytest.mark.parametrize("name", METHODS)
def test_codes_of_new_points_lie_between_those_of_their_neighbors(name, x):
    codes = small_method(name).fit(x[:100], Y[:100]).transform(x)
    assert codes.shape == (120, 2)
    assert np.isfinite(codes).all()
    low, high = codes[:100].min(0), codes[:100].max(0)
    room = 0.25 * (high - low)
    assert (codes[100:] > low - room).all()
    assert (codes[100:] < high + room).all()


@pytest.mark.parametrize("name", METHODS)
def test_bytes_are_read_as_images_in_0_to_1_and_decoded_in_their_shape(name):
    images = np.random.default_rng(0).integers(0, 256, (60, 1, 4, 4), dtype=np.uint8)
    method = small_method(name).fit(images, Y[:60])
    assert method.shape_ == (1, 4, 4)
    np.testing.assert_allclose(method.transform(images), method.transform(images.astype(np.float32) / 255), atol=1e-5)
    with pytest.raises(InputError, match=r"\(1, 4, 4\).*\(1, 4, 5\)"):
        method.transform(np.zeros((2, 1, 4, 5)))


@pytest.mark.parametrize("name", METHODS)
def test_a_decoder_inverts_the_encoder_or_its_absence_is_an_error(name, x):
    method = small_method(name).fit(x, Y)
    z = method.transform(x)
    if METHODS[name].decode is unweave.Method.decode:
        with pytest.raises(InputError, match="no decoder"):
            method.inverse_transform(z)
    else:
        again = method.inverse_transform(z)
        assert again.shape == x.shape
        if name in CLOSED:
            np.testing.assert_allclose(method.transform(again), z, atol=1e-6)
        with pytest.raises(InputError, match=r"expected \(n, 2\)"):
            method.inverse_transform(z[:, :1])


@pytest.mark.parametrize("name", METHODS)
def test_nan_is_refused_with_its_position(name, x):
    broken = x.copy()
    broken[7, 2] = np.nan
    with pytest.raises(InputError, match="NaN: first in row 7, column 2"):
        small_method(name).fit(broken, Y)
    with pytest.raises(InputError, match="infinity: first in row 0, column 0"):
        small_method(name).fit(x, Y).transform(np.full((3, 4), np.inf))


@pytest.mark.parametrize("name", CLOSED)
def test_more_factors_than_the_data_allow_are_refused(name, x):
    with pytest.raises(InputError, match="latent_dim=5"):
        small_method(name, latent_dim=5).fit(x)


@pytest.mark.parametrize("name", METHODS)
def test_no_factors_are_refused(name, x):
    with pytest.raises(InputError, match="at least one"):
        small_method(name, latent_dim=0).fit(x, Y)


@pytest.mark.parametrize("name", METHODS)
def test_constant_data_are_refused(name):
    with pytest.raises(InputError, match="constant"):
        small_method(name).fit(np.ones((60, 4)), Y[:60])


@pytest.mark.parametrize("name", METHODS)
def test_an_altered_model_is_refused(name, x, tmp_path):
    small_method(name).fit(x, Y).save(tmp_path / "m")
    weights = tmp_path / "m" / "model.safetensors"
    blob = bytearray(weights.read_bytes())
    blob[-1] ^= 1
    weights.write_bytes(blob)
    with pytest.raises(InputError, match="truncated or altered"):
        unweave.load(tmp_path / "m")
    config = tmp_path / "m" / "config.json"
    config.write_text(config.read_text()[:40])
    with pytest.raises(InputError, match="truncated or altered"):
        unweave.load(tmp_path / "m")


@pytest.mark.parametrize("name", METHODS)
def test_tensors_and_arrays_give_the_same_codes(name, x):
    method = small_method(name).fit(torch.from_numpy(x), Y)
    assert np.array_equal(method.transform(torch.from_numpy(x)), method.transform(x))


@pytest.mark.parametrize("name", METHODS)
def test_paper_docstring_and_help_texts_exist(name):
    cls = METHODS[name]
    assert cls.paper
    assert (cls.__doc__ or "").strip()
    assert json.dumps(cls().get_params(deep=False))
    source = inspect.getsource(cls)
    for field in cls.__dataclass_fields__:
        if f"    {field}:" in source:
            assert source.split(f"    {field}:")[1].split("\n")[1].strip().startswith('"""'), f"{field} has no help"


@pytest.mark.parametrize("name", METHODS)
def test_capabilities_are_valid(name, x):
    method = small_method(name, **{"steps": 2} if name in NETWORKS else {}).fit(x, Y)
    assert all(callable(figure) or figure in FIGURES for figure in method.figures())
    assert sorted(j for group in method.feature_groups() for j in group) == list(range(method.latent_dim_))
    likelihood = method.log_likelihood(method.history)
    assert likelihood is None or np.isfinite(likelihood)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_loss_is_read_in_at_most_five_files(name, x):
    data = as_data(x, Y)
    method = small_method(name, steps=2).fit(data)
    rng = torch.Generator().manual_seed(0)
    plan = method.plan(data, 16, rng)
    views = {view: data.render(points).float() for view, points in plan.views.items()}
    batch = views | plan.extras | method.sample_noise(16, rng) | {"progress": torch.tensor(0.5)}
    root, entered = Path(unweave.__file__).parent, set()
    sys.setprofile(lambda frame, event, value: entered.add(Path(frame.f_code.co_filename)))
    try:
        method.loss(method.net_, batch)
    finally:
        sys.setprofile(None)
    assert len({path for path in entered if path.is_relative_to(root)}) <= 5


STRENGTHS = {  # of the terms of losses, as the pages of the methods and the papers' tables name them
    "ada-gvae": "beta=1", "ada-ml-vae": "beta=1", "annealed-vae": "gamma=1000 capacity=25 anneal=0.3333",
    "beta-tc-vae": "beta=6", "beta-vae": "beta=4", "cai": "strength=0.03", "cvib": "beta=0.001 strength=0.01",
    "dip-vae": "off_diagonal=10 diagonal=10", "factor-vae": "gamma=10 critic_lr=0.0001",
    "infogan-cr": "info=0.05 contrast=2 lr=0.001",
    "intervention-autoencoder": "lambda_in=0.25 lambda_adv=10 lambda_diff=1 inner_lr=0.001 lr=0.0001 weight_lr=1e-05",
    "ivae": "beta=1 noise_variance=0.1", "gin": "noise=0.01", "self-supervised-gin": "noise=0.01",
    "swap-contrast": "alpha=1 beta=300 gamma=1 prediction=300 generative=1 temperature=0.1 classifier_lr=0.01",
    "uai": "alpha=100 beta=0.1 gamma=1", "vae-classifier": "beta=1 generative=0.01", "vfae": "generative=0.01 mmd=1",
}  # fmt: skip


@pytest.mark.parametrize(("name", "text"), STRENGTHS.items())
def test_strengths_are_those_of_the_papers(name, text):
    method = METHODS[name]()
    expected = dict(pair.split("=") for pair in text.split())
    assert {key: f"{getattr(method, key):.4g}" for key in expected} == expected
