"""Datasets of images: their geometry, their files, their splits."""

import gzip
import hashlib
import io
import math
import struct
import tarfile
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from PIL import Image
from scipy.io import savemat

from unweave import GeneratorManifold, InputError, as_data
from unweave.data.augment import COMBINATIONS, affine, draw_affine, warp
from unweave.data.downloads import MissingData, PublishedFile
from unweave.data.splits import correlated_split, held_out
from unweave.data.supervision import pairs, transformed
from unweave.datasets import (
    EMNIST,
    MNIST,
    MPI3D,
    Cars3D,
    ColoredMNIST,
    ContinuousSprites,
    DSprites,
    Faces,
    Flowers102,
    GeneratedFaces,
    RotationColoredMNIST,
    Shapes3D,
    SmallNORB,
)
from unweave.datasets.dsprites import render_sprites
from unweave.datasets.shapes3d import HUES

FRAMES = Path(__file__).parents[1] / "reference" / "dsprites_frames.npz"


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty data folder."""
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path))
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def pretend(folder, monkeypatch):
    """Put files of our own making in the place of a dataset's originals, with their hashes."""

    def put(cls, contents: dict[str, bytes]):
        originals = []
        for original in cls.files:
            name = Path(original.file).name
            content = contents.get(name, b"")
            (folder / original.file).parent.mkdir(exist_ok=True)
            (folder / original.file).write_bytes(content)
            originals.append(
                PublishedFile(original.file, f"sha256:{hashlib.sha256(content).hexdigest()}", original.url)
            )
        monkeypatch.setattr(cls, "files", tuple(originals))

    return put


# dSprites ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sprites():
    return DSprites(source="rendered").load()


def test_published_images_come_out_to_the_pixel(sprites):
    with np.load(FRAMES, allow_pickle=False) as reference:
        images = np.unpackbits(reference["bits"], axis=1).reshape(-1, 64, 64)
        latents = torch.from_numpy(reference["latents"].astype(np.int64))
    assert set(latents[:, 0].tolist()) == {0, 1, 2}
    assert np.array_equal(sprites.render(latents)[:, 0].numpy(), images)


def test_all_frames_of_the_official_animation_come_out_to_the_pixel(sprites, real_data):
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


def test_the_original_file_is_used_where_it_is_found_and_named_so(sprites, pretend, monkeypatch):
    monkeypatch.setattr("unweave.datasets.dsprites.FACTORS", sprites.factors[:1])
    images = sprites.render(torch.tensor([[s, 5, 3, 9, 9] for s in range(3)]))[:, 0].byte().numpy()
    buffer = io.BytesIO()
    np.savez(buffer, imgs=images)
    assert DSprites().title() == "dsprites (re-rendered)"
    pretend(DSprites, {Path(DSprites.files[0].file).name: buffer.getvalue()})
    assert DSprites().title() == "dsprites"
    assert DSprites().recipe() != DSprites(source="rendered").recipe()
    assert np.array_equal(DSprites().load().render(torch.arange(3)[:, None])[:, 0].numpy(), images)


def test_smooth_sprites_cover_what_their_outline_encloses():
    """The area of an ellipse is pi a b, of the square (2 s)^2, whatever the angle and the place."""
    n = 20
    u = torch.rand(4, n, generator=rng(), dtype=torch.float64)
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


# 3DShapes and MPI3D -----------------------------------------------------------------------------------------------


def test_colors_of_a_room_mix_linearly_and_geometry_stays():
    room = Shapes3D(source="rendered").load()
    c = room.sample(10, rng())
    x = room.render(c)
    assert x.shape == (10, 3, 64, 64)
    other = c.clone()
    other[:, 0] = (c[:, 0] + 5) % 10
    changed = (room.render(other) - x).abs().amax(1) > 0.02  # (10, 64, 64)
    assert changed[:, 48:].float().mean() > 0.5, "the floor is below"
    assert changed[:, :16].float().mean() < 0.01, "and not above"


def test_a_room_is_the_sky_plus_each_surface_in_its_color(monkeypatch):
    room = Shapes3D(source="rendered").load()
    c = torch.tensor([[1, 4, 7, 2, 3, 9]])
    geometry = (2 * 4 + 3) * 15 + 9
    basis = room.basis[geometry].float() / 255
    by_hand = basis[3:].clone()
    for surface, hue in enumerate((1, 4, 7)):
        by_hand += HUES[hue][:, None] * basis[surface]
    torch.testing.assert_close(room.render(c)[0], by_hand.clamp(0, 1).reshape(3, 64, 64))
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    torch.testing.assert_close(room.render(c)[0], by_hand.clamp(0, 1).reshape(3, 64, 64))


