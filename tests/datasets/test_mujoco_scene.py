"""Rendering with MuJoCo. Where it is not installed, or can draw nothing, what needs no picture is still tested."""

import contextlib
import importlib.util
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from unweave import InputError
from unweave.data.downloads import MissingData
from unweave.datasets import mpi3d_like, shapes3d_scene
from unweave.datasets.mpi3d_like import MPI3DLike
from unweave.datasets.shapes3d import HUES, Shapes3D

DRAW = "import mujoco; mujoco.Renderer(mujoco.MjModel.from_xml_string('<mujoco/>'), 64, 64).close()"


@pytest.fixture(scope="module")
def drawing():
    """MuJoCo with whatever graphics library there is. It chooses one when imported, so others are tried outside."""
    if importlib.util.find_spec("mujoco") is None:
        pytest.skip("mujoco is not installed: pip install 'unweave[render]'")
    with pytest.MonkeyPatch.context() as patch:
        if "mujoco" not in sys.modules and "MUJOCO_GL" not in os.environ:
            for library in ("egl", "osmesa"):
                patch.setenv("MUJOCO_GL", library)
                if subprocess.run([sys.executable, "-c", DRAW], capture_output=True, check=False).returncode == 0:
                    break
        try:
            with shapes3d_scene.make_room():
                pass
        except MissingData as error:
            pytest.skip(str(error))
        yield


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path))
    return tmp_path


@pytest.fixture
def no_mujoco(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)  # importing it raises ModuleNotFoundError


def kept(dataset):
    """A file in the cache such as rendering leaves there."""
    dataset.path().parent.mkdir(parents=True)
    images = np.random.default_rng(0).integers(256, size=(dataset.points, 64, 64, 3), dtype=np.uint8)
    np.savez_compressed(dataset.path(), images=images, factors=dataset.combinations())
    return images


def combinations(n, sizes, seed=0):
    rng = np.random.default_rng(seed)
    return np.stack([rng.integers(size, size=n) for size in sizes], 1)


# Without MuJoCo -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "work", [MPI3DLike(points=3).load, shapes3d_scene.render_shapes3d_basis], ids=["mpi3d", "shapes3d"]
)
def test_without_mujoco_the_error_says_how_to_install_it(work, no_mujoco, cache):
    with pytest.raises(MissingData, match=r"pip install 'unweave\[render\]'.*MUJOCO_GL=egl or MUJOCO_GL=osmesa"):
        work()
    assert not list(cache.rglob("*"))


def test_without_a_screen_the_error_says_what_to_set(monkeypatch, cache):
    def refuse(*_):
        raise RuntimeError("no display")

    broken = SimpleNamespace(
        MjModel=SimpleNamespace(from_xml_string=str),
        MjData=str,
        MjvCamera=lambda: SimpleNamespace(lookat=[]),
        Renderer=refuse,
    )
    monkeypatch.setitem(sys.modules, "mujoco", broken)
    with pytest.raises(MissingData, match=r"cannot draw \(RuntimeError: no display\).*MUJOCO_GL=egl"):
        MPI3DLike(points=3).load()
    assert not [path for path in cache.rglob("*") if path.is_file()]


def test_images_that_are_kept_need_no_mujoco(no_mujoco):
    dataset = MPI3DLike(points=5, seed=3)
    images = kept(dataset)
    data = dataset.load()
    x, c = data.collect(5, torch.Generator())
    assert data.shape == (3, 64, 64)
    assert torch.equal((x * 255).round().byte(), torch.from_numpy(images).permute(0, 3, 1, 2))
    assert c.dtype == torch.float64
    assert np.array_equal(c.numpy(), dataset.combinations())
    assert dataset.title() == dataset.recipe()["name"] == "mpi3d (look-alike)"


@pytest.mark.parametrize("share", [0, 0.02, 0.5, 0.999])
def test_a_truncated_file_is_refused_by_name(share, no_mujoco):
    dataset = MPI3DLike(points=2)
    kept(dataset)
    content = dataset.path().read_bytes()
    dataset.path().write_bytes(content[: int(share * len(content))])
    with pytest.raises(InputError, match=rf"{dataset.path().name} is truncated or altered .*: remove it"):
        dataset.load()


