"""dSprites: pixels, memory, and sprites with continuous factors."""

import io
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.helpers import generator
from unweave import InputError
from unweave.datasets import (
    ContinuousSprites,
    DSprites,
)
from unweave.datasets.dsprites import render_sprites

FRAMES = Path(__file__).parents[1] / "reference" / "dsprites_frames.npz"


def test_rendered_images_equal_published_ones(sprites):
    with np.load(FRAMES, allow_pickle=False) as reference:
        images = np.unpackbits(reference["bits"], axis=1).reshape(-1, 64, 64)
        latents = torch.from_numpy(reference["latents"].astype(np.int64))
    assert set(latents[:, 0].tolist()) == {0, 1, 2}
    assert np.array_equal(sprites.render(latents)[:, 0].numpy(), images)


def test_all_frames_of_the_official_animation_are_reproduced(sprites, real_data):
    frames = np.load(real_data / "real_samples" / "dsprites_gif_frames.npy", allow_pickle=False) > 0
    latents = torch.from_numpy(np.load(real_data / "real_samples" / "dsprites_gif_latents.npy", allow_pickle=False))
    equal = (sprites.render(latents)[:, 0].numpy() == frames).all((1, 2))
    assert (equal.sum(), len(equal)) == (320, 320)
    with np.load(real_data / "real_samples" / "dsprites_notebook_images.npz", allow_pickle=False) as notebook:
        differ = (sprites.render(torch.from_numpy(notebook["lat"]))[:, 0].numpy() != notebook["img"]).sum((1, 2))
    assert ((differ == 0).sum(), len(differ)) == (41, 43)
    assert differ.max() <= 2


def test_dsprites_fits_into_400_megabytes(sprites):
    assert len(sprites) == 737_280
    assert sprites.bits.nbytes <= 400e6


def test_the_first_and_the_last_orientation_are_the_same_image(sprites):
    first, last = (torch.tensor([[2, 3, o, 10, 20]]) for o in (0, 39))
    assert torch.equal(sprites.render(first), sprites.render(last))


def test_the_published_file_is_preferred_and_named_in_the_title(sprites, fake_files, monkeypatch):
    monkeypatch.setattr("unweave.datasets.dsprites.FACTORS", sprites.factors[:1])
    images = sprites.render(torch.tensor([[s, 5, 3, 9, 9] for s in range(3)]))[:, 0].byte().numpy()
    buffer = io.BytesIO()
    np.savez(buffer, imgs=images)
    assert DSprites().title() == "dsprites (re-rendered)"
    fake_files(DSprites, {Path(DSprites.files[0].file).name: buffer.getvalue()})
    assert DSprites().title() == "dsprites"
    assert DSprites().recipe() != DSprites(source="rendered").recipe()
    assert np.array_equal(DSprites().load().render(torch.arange(3)[:, None])[:, 0].numpy(), images)


def test_smooth_sprites_cover_what_their_outline_encloses():
    """The area of an ellipse is pi a b, of the square (2 s)^2, whatever the angle and the place."""
    n = 20
    u = torch.rand(4, n, generator=generator(), dtype=torch.float64)
    scale = 0.5 + 0.5 * u[0]
    areas = [render_sprites(shape, scale, 6.28 * u[1], u[2], u[3]).sum((1, 2)) for shape in (0, 1)]
    torch.testing.assert_close(areas[0], (2 * 9.598 * scale) ** 2)
    polygon = math.sin(2 * math.pi / 100) * 100 / (2 * math.pi)  # of 100 corners, in an ellipse of area 1
    torch.testing.assert_close(areas[1], math.pi * 12.7665 * 7.2162 * polygon * scale**2)


def test_smooth_sprites_agree_with_the_hard_ones(sprites):
    c = torch.tensor([[2, 5, o, 7, 21] for o in range(0, 40, 5)])
    d = c.double()
    smooth = render_sprites(2, 0.5 + 0.1 * d[:, 1], 2 * math.pi * d[:, 2] / 39, d[:, 3] / 31, d[:, 4] / 31)
    hard = sprites.render(c)[:, 0]
    assert ((smooth - hard).abs() > 0.75).sum() == 0, "a pixel whose center is inside is at least a quarter covered"
    torch.testing.assert_close(smooth.sum((1, 2)), hard.double().sum((1, 2)), rtol=0.03, atol=1.0)


def test_continuous_sprites_move_smoothly_in_every_factor():
    data = ContinuousSprites(vary=("scale", "angle", "x", "y"), points=5).load()
    c = data.sources.repeat_interleave(4, 0)
    step = 1e-3 * torch.eye(4).repeat(5, 1)
    change = (data.render((c + step).double()) - data.render(c.double())).abs().amax((1, 2, 3)).reshape(5, 4)
    assert change.min() > 1e-3
    # Moved by d pixels, an edge gives or takes at most sqrt(2) d of a pixel: no jumps, however the edge lies.
    assert change[:, 2:].max() < 2**0.5 * 32e-3
    assert change[:, :2].max() < 2**0.5 * 13e-3 * 2, "no corner is further than 13 pixels from the center"
    with pytest.raises(InputError, match="each once"):
        ContinuousSprites(vary=("x", "x")).load()