def test_rooms_fit_into_50_megabytes():
    room = Shapes3D(source="rendered").load()
    assert len(room) == 480_000
    assert room.basis.nbytes <= 50e6


def test_the_original_rooms_are_read_from_their_file(pretend, monkeypatch, tmp_path):
    monkeypatch.setattr("unweave.datasets.shapes3d.FACTORS", (Shapes3D(source="rendered").load().factors[4],))
    images = np.random.default_rng(0).integers(0, 256, (4, 64, 64, 3), dtype=np.uint8)
    with h5py.File(tmp_path / "made.h5", "w") as file:
        file["images"] = images
    pretend(Shapes3D, {"3dshapes.h5": (tmp_path / "made.h5").read_bytes()})
    x = Shapes3D().load().render(torch.arange(4)[:, None])
    assert np.array_equal((x * 255).round().byte().permute(0, 2, 3, 1).numpy(), images)
    assert Shapes3D().title() == "shapes3d"
    pretend(Shapes3D, {"3dshapes.h5": b"not hdf5"})
    with pytest.raises(InputError, match="cannot be read"):
        Shapes3D().load()


def test_mpi3d_is_read_from_its_file(pretend, monkeypatch):
    monkeypatch.setattr("unweave.datasets.mpi3d.FACTORS", (Shapes3D(source="rendered").load().factors[4],))
    images = np.random.default_rng(0).integers(0, 256, (4, 64, 64, 3), dtype=np.uint8)
    buffer, wrong = io.BytesIO(), io.BytesIO()
    np.savez(buffer, images=images)
    np.savez(wrong, pictures=images)
    pretend(MPI3D, {"mpi3d_real.npz": buffer.getvalue(), "mpi3d_toy.npz": wrong.getvalue()})
    x = MPI3D(variant="real").load().render(torch.arange(4)[:, None])
    assert np.array_equal((x * 255).round().byte().permute(0, 2, 3, 1).numpy(), images)
    assert MPI3D(variant="real").title() == "mpi3d-real"
    with pytest.raises(InputError, match="no array 'images' but pictures"):
        MPI3D().load()


# Digits -----------------------------------------------------------------------------------------------------------


def idx(array: np.ndarray) -> bytes:
    return gzip.compress(struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes())


@pytest.fixture
def digits(pretend):
    """Thirty images of noise, three of each digit, in the place of MNIST and EMNIST."""
    images = np.random.default_rng(0).integers(0, 256, (30, 28, 28), dtype=np.uint8)
    labels = (np.arange(30) % 10).astype(np.uint8)
    for cls in (MNIST, EMNIST):
        names = [Path(f.file).name for f in cls.files]
        pretend(cls, {name: idx(images if "images" in name else labels) for name in names})
    for cls in (ColoredMNIST, RotationColoredMNIST):
        cls.files = MNIST.files
    return images


def test_digits_are_read_and_emnist_is_turned_upright(digits):
    mnist, emnist = (cls().load() for cls in (MNIST, EMNIST))
    assert np.array_equal(mnist.x[:, 0].numpy(), digits)
    assert np.array_equal(emnist.x[:, 0].numpy(), digits.transpose(0, 2, 1))
    assert mnist.c[:, 0].tolist() == [float(i % 10) for i in range(30)]


def test_the_real_mnist_is_whole(real_data):
    data = MNIST(split="test").load()
    assert len(data) == 10_000
    assert data.c[:10, 0].tolist() == [7, 2, 1, 0, 4, 1, 4, 9, 5, 9]
    assert len(MNIST().load()) == 60_000


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"hello", "not a complete IDX file"),
        (gzip.compress(b"\0\0\x0d\x01\0\0\0\x01abcd"), "not an IDX file of bytes"),
        (gzip.compress(b"\0\0\x08\x01\0\0\0\x09abcd"), "promises .* and holds 4 values"),
        (gzip.compress(b"\0\0\x08\x01\0\0\0\x04abcd")[:-4], "not a complete IDX file"),
    ],
    ids=["no gzip", "another type", "too short", "cut off"],  # the bytes hold the time, and workers compare names
)
def test_bad_idx_files_are_refused(pretend, content, text):
    pretend(MNIST, {"train-images-idx3-ubyte.gz": content, "train-labels-idx1-ubyte.gz": idx(np.zeros(4, np.uint8))})
    with pytest.raises(InputError, match=text):
        MNIST().load()


