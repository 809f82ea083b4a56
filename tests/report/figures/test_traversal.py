"""Traversals, reconstructions, interpolations and KL per code."""

import numpy as np
import pytest
import torch
from PIL import Image

from unweave import InputError
from unweave.methods import PCA, BetaVAE
from unweave.report.figures.style import save_figure
from unweave.report.figures.traversal import (
    draw_interpolation,
    draw_kl_per_code,
    draw_reconstructions,
    draw_traversals,
    interpolate,
    save_animation,
    traverse_code,
)

X = np.random.default_rng(0).uniform(size=(40, 1, 8, 8)).astype(np.float32)


@pytest.fixture(scope="module")
def vae():
    return BetaVAE(steps=20, latent_dim=3, widths=(4,), hidden=(8,)).fit(X)


def test_a_traversal_changes_one_code_only():
    z = np.random.default_rng(0).normal(size=(1_000, 3))
    line = traverse_code(z, 1, 7, 5)
    assert line.shape == (5, 3)
    assert (line[:, [0, 2]] == z[7, [0, 2]]).all()
    np.testing.assert_allclose(line[[0, -1], 1], np.quantile(z[:, 1], [0.05, 0.95]))


def test_a_traversal_has_one_row_per_code_and_starts_with_the_observation(vae, tmp_path):
    figure = draw_traversals(vae, X, steps=4)
    (axis,) = figure.axes
    assert len(axis.get_yticklabels()) == 3
    picture = axis.images[0].get_array()
    assert picture.shape == (3 * 10, 5 * 10, 3)  # images of 8 with a gap of 1 around
    np.testing.assert_allclose(picture[1:9, 1:9, 0], X[0, 0], atol=1e-6)
    deviations = [float(text.get_text().split("std. ")[1]) for text in axis.get_yticklabels()]
    assert deviations == sorted(deviations, reverse=True)
    save_figure(figure, tmp_path / "t.png")
    assert Image.open(tmp_path / "t.png").width > 100


def test_an_animation_runs_forward_and_back(vae, tmp_path):
    path = save_animation(vae, X, tmp_path / "codes.gif", scale=3)
    gif = Image.open(path)
    assert gif.n_frames > 20
    assert gif.size == (3 * 10 * 3, 10 * 3)


def test_an_interpolation_starts_and_ends_with_the_observations(vae):
    images = interpolate(vae, X[0], X[1], steps=5)
    assert images.shape == (7, 1, 8, 8)
    np.testing.assert_array_equal(images[[0, -1]], X[[0, 1]])
    ends = vae.inverse_transform(vae.transform(X[:2]))
    np.testing.assert_allclose(images[[1, -2]], ends, atol=1e-6)
    assert len(draw_interpolation(vae, X[0], X[1]).axes) == 1
    assert [t.get_text() for t in draw_reconstructions(vae, X[:4]).axes[0].get_yticklabels()] == [
        "observed",
        "reconstructed",
    ]


def test_kl_per_code_needs_a_posterior_and_is_sorted(vae):
    heights = [bar.get_height() for bar in draw_kl_per_code(vae, X).axes[0].patches]
    assert heights == sorted(heights, reverse=True)
    nats = vae.kl_per_code(torch.from_numpy(X)).mean(0).detach()
    assert heights == pytest.approx(sorted(nats.tolist(), reverse=True), rel=1e-5)
    as_bytes = [bar.get_height() for bar in draw_kl_per_code(vae, (X * 255).astype(np.uint8)).axes[0].patches]
    np.testing.assert_allclose(as_bytes, heights, atol=0.05)
    with pytest.raises(InputError, match="no posterior"):
        draw_kl_per_code(PCA(latent_dim=2).fit(X), X)


def test_only_images_have_traversals(vae):
    table = np.random.default_rng(0).normal(size=(40, 4))
    with pytest.raises(InputError, match="only images"):
        draw_traversals(PCA(latent_dim=2).fit(table), table)
