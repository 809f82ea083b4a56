"""Bad inputs made by hypothesis: tables, arrays, archives and folders of images."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pandas as pd
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from PIL import Image

Make = Callable[[Path], str]  # writes an input into a folder, and returns its name there

NUMBERS = [
    "", "0", "-1", "1", "2.5", "nan", "NaN", "NA", "inf", "-inf", "1e400", "1e308", "-1e307", "1e-320", "1_000", "1,5",
    "0x10", "9" * 30, "1e", "+", "--1", "1+2j", "True", "2020-01-01", "12:30", "(1, 2)", "[1]", "None",
]  # fmt: skip
TEXTS = [
    "a",
    "ä",
    "\u0000",
    '"',
    "'",
    "a b",
    " ",
    "\t",
    "💥",
    "=1+1",
    "$\\frac$",
    "<b>",
    "../x",
    "x" * 300,
    "\u202e",
    "code1",
]
CELLS = st.one_of(st.sampled_from(NUMBERS), st.sampled_from(TEXTS), st.floats().map(repr), st.text(max_size=6))
DTYPES = [
    "f2", "f4", "f8", ">f8", "g", "c8", "c16", "i1", "i8", "u1", "u8", "?", "S3", "U3", "M8[s]", "m8[s]",
    [("a", "f4"), ("b", "i4")],
]  # fmt: skip
VALUES = [0, 1, -1, 2.5, 1e300, -1e300, 1e-320, np.nan, np.inf, 255, 256, 2**62]


def examples(strategy: st.SearchStrategy[Any], count: int, seed: int) -> list[Any]:
    """Return examples of a strategy, the same for a seed."""
    found: list[Any] = []

    @hypothesis.seed(seed)
    @settings(max_examples=count, database=None, deadline=None, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @hypothesis.given(strategy)
    def collect(example: Any) -> None:
        found.append(example)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        collect()
    return found


# Tables and arrays ----------------------------------------------------------------------------------------------------


@st.composite
def tables(draw: Any) -> Make:
    """Draw a text file of odd cells, some of its rows too short or too long."""
    width, height = draw(st.integers(0, 5)), draw(st.integers(0, 12))
    rows = draw(st.lists(st.lists(CELLS, min_size=width, max_size=width), min_size=height, max_size=height))
    plain = [[f"{(7 * i + 3 * j) % 11}" for j in range(width)] for i in range(height)]
    if draw(st.booleans()):  # one odd cell among numbers
        rows, plain = plain, rows
        if width and height:
            rows[draw(st.integers(0, height - 1))][draw(st.integers(0, width - 1))] = draw(CELLS)
    if rows and draw(st.integers(0, 4)) == 0:
        rows[-1] = draw(st.lists(CELLS, max_size=8))
    header = draw(st.sampled_from([[], [f"c{j}" for j in range(width)], ["c"] * width, [""] * width]))
    mark = draw(st.sampled_from([",", ";", "\t", "|", " "]))
    text = draw(st.sampled_from(["\n", "\r\n", "\r"])).join(
        mark.join(row) for row in ([header] if header else []) + rows
    )
    encoding = draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "latin-1"]))
    name = draw(st.sampled_from(["data.csv", "data.tsv", "data.txt", "data.CSV"]))
    return writer(name, text.encode(encoding, errors="replace"))


@st.composite
def any_array(draw: Any) -> np.ndarray:
    """Draw an array of any type and shape, with values at the limits of its type."""
    dtype, shape = np.dtype(draw(st.sampled_from(DTYPES))), tuple(draw(st.lists(st.integers(0, 9), max_size=4)))
    if draw(st.integers(0, 9)) == 0:
        return np.array([{"a": 1}, [1, 2], None, "x"], dtype=object)
    if dtype.kind not in "fiuc":
        return draw(arrays.arrays(dtype, shape))
    with np.errstate(all="ignore"):
        values = np.array(draw(st.lists(st.sampled_from(VALUES), min_size=1, max_size=20)))
        whole = np.resize(values, int(np.prod(shape))).reshape(shape)
        return (whole if dtype.kind in "fc" else np.nan_to_num(whole)).astype(dtype)


@st.composite
def array_files(draw: Any) -> Make:
    """Draw an .npy or .npz file."""
    if draw(st.booleans()):
        array = draw(any_array())
        return lambda folder: _save(folder / "data.npy", lambda file: np.save(file, array, allow_pickle=True))
    names = draw(st.lists(st.sampled_from(["x", "images", "labels", "c", "a", "ä", "../x", "file"]), max_size=4))
    members = {name: draw(any_array()) for name in names}
    return lambda folder: _save(folder / "data.npz", lambda file: np.savez(file, **members))


@st.composite
def parquets(draw: Any) -> Make:
    """Draw a Parquet file with columns of types that are no numbers."""
    columns = st.sampled_from([
        [1.0, 2.0, 4.0, 3.0, 7.0], [1, None, 3, 4, 9], ["a", "b", None, "d", "e"], [[1], [2, 3], [], None, [4]],
        [{"a": 1}] * 5, [b"\x00", b"\xff", b"a", b"", b"b"], [True, False, True, None, True],
        [np.nan, np.inf, 1e308, -1e308, 0.0], list(pd.date_range("2020", periods=5)), [2**63 - 1, -(2**63), 0, 1, 2],
        list(pd.timedelta_range("1s", periods=5)), [1 + 2**40] * 5,
    ])  # fmt: skip
    drawn = draw(st.lists(columns, min_size=0, max_size=5))
    odd = draw(st.sampled_from(["", "ä", "code1", "c0"]))
    frame = pd.DataFrame({(odd if j == 1 else f"c{j}"): pd.Series(values) for j, values in enumerate(drawn)})
    return lambda folder: _save(folder / "data.parquet", frame.to_parquet)


@st.composite
def image_folders(draw: Any) -> Make:
    """Draw a folder of files that are called images: odd sizes and modes, no images, links, FIFOs, sub-folders."""
    kind = st.sampled_from(["L", "RGB", "RGBA", "P", "1", "I", "F", "CMYK", "text", "empty", "link", "loop", "fifo"])
    names = st.sampled_from(["a.png", "b.PNG", "c.jpg", "x/d.png", "x/e.png", "y/f.bmp", "ä.png", ".h.png", "t.gif"])
    size = st.tuples(st.integers(1, 12), st.integers(1, 12))
    common = draw(size)
    files = draw(st.dictionaries(names, st.tuples(kind, st.one_of(st.just(common), size)), max_size=6))

    def make(folder: Path) -> str:
        (folder / "data").mkdir()
        for i, (name, (mode, shape)) in enumerate(files.items()):
            _write_image(folder / "data" / name, mode, shape, i)
        return "data"

    return make


def _write_image(path: Path, mode: str, shape: tuple[int, int], seed: int) -> None:
    path.parent.mkdir(exist_ok=True)
    special: dict[str, Callable[[], object]] = {
        "text": lambda: path.write_text("no image"), "empty": lambda: path.write_bytes(b""),
        "link": lambda: path.symlink_to("nowhere"), "loop": lambda: path.symlink_to(path.name),
        "fifo": lambda: os.mkfifo(path),
    }  # fmt: skip
    if mode in special:
        special[mode]()
        return
    noise = np.random.default_rng(seed).integers(0, 255, (*shape, 3), dtype=np.uint8)
    image = Image.fromarray(noise).convert("RGB" if mode == "F" else mode)
    try:
        image.save(path)
    except (OSError, ValueError):  # a format without this mode
        image.convert("RGB").save(path)


def writer(name: str, content: bytes) -> Make:
    """Return a function that writes a file."""

    def make(folder: Path) -> str:
        (folder / name).write_bytes(content)
        return name

    return make


def _save(path: Path, save: Callable[[Any], object]) -> str:
    """Write a file by a function; what cannot be written as this format is a text."""
    try:
        save(path)
    except Exception as error:
        path.write_text(str(error))
    return path.name