def test_images_and_labels_of_different_sets_are_refused(pretend):
    images, labels = idx(np.zeros((3, 2, 2), np.uint8)), idx(np.zeros(4, np.uint8))
    pretend(MNIST, {"train-images-idx3-ubyte.gz": images, "train-labels-idx1-ubyte.gz": labels})
    with pytest.raises(InputError, match="are not of one set"):
        MNIST().load()


def test_a_missing_file_says_how_to_get_it(folder):
    with pytest.raises(
        MissingData, match=r"train-images.* is not in .*unweave data make mnist --download; license: CC"
    ):
        MNIST().load()
    with pytest.raises(MissingData, match=r"Get it from nist\.gov") as caught:
        EMNIST().load()
    assert "--download" not in str(caught.value)


def test_ten_colors_are_independent_of_the_digit_or_tied_to_it(digits):
    free, tied = ColoredMNIST().load(), ColoredMNIST(strength=0.1).load()
    for data, low, high in ((free, -0.05, 0.05), (tied, 0.9, 1)):
        c = data.labels(data.sample(5000, rng()))
        assert low < torch.corrcoef(c.T)[0, 1] < high
    with pytest.raises(InputError, match="positive"):
        ColoredMNIST(strength=-1).load()
    with pytest.raises(InputError, match="leave it out for the form 'backgrounds'"):
        ColoredMNIST(strength=1, form="backgrounds").load()


def test_a_painted_digit_is_the_gray_one_times_its_color(digits):
    data = ColoredMNIST().load()
    points = torch.tensor([[4, 7]])  # row 4 in color 7
    gray = torch.from_numpy(digits[4]).float() / 255
    torch.testing.assert_close(data.render(points)[0], gray * HUES[7][:, None, None])


def test_backgrounds_of_the_test_are_new_and_never_reach_training_pairs(digits):
    for cls, names in (
        (ColoredMNIST, ("color", "background")),
        (RotationColoredMNIST, ("color", "background", "angle")),
    ):
        options = {"form": "backgrounds"} if cls is ColoredMNIST else {}
        train, test = (cls(split=s, **options).load() for s in ("train", "test"))
        assert tuple(f.name for f in train.factors[1:]) == names
        plan = pairs(train, 400, rng(), k=2, among=names)
        seen = torch.cat([train.labels(plan.views[v]) for v in ("x", "x2")])
        new = test.labels(test.sample(400, rng()))
        assert set(seen[:, 2].tolist()) == {0, 1, 2}
        assert set(new[:, 2].tolist()) == {3, 4, 5}
        if cls is RotationColoredMNIST:
            assert set(seen[:, 3].tolist()) == {2, 3, 4, 5, 6}
            assert set(new[:, 3].tolist()) == {0, 1, 4, 7, 8}


# Toys, flowers, faces ---------------------------------------------------------------------------------------------


def norb(array: np.ndarray) -> bytes:
    magic = {"uint8": 0x1E3D4C55, "int32": 0x1E3D4C54}[array.dtype.name]
    shape = [*array.shape, *[1] * (3 - array.ndim)]
    return gzip.compress(struct.pack(f"<ii{len(shape)}i", magic, array.ndim, *shape) + array.tobytes())


def test_smallnorb_is_read_from_its_files(pretend):
    images = np.random.default_rng(0).integers(0, 256, (6, 2, 96, 96), dtype=np.uint8)
    info = np.array([[4, 0, 34, 5], [6, 8, 0, 0], [7, 1, 2, 1], [8, 2, 4, 2], [9, 3, 6, 3], [4, 4, 8, 4]], np.int32)
    category = np.arange(6, dtype=np.int32) % 5
    names = [Path(f.file).name for f in SmallNORB.files[:3]]
    pretend(SmallNORB, dict(zip(names, (norb(images), norb(category), norb(info)), strict=True)))
    data = SmallNORB(size=96).load()
    assert np.array_equal(data.x[:, 0].numpy(), images[:, 0])
    assert data.c[0].tolist() == [0, 4, 0, 17, 5]
    assert data.levels(1).tolist() == [4, 6, 7, 8, 9]
    small = SmallNORB(size=48).load().x[:, 0].float()
    mean = torch.from_numpy(images[:, 0]).float().reshape(6, 48, 2, 48, 2).mean((2, 4))
    assert (small - mean).abs().max() <= 0.5
    pretend(SmallNORB, dict.fromkeys(names, gzip.compress(b"\1\2\3\4\0\0\0\0")))
    with pytest.raises(InputError, match="not a complete NORB file"):
        SmallNORB().load()