def test_an_altered_file_and_one_of_another_recipe_are_refused_by_name(no_mujoco):
    dataset, larger = MPI3DLike(points=2), MPI3DLike(points=4)
    kept(dataset)
    content = bytearray(dataset.path().read_bytes())
    dataset.path().replace(larger.path())
    with pytest.raises(InputError, match=rf"{larger.path().name} is truncated or altered \(images of shape \(2, 64"):
        larger.load()
    content[len(content) // 2] ^= 1
    dataset.path().write_bytes(content)
    with pytest.raises(InputError, match=rf"{dataset.path().name} is truncated or altered"):
        dataset.load()


def test_every_recipe_has_its_own_combinations_and_its_own_file(monkeypatch):
    first, again, other = MPI3DLike(points=500), MPI3DLike(points=500), MPI3DLike(points=500, seed=1)
    assert np.array_equal(first.combinations(), again.combinations())
    assert not np.array_equal(first.combinations(), other.combinations())
    assert len(np.unique(first.combinations(), axis=0)) == 500
    assert first.combinations().max(0).tolist() == [5, 5, 1, 2, 2, 39, 39]
    assert first.combinations().min(0).tolist() == [0] * 7
    old = first.path()
    assert old == again.path()
    assert len({old, other.path(), MPI3DLike(points=501).path()}) == 3
    monkeypatch.setattr(MPI3DLike, "version", MPI3DLike.version + 1)
    assert first.path() != old


@pytest.mark.parametrize("points", [0, 1_036_801])
def test_a_number_of_images_that_cannot_be_is_refused(points):
    with pytest.raises(InputError, match=rf"points={points}: expected from 1 to 1,036,800"):
        MPI3DLike(points=points).load()


def test_a_cache_that_cannot_be_written_is_named_before_anything_is_rendered(cache, monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", SimpleNamespace())
    (cache / "mpi3d-like").write_text("in the way")
    with pytest.raises(InputError, match=r"cannot write .*mpi3d-like"):
        MPI3DLike(points=2).load()


def test_the_basis_goes_by_scale_shape_and_orientation_and_says_how_far_it_is(monkeypatch):
    def number(_scene, geometry):
        value = np.ravel_multi_index(geometry, (8, 4, 15)) % 251
        return np.full((3, 64, 64), value, np.uint8), np.full((64, 64, 3), value + 1, np.uint8)

    monkeypatch.setattr(shapes3d_scene, "make_room", contextlib.nullcontext)
    monkeypatch.setattr(shapes3d_scene, "render_surfaces", number)
    texts = []
    shade, sky = shapes3d_scene.render_shapes3d_basis(texts.append)
    assert shade.shape == (8, 4, 15, 3, 64, 64)
    assert sky.shape == (8, 4, 15, 64, 64, 3)
    assert shade.dtype == sky.dtype == np.uint8
    assert np.array_equal(shade[..., 0, 0, 0].ravel(), np.arange(480) % 251)
    assert np.array_equal(sky[..., 0, 0, 0], shade[..., 0, 0, 0] + 1)
    assert texts[:2] == ["rendering: 0 of 480 geometries", "rendering: 20 of 480 geometries"]


# With MuJoCo ----------------------------------------------------------------------------------------------------


def test_an_image_is_the_sky_plus_three_surfaces_times_their_colors(drawing):
    rows = combinations(8, (10, 10, 10, 8, 4, 15))
    rows[:, 4] = np.arange(8) % 4  # every shape
    direct = shapes3d_scene.render_shapes3d(rows).astype(float)
    with shapes3d_scene.make_room() as scene:
        parts = [shapes3d_scene.render_surfaces(scene, geometry) for geometry in rows[:, 3:].tolist()]
    shade, sky = (np.stack(arrays).astype(float) for arrays in zip(*parts, strict=True))
    colors = HUES.numpy()[rows[:, :3]]  # (image, surface, channel)
    composed = np.clip(sky + np.einsum("nshw,nsc->nhwc", shade, colors), 0, 255)
    difference = np.abs(composed - direct)
    assert difference.mean() < 0.3
    # What is not saturated agrees to the rounding of the parts' bytes.
    dull = (sky.max(-1) + shade.sum(1) < 250)[..., None]
    assert (difference * dull > 3).mean() < 1e-3


def test_the_basis_that_is_shipped_is_the_one_that_is_rendered(drawing):
    rows = combinations(6, (10, 10, 10, 8, 4, 15), seed=1)
    shipped = Shapes3D(source="rendered").load().render(torch.from_numpy(rows)).permute(0, 2, 3, 1).numpy()
    # 0.1 of 255 with MuJoCo 4.0, 0.7 with 3.3, whose textures differ
    assert np.abs(255 * shipped - shapes3d_scene.render_shapes3d(rows)).mean() < 2


def test_rendering_is_a_function_of_the_combination(drawing):
    rows = MPI3DLike(points=6, seed=2).combinations()
    texts = []
    images = mpi3d_like.render_mpi3d(rows, texts.append)
    assert texts == ["rendering: 0 of 6 images"]
    assert np.array_equal(mpi3d_like.render_mpi3d(rows[::-1])[::-1], images)
    rooms = combinations(4, (10, 10, 10, 8, 4, 15), seed=2)
    assert np.array_equal(shapes3d_scene.render_shapes3d(rooms[::-1])[::-1], shapes3d_scene.render_shapes3d(rooms))


def test_every_factor_can_be_seen(drawing):
    middle = np.array([2, 1, 1, 1, 1, 10, 28])
    other = np.tile(middle, (7, 1)) + np.diag([1, 1, -1, 1, 1, 5, 5])
    images = mpi3d_like.render_mpi3d(np.concatenate([middle[None], other])).astype(int)
    changed = (np.abs(images[1:] - images[0]).max(-1) > 8).mean((1, 2))  # share of the pixels
    assert changed.min() > 0.01
    assert images[0].max() > 100


def test_the_second_time_nothing_is_rendered(drawing, monkeypatch):
    dataset = MPI3DLike(points=4)
    first = dataset.load()
    monkeypatch.setattr(mpi3d_like, "render_mpi3d", lambda *_: pytest.fail("rendered again"))
    second = dataset.load()
    assert torch.equal(first.x, second.x)
    assert torch.equal(first.c, second.c)
    assert [path.name for path in dataset.path().parent.iterdir()] == [dataset.path().name]
