"""Real files with random damage: tables of scikit-learn as CSV, npz, npy, Parquet and HDF5, photographs, runs."""

from __future__ import annotations

import io
import random
import re
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image
from sklearn import datasets

TOKENS = [
    b"nan", b"1e309", b"-inf", b",", b'"', b"\n", b"\r", b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"PK\x03\x04", b"PAR1",
    b"{", b"]", b"\x93NUMPY", b"'O'", b"'<f8'", b"99999999999", b"-1", b"#", b"\t", b"=cmd()", b"None", b"\\", b"\x80",
]  # fmt: skip
Damage = Callable[[bytearray, random.Random], bytearray]


def flip_bits(content: bytearray, rng: random.Random) -> bytearray:
    for _ in range(rng.choice([1, 3, 30])):
        bit = rng.randrange(8 * len(content))
        content[bit // 8] ^= 1 << bit % 8
    return content


def cut_off(content: bytearray, rng: random.Random) -> bytearray:
    return content[: rng.randrange(len(content))]


def cut_out(content: bytearray, rng: random.Random) -> bytearray:
    start = rng.randrange(len(content))
    return content[:start] + content[start + rng.randrange(1, 200) :]


def repeat(content: bytearray, rng: random.Random) -> bytearray:
    start = rng.randrange(len(content))
    return content[:start] + content[start : start + 100] * rng.choice([2, 50]) + content[start:]


def insert(content: bytearray, rng: random.Random) -> bytearray:
    start = rng.randrange(len(content))
    return content[:start] + rng.choice(TOKENS) * rng.choice([1, 1, 40]) + content[start:]


def overwrite(content: bytearray, rng: random.Random) -> bytearray:
    start, size = rng.randrange(len(content)), rng.randrange(1, 60)
    content[start : start + size] = rng.randbytes(size)
    return content


def enlarge_number(content: bytearray, rng: random.Random) -> bytearray:
    """Replace a number that is written in digits, such as a shape in a header, by a huge, negative or odd one."""
    numbers = list(re.finditer(rb"\d+", bytes(content)))
    if not numbers:
        return insert(content, rng)
    start, end = rng.choice(numbers[: rng.choice([5, len(numbers)])]).span()
    return content[:start] + rng.choice([b"999999999999", b"-3", b"0", b"1e400", b"2.5"]) + content[end:]


DAMAGES: list[Damage] = [flip_bits, cut_off, cut_out, repeat, insert, overwrite, enlarge_number]


@cache
def real_files() -> dict[str, bytes]:
    """Return the contents of real files by their names."""
    iris = pd.DataFrame(datasets.load_iris().data[::3], columns=["a", "b", "c", "d"])
    wine = datasets.load_wine(as_frame=True).frame.iloc[::4]
    digits = datasets.load_digits().images[:40].astype(np.uint8)
    photo = Image.fromarray(datasets.load_sample_image("flower.jpg")).resize((24, 18))
    files = {
        "iris.csv": iris.to_csv(index=False).encode(), "wine.tsv": wine.to_csv(index=False, sep="\t").encode(),
        "iris.parquet": _saved(iris.to_parquet), "digits.npy": _saved(lambda file: np.save(file, digits)),
        "digits.npz": _saved(lambda file: np.savez(file, images=digits, labels=np.arange(40) % 10)),
        "packed.npz": _saved(lambda file: np.savez_compressed(file, x=wine.to_numpy())),
        "photo.png": _saved(lambda file: photo.save(file, "PNG")),
        "photo.jpg": _saved(lambda file: photo.save(file, "JPEG")),
    }  # fmt: skip
    return files | {"iris.h5": _h5(iris.to_numpy())}


def _saved(save: Callable[[io.BytesIO], Any]) -> bytes:
    file = io.BytesIO()
    save(file)
    return file.getvalue()


def _h5(values: np.ndarray) -> bytes:
    import h5py

    file = io.BytesIO()
    with h5py.File(file, "w") as archive:
        archive["x"] = values
    return file.getvalue()


def write_damaged(folder: Path, files: dict[str, bytes], rng: random.Random) -> tuple[str, str]:
    """Write a damaged copy of a real file, sometimes under another suffix; return its name and the damage."""
    name = rng.choice(sorted(files))
    content, done = bytearray(files[name]), []
    for _ in range(rng.choice([1, 1, 2])):
        damage = rng.choice(DAMAGES)
        content = damage(content, rng) or bytearray(b"\n")
        done.append(damage.__name__)
    stem, suffix = name.split(".")
    if rng.random() < 0.1:
        suffix = rng.choice(["csv", "npz", "npy", "parquet", "png", "json", "h5", "xlsx", "zip"])
    if suffix not in ("png", "jpg"):
        (folder / f"{stem}.{suffix}").write_bytes(content)
        return f"{stem}.{suffix}", f"{name}: {', '.join(done)}"
    photos = folder / "photos"
    photos.mkdir()
    for i in range(4):
        (photos / f"{i}.{name.split('.')[1]}").write_bytes(files[name])
    (photos / f"4.{suffix}").write_bytes(content)
    return "photos", f"{name}: {', '.join(done)}"


def damage_folder(folder: Path, rng: random.Random) -> str:
    """Damage one file of a folder; return which, and how."""
    path = rng.choice(sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size))
    if rng.random() < 0.1:
        path.unlink()
        path.mkdir()
        return f"{path.name} is a folder"
    damage = rng.choice(DAMAGES)
    path.write_bytes(damage(bytearray(path.read_bytes()), rng))
    return f"{path.name}: {damage.__name__}"


def remove(folder: Path) -> None:
    """Remove a folder with all that is in it."""
    shutil.rmtree(folder, ignore_errors=True)