def test_cars_are_read_from_their_archive(pretend):
    cars = np.random.default_rng(0).integers(0, 256, (2, 128, 128, 3, 24, 4), dtype=np.uint8)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as archive:

        def add(name, content):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))

        add("data/cars/list.txt", b"car_b_mesh\ncar_a_mesh\n")
        for name, car in zip(("car_b_mesh", "car_a_mesh"), cars, strict=True):
            file = io.BytesIO()
            savemat(file, {"im": car})
            add(f"data/cars/{name}.mat", file.getvalue())
    pretend(Cars3D, {"nips2015-analogy-data.tar.gz": buffer.getvalue()})
    data = Cars3D(size=128).load()
    assert [f.size for f in data.factors] == [4, 24, 2]
    x = data.render(torch.tensor([[3, 20, 1]]))[0]
    assert np.array_equal((x * 255).round().byte().permute(1, 2, 0).numpy(), cars[1, :, :, :, 20, 3])
    assert Cars3D().load().shape == (3, 64, 64)
    pretend(Cars3D, {"nips2015-analogy-data.tar.gz": buffer.getvalue()[:1000]})
    with pytest.raises(InputError, match="not the archive of Cars3D"):
        Cars3D().load()


def jpeg(color, size=(64, 64)) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", size, color).save(buffer, "JPEG", quality=95)
    return buffer.getvalue()


def test_flowers_follow_the_official_split_and_are_cropped(pretend):
    labels, split = io.BytesIO(), io.BytesIO()
    savemat(labels, {"labels": np.array([[3, 1, 102, 3]])})
    savemat(split, {"trnid": np.array([[4, 1]]), "valid": np.array([[2]]), "tstid": np.array([[3]])})
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        for i in range(4):
            content = jpeg((60 * i, 0, 0), size=(100, 80))
            member = tarfile.TarInfo(f"jpg/image_{i + 1:05d}.jpg")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    pretend(
        Flowers102,
        {"imagelabels.mat": labels.getvalue(), "setid.mat": split.getvalue(), "102flowers.tgz": archive.getvalue()},
    )
    data = Flowers102(split="train").load()
    assert data.x.shape == (2, 3, 64, 64)
    assert data.c[:, 0].tolist() == [2, 2]
    assert [abs(int(v) - w) < 4 for v, w in zip(data.x[:, 0, 5, 5], (180, 0), strict=True)] == [True, True]
    assert Flowers102().load().c[:, 0].tolist() == [2, 0, 101, 2]


def test_the_real_flowers_have_their_official_numbers(real_data):
    assert [len(Flowers102(split=s).load()) for s in ("train", "valid")] == [1020, 1020]


def test_faces_are_read_from_their_packed_manifold(pretend):
    buffer, factors = io.BytesIO(), io.BytesIO()
    np.save(factors, np.array([[0.5, -0.5], [1, 0]]))
    with zipfile.ZipFile(buffer, "w") as packed:
        packed.writestr("00001.jpg", jpeg((255, 255, 255)))
        packed.writestr("00000.jpg", jpeg((0, 0, 0)))
        packed.writestr("factors.npy", factors.getvalue())
    pretend(Faces, {"faces-14.zip": buffer.getvalue(), "faces-01.zip": b"PK"})
    data = Faces(manifold="14").load()
    assert data.x[:, 0, 0, 0].tolist() == [0, 255]
    assert data.c.tolist() == [[0.5, -0.5], [1, 0]]
    assert [f.name for f in data.factors] == ["direction1", "direction4"]
    with pytest.raises(InputError, match="is not a packed manifold"):
        Faces().load()


