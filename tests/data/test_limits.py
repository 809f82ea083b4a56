"""Limits of a user's own files: wide tables, memory, special files, and nothing that is dropped in silence."""

import os
import struct
import time
import warnings
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import unweave
from unweave import InputError, OwnData, as_data
from unweave.cli.main import main
from unweave.data.readers.codes import read_codes, read_factors
from unweave.data.readers.images import image_files
from unweave.data.readers.tables import read_table
from unweave.utils.files import check_exists

WIDE = 20_000  # columns


def load(path: Path, **settings):
    return OwnData(path=path, **settings).load()


def pictures(folder: Path, *names: str) -> Path:
    for i, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (4, 4), 10 * i).save(folder / name)
    return folder


def test_a_wide_table_is_read_in_linear_time(tmp_path):
    """With a comparison of every name with every other one, this takes twenty seconds."""
    x = np.random.default_rng(0).integers(-99, 99, size=(3, WIDE))
    names = [f"gene{i}" for i in range(WIDE)]
    lines = [",".join(names), *(",".join(map(str, row)) for row in x)]
    (tmp_path / "genes.csv").write_text("\n".join(lines))
    start = time.process_time()
    assert load(tmp_path / "genes.csv", columns=tuple(names), drop_constant=True).shape[0] > WIDE - 10
    assert time.process_time() - start < 8, "seconds of a processor that may be busy; 1 is usual"


# Nothing is dropped in silence ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("5.1,3.5,setosa\n4.9,3.0,setosa\n6.0,2.7,virginica\n5.0,3.1,virginica\n", 4),  # a text occurs again
        ("s1,5.1,3.5\ns2,4.9,3.0\ns3,6.0,2.7\n", None),  # may be names: a warning
        ("1,2\n3,4\n5,7\n", None),
        ("red,1\nblue,2\nred,3\n", 3),
        ("cat,small\ndog,large\ncat,large\n", None),
        ("a,b\n1,2\n3,4\n", 2),
        (",0,1\n0,5,3\n1,6,4\n", 2),  # as pandas writes numbered columns
    ],
)
def test_a_first_line_of_values_is_read_or_reported(text, rows, tmp_path, recwarn):
    (tmp_path / "t.csv").write_text(text)
    table = read_table(tmp_path / "t.csv")
    warned = [str(w.message) for w in recwarn if "is taken as the names of the columns" in str(w.message)]
    assert bool(warned) == (rows is None)
    assert len(table) == (text.count("\n") - 1 if rows is None else rows)


def test_a_folder_that_cannot_be_read_is_an_error(tmp_path, monkeypatch):
    folder = pictures(tmp_path / "photos", "a/1.png", "a/2.png", "b/3.png")
    scan = os.scandir

    def refuse(path):
        if Path(path).name == "b":
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(InputError, match=r"photos/b cannot be read: Permission denied"):
        image_files(folder)


def test_links_to_folders_are_followed_and_endless_ones_refused(tmp_path):
    folder = pictures(tmp_path / "photos", "a/1.png", "a/2.png")
    pictures(tmp_path / "elsewhere", "3.png")
    (folder / "b").symlink_to(tmp_path / "elsewhere")
    assert [path.name for path in image_files(folder)] == ["1.png", "2.png", "3.png"]
    (folder / "a" / "back").symlink_to(folder)
    with pytest.raises(InputError, match="back is a link to a folder that contains it"):
        image_files(folder)


def test_a_link_to_nothing_and_a_pipe_among_images_are_errors(tmp_path):
    folder = pictures(tmp_path / "photos", "1.png", "2.png")
    (folder / "3.png").symlink_to(folder / "lost.png")
    with pytest.raises(InputError, match=r"3\.png is a link to .*lost\.png, which does not exist"):
        load(folder)
    (folder / "3.png").unlink()
    os.mkfifo(folder / "3.png")
    with pytest.raises(InputError, match=r"3\.png is a named pipe: expected a file"):
        load(folder)


def test_files_that_are_no_images_are_noted(tmp_path):
    folder = pictures(tmp_path / "photos", "1.png", "2.png", "3.png")
    (folder / "4.heic").write_bytes(b"")
    assert "left out: 1 file that is no image (4.heic)" in load(folder).notes