def test_any_generator_makes_a_manifold():
    def generate(w):
        return torch.stack([w[:, 0] + 10 * w[:, 2], w[:, 1]], 1)

    directions = torch.tensor([[1.0, 0, 0], [0, 2, 0]])
    data = GeneratorManifold(generate, directions, origin=torch.tensor([0, 0, 1.0]), spread=3, points=500)
    x, c = data.collect(1, rng())
    torch.testing.assert_close(x, torch.stack([c[:, 0] + 10, 2 * c[:, 1]], 1))
    assert c.abs().max() <= 3
    assert c.abs().max() > 2.9
    layered = GeneratorManifold(lambda w: w.sum(2), torch.ones(2, 4, 3), points=7, names=("a", "b"))
    assert layered.shape == (4,)
    assert [f.name for f in layered.factors] == ["a", "b"]
    with pytest.raises(InputError, match="expected one row per factor"):
        GeneratorManifold(generate, torch.ones(3))
    with pytest.raises(InputError, match="1 names for 2 directions"):
        GeneratorManifold(generate, directions, names=("a",))


def test_faces_are_generated_along_chosen_directions_and_layers(folder, monkeypatch):
    """With a generator whose image is its latent: what reaches which layer can be read off the picture."""
    from unweave.datasets import faces
    from unweave.datasets.stylegan import Directions, Weights

    basis = Directions(torch.full((512,), 0.5), torch.eye(512)[:3], torch.tensor([0.1, 0.2, 0.05]))
    monkeypatch.setattr(faces, "find_weights", lambda: Weights(Path("m.xml"), Path("s.xml")))
    monkeypatch.setattr(faces, "OpenVinoNetwork", lambda path: None)
    monkeypatch.setattr(faces, "principal_directions", lambda mapping, samples, count: basis)
    show = lambda w: torch.nn.functional.pad(w[:, None, :, :64].expand(-1, 3, -1, -1), (0, 0, 0, 41))  # noqa: E731
    monkeypatch.setattr(faces, "face_generator", lambda: show)
    dataset = GeneratedFaces(directions=(1, 2), layers=(3, 5), points=4)
    x, c = dataset.load().collect(1, rng())
    assert dataset.title() == "faces-1-2 (generated, layers 3 to 5)"
    torch.testing.assert_close(x[:, 0, 3, 1], 0.5 + 0.2 * c[:, 0].float(), atol=1 / 255, rtol=0)
    torch.testing.assert_close(x[:, 0, 4, 2], 0.5 + 0.05 * c[:, 1].float(), atol=1 / 255, rtol=0)
    assert (x[:, 0, 5, 1] - 0.5).abs().max() < 1 / 255, "the layers beyond stay as they are"
    monkeypatch.setattr(faces, "face_generator", lambda: pytest.fail("made twice"))
    assert torch.equal(dataset.load().collect(1, rng()).x, x)
    with pytest.raises(InputError, match=r"layers=\(5, 5\)"):
        GeneratedFaces(layers=(5, 5), points=4).load()


# Augmentation and splits ------------------------------------------------------------------------------------------


def test_a_quarter_turn_a_shift_and_a_scale_do_what_they_say():
    image = torch.zeros(1, 1, 8, 8)
    image[0, 0, 1, 6] = 1  # above, on the right
    one, none = torch.ones(1), torch.zeros(1)
    turned = warp(image, affine(torch.tensor([90.0]), torch.zeros(1, 2), one))
    assert turned[0, 0, 1, 1] == pytest.approx(1, abs=1e-5), "counter-clockwise: above, on the left"
    moved = warp(image, affine(none, torch.tensor([[-0.25, 0.5]]), one))
    assert moved[0, 0, 5, 4] == pytest.approx(1, abs=1e-5), "two pixels to the left, four down"
    block = torch.zeros(1, 1, 8, 8)
    block[..., 3:5, 3:5] = 1
    assert warp(block, affine(none, torch.zeros(1, 2), 2 * one)).sum() == pytest.approx(16, abs=2), "twice as wide"
    assert torch.equal(warp(image, affine(none, torch.zeros(1, 2), one)).round(), image)


def test_a_turn_of_an_oblong_image_keeps_squares_square():
    image = torch.zeros(1, 1, 16, 32)
    image[..., 4:12, 20:28] = 1  # eight by eight, eight to the right of the middle
    turned = warp(image, affine(torch.tensor([90.0]), torch.zeros(1, 2), torch.ones(1), aspect=2.0))[0, 0]
    expected = torch.zeros(16, 32)
    expected[:4, 12:20] = 1  # half of it is above the edge
    torch.testing.assert_close(turned, expected, atol=1e-4, rtol=0)
    plan = transformed(as_data(image.numpy()), 4, rng(), kinds=("rotation",), copies=2)
    theta = plan.extras["theta"][1::2]
    torch.testing.assert_close(theta[:, 1, 0], -4 * theta[:, 0, 1])


def test_random_transformations_keep_to_their_ranges():
    theta = draw_affine(2000, rng(), ("translation", "rotation", "scaling"))
    scale = 1 / torch.linalg.det(theta[:, :, :2]).sqrt()
    angle = torch.rad2deg(torch.atan2(theta[:, 1, 0], theta[:, 0, 0]))
    shift = -torch.linalg.solve(theta[:, :, :2], theta[:, :, 2]) / 2
    for value, low, high in ((scale, 0.8, 1.25), (angle, 0, 5), (shift, -0.1, 0.1)):
        assert low - 1e-4 <= value.min() < low + 0.02 * (high - low)
        assert high - 0.02 * (high - low) < value.max() <= high + 1e-4
    still = draw_affine(3, rng(), ())
    assert torch.equal(still, torch.eye(2, 3).expand(3, 2, 3))


def test_an_augmented_set_is_the_image_and_its_seven_transformations(sprites):
    plan = transformed(sprites, 5, rng())
    assert len(COMBINATIONS) == 7
    theta = plan.extras["theta"].reshape(5, 8, 2, 3)
    assert torch.equal(theta[:, 0], torch.eye(2, 3).expand(5, 2, 3))
    for i, kinds in enumerate(COMBINATIONS, 1):
        moves = theta[:, i, :, 2].abs().amax(1) > 0
        turns = theta[:, i, 0, 1].abs() > 0
        scales = (torch.linalg.det(theta[:, i, :, :2]) - 1).abs() > 1e-5
        assert (moves.all(), turns.all(), scales.all()) == tuple(
            k in kinds for k in ("translation", "rotation", "scaling")
        )
    images = warp(sprites.render(plan.views["x"]), plan.extras["theta"]).reshape(5, 8, 64, 64)
    torch.testing.assert_close(images[:, 0], sprites.render(plan.views["x"][::8])[:, 0], atol=1e-4, rtol=0)


def test_held_out_rows_are_never_trained_on(sprites):
    rest, test = held_out(sprites, 50_000, seed=3)
    assert (len(rest), len(test)) == (687_280, 50_000)
    numbers = [(s.points * sprites.strides).sum(1) for s in (rest, test)]
    assert len(torch.cat(numbers).unique()) == 737_280
    with pytest.raises(InputError, match="cannot be held out"):
        held_out(sprites, 737_280)


def test_the_split_of_the_intervention_paper(sprites):
    split = correlated_split(sprites, ("x", "scale"), strength=0.2, train=20_000, test=50_000)
    assert [len(s) for s in split] == [20_000, 20_000, 50_000]
    found = [torch.corrcoef(s.labels(s.points).double().T)[1, 3].item() for s in split]
    assert found[0] > 0.7
    assert max(map(abs, found[1:])) < 0.03
    held = set((split.test.points * sprites.strides).sum(1).tolist())
    for training in split[:2]:
        assert held.isdisjoint((training.points * sprites.strides).sum(1).tolist())
    others = torch.corrcoef(split.correlated.labels(split.correlated.points).double().T)
    assert others[[0, 0, 2, 2], [1, 2, 3, 4]].abs().max() < 0.03, "only the two are tied"


def test_painted_digits_are_held_out_whole(digits):
    data = ColoredMNIST().load()
    split = correlated_split(data, ("label", "color"), strength=0.3, train=500, test=60)
    held = set(split.test.points[:, 0].tolist())
    assert len(split.test) == 60
    assert len(held) == 6
    for training in split[:2]:
        assert held.isdisjoint(training.points[:, 0].tolist())


def test_moved_data_find_rows_anew():
    data = as_data(np.zeros((4, 1)), [0, 1, 0, 1])
    data.locate(torch.tensor([[1.0]]), rng())
    assert "_index" not in vars(data.to("cpu"))