@pytest.mark.parametrize(
    ("arrays", "match"),
    [
        ({"factors": np.eye(6)[:, :2], "factor_names": np.array(["a", "a"])}, "two factors named 'a'"),
        ({"factors": np.eye(6)[:, :2], "factor_names": np.array(["a"])}, "1 name in `factor_names` for 2 factors"),
        ({"factors": np.eye(6)[:, :2] * 1j}, "array 'factors' .* holds complex128: expected factors that are numbers"),
        ({"factors": np.zeros((6, 2, 2))}, r"array 'factors' .* has shape \(6, 2, 2\)"),
    ],
)
def test_factors_of_an_npz_are_complete_or_refused(arrays, match, tmp_path):
    np.savez(tmp_path / "a.npz", x=np.random.default_rng(0).normal(size=(6, 3)), **arrays)
    with pytest.raises(InputError, match=match):
        load(tmp_path / "a.npz")


def test_two_columns_of_one_name_in_a_parquet_file_are_refused(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table([[1.0, 2], [3.0, 5]], names=["a", "a"]), tmp_path / "t.parquet")
    with pytest.raises(InputError, match="several columns named 'a'"):
        load(tmp_path / "t.parquet")


# Memory ---------------------------------------------------------------------------------------------------------------


def npz_bomb(path: Path, rows: int) -> Path:
    """Write an array of zeros as .npz: a thousandth of what it unpacks to."""
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({rows}, 10), }}".ljust(117).encode() + b"\n"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("x.npy", "w", force_zip64=True) as file,
    ):
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
        for _ in range(rows // 1000):
            file.write(bytes(80_000))
    return path


def parquet_bomb(path: Path, rows: int) -> Path:
    pd.DataFrame({"a": np.zeros(rows), "b": np.zeros(rows)}).to_parquet(path)
    return path


def png_bomb(path: Path, side: int) -> Path:
    """Write a black image by its bytes, row by row."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    pack = zlib.compressobj()
    row = bytes(side + 1)
    pixels = b"".join([*(pack.compress(row) for _ in range(side)), pack.flush()])
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0))
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", pixels) + chunk(b"IEND", b""))
    return path


def test_files_that_unpack_to_more_than_the_limit_are_refused(tmp_path):
    limit = 0.002  # gigabytes
    bombs = [npz_bomb(tmp_path / "a.npz", 100_000), parquet_bomb(tmp_path / "a.parquet", 200_000)]
    png_bomb(tmp_path / "photos" / "a.png", 1500)
    bombs.append(png_bomb(tmp_path / "photos" / "b.png", 1500).parent)
    for path in bombs:
        with pytest.raises(InputError, match=r"takes .* MB of memory: expected at most 2 MB, the limit"):
            load(path, max_memory=limit)


def test_a_table_of_text_is_refused_by_its_number_of_cells(tmp_path):
    (tmp_path / "a.csv").write_text("a,b,c,d\n" + "1,2,3,4\n" * 2_000)
    with pytest.raises(InputError, match=r"a\.csv takes 64 kB of memory: expected at most 20 kB"):
        load(tmp_path / "a.csv", max_memory=2e-5)


def test_the_limit_is_no_part_of_the_content_and_no_limit_for_what_is_mapped(tmp_path):
    np.save(tmp_path / "a.npy", np.random.default_rng(0).normal(size=(500, 20)))
    data = OwnData(path=tmp_path / "a.npy", memory=1e-5, max_memory=1e-5)
    assert data.load().reader is not None
    assert data.recipe() == OwnData(path=tmp_path / "a.npy", memory=1e-5).recipe()


# Special files --------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["a.csv", "a.npy", "a.npz", "a.parquet"])
def special(request, tmp_path):
    return tmp_path / request.param


def test_pipes_and_devices_are_refused_and_not_waited_for(special):
    os.mkfifo(special)
    for read in (load, read_codes, read_factors):
        with pytest.raises(InputError, match="is a named pipe: expected a file"):
            read(special)
    special.unlink()
    special.symlink_to("/dev/zero")
    with pytest.raises(InputError, match="is a device: expected a file"):
        load(special)


def test_endless_links_and_odd_names_are_refused(special):
    special.symlink_to(special)
    with pytest.raises(InputError, match="a link that leads back to itself"):
        check_exists(special)
    with pytest.raises(InputError, match="cannot be opened"):
        check_exists(Path("a\0.csv"))


def test_a_long_double_is_read_as_a_double(tmp_path):
    x = np.random.default_rng(0).normal(size=(5, 3))
    np.save(tmp_path / "a.npy", x.astype(np.longdouble))
    np.savez(tmp_path / "a.npz", x=x.astype(np.longdouble), factors=x.astype(np.longdouble)[:, 0])
    assert load(tmp_path / "a.npy").x.numpy().tolist() == x.tolist()
    assert load(tmp_path / "a.npz").c[:, 0].tolist() == x[:, 0].tolist()
    assert as_data(x.astype(np.longdouble)).x.numpy().tolist() == x.tolist()


# One gate for absurd settings and values ------------------------------------------------------------------------------


def ends(*args):
    with pytest.raises(SystemExit) as end:
        main(list(map(str, args)))
    return end.value.code


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "\n".join(f"{i % 7},{3 * i % 11},{5 * i % 13}" for i in range(40))
    (tmp_path / "t.csv").write_text(f"a,b,c\n{text}\n")
    return "t.csv"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--batch-size", 10**12), "batches of 1,000,000,000,000 need 8.41 PB at least"),
        (("--latent-dim", 10**9), "1 network of 770,000,133,635 parameters"),
        (("--layers", 10**8), "1 network of 3,800,000,023 parameters"),
        (("--steps", 10**21), "expected an integer of at most 18 digits"),
    ],
)
def test_absurd_settings_are_refused_before_anything_is_allocated(table, flags, message, capsys, monkeypatch):
    monkeypatch.setattr("unweave.training.memory.free_memory", lambda: 12e9)
    assert ends("fit", "beta-vae", table, "--steps", 3, *flags, "--out", "out") == 2
    assert message in capsys.readouterr().err
    assert not Path("out").exists()


def test_memory_that_a_library_does_not_get_is_an_error_of_the_user(table, capsys, monkeypatch):
    def refuse(*args):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes")

    monkeypatch.setattr("unweave.data.own_data.read_rows", refuse)
    assert ends("fit", "pca", table) == 2
    assert "not enough memory" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.eye(6, 3) * 3e307, "contains 3e.307: first in row 0, column 'column 0'; 3 values are not below 1e.75"),
        (np.eye(6, 3) * -1e75, "contains -1e.75"),
        (np.eye(6, 3, dtype=np.float32) * np.float32(1e30), "not below 1e.18"),
        (np.eye(6, 3, dtype=np.longdouble) * np.longdouble("1e400"), "infinity"),
        (np.array([[np.nan, 1e300], [1.0, 2.0]]), "contains NaN: .* 2 values are NaN or infinite"),
    ],
)
def test_numbers_whose_powers_overflow_are_refused(x, message, tmp_path):
    np.save(tmp_path / "x.npy", x)
    with pytest.raises(InputError, match=message), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        load(tmp_path / "x.npy")
    factor = 1e17 if x.dtype == np.float32 else 1e74
    np.save(tmp_path / "y.npy", (np.arange(18.0).reshape(6, 3) % 7 * factor / 10).astype(x.dtype))
    assert np.isfinite(unweave.methods.PCA(latent_dim=1).fit_transform(load(tmp_path / "y.npy"))).all()


def test_lists_in_a_column_of_a_parquet_file_are_refused(table, tmp_path, capsys):
    pd.DataFrame({"a": [1.0, 2, 3], "b": [[1], [2, 3], []]}).to_parquet(tmp_path / "t.parquet")
    for args in (("fit", "pca", "t.parquet"), ("score", table, "--factors", "t.parquet")):
        assert ends(*args) == 2
        assert "column 'b' of t.parquet holds lists or records" in capsys.readouterr().err


def test_special_files_are_refused_wherever_a_file_is_named(table, capsys):
    os.mkfifo("pipe.csv")
    for args in (("fit", "pca", "pipe.csv"), ("fit", "pca", table, "--data.table", "pipe.csv"),
                 ("score", table, "--factors", "pipe.csv"), ("score", table, "--inputs", "pipe.csv"),
                 ("fit", "pca", table, "--codes", "pipe.csv")):  # fmt: skip
        assert ends(*args) == 2
        assert "pipe.csv" in capsys.readouterr().err
    os.mkfifo("config.json")
    with pytest.raises(InputError, match="is a named pipe or a device"):
        unweave.load(Path.cwd())
