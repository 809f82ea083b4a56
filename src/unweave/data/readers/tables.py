"""A user's own data by path: .npy, .npz, .csv, .tsv, .parquet, or a folder of images."""

from __future__ import annotations

import csv
import difflib
import itertools
import os
import re
import warnings
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd
from PIL import Image, ImageOps, UnidentifiedImageError

from unweave.data.arrays import as_data
from unweave.data.core import FactorData
from unweave.data.dataset import Dataset
from unweave.utils.errors import InputError, plural, unknown
from unweave.utils.storage import sha256
from unweave.utils.validation import as_array, check_finite

IMAGES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm"}
FILE = "file"  # the column that names where the codes of a row come from
TABLES = {".csv", ".tsv", ".txt", ".parquet"}
ARRAYS = {".npy", ".npz"}
ALL = f"{', '.join(sorted(TABLES | ARRAYS))} or a folder of images"


class OwnData(Dataset):
    """Your own rows: a table, an array, or a folder of images (sub-folders are taken as labels)."""

    path: Path
    """file or folder"""
    factors: tuple[str, ...] = ()
    """columns (of a table) or arrays (of an .npz) with known factors: to score by, and to learn labels or pairs from"""
    columns: tuple[str, ...] = ()
    """columns (of a table) or the array (of an .npz) to learn from; everything that is not a factor unless named"""
    drop_constant: bool = False
    """leave out columns that never change, instead of stopping"""

    def title(self) -> str:
        """The file's or folder's name."""
        return Path(self.path).name or str(self.path)

    def recipe(self) -> dict[str, Any]:
        """The content counts, not the place: the same file elsewhere is the same data."""
        fields = {"factors": list(self.factors), "columns": list(self.columns), "drop_constant": self.drop_constant}
        return {"name": self.title(), "sha256": self.sha256, **fields}

    @cached_property
    def sha256(self) -> str:
        """The hash of the file, or of all images of the folder with their names."""
        path = Path(self.path)
        _check_exists(path)
        return sha256(*image_files(path), below=path) if path.is_dir() else sha256(path)

    def row_names(self) -> list[str] | None:
        """The files that the rows of a folder come from, below it."""
        path = Path(self.path)
        return [p.relative_to(path).as_posix() for p in image_files(path)] if path.is_dir() else None

    def load(self) -> FactorData:
        """Read and check."""
        x, truth = read(Path(self.path), factors=self.factors, columns=self.columns)
        if x.shape[1] == 0:
            raise InputError(f"{self.path} has no columns left to learn from: all of them are factors")
        if isinstance(x, pd.DataFrame):
            _warn_of_counters(self.path, x)
            names, x = list(x.columns), x.to_numpy(np.float64)
        else:
            names = [f"column {i}" for i in range(x.shape[1])]
        check_finite(x, names if x.ndim == 2 else None, what=str(self.path))
        if x.ndim == 2:
            x = self._without_constants(x, names)
        for name in truth.columns:
            if truth[name].nunique() < 2:
                raise InputError(f"factor {name!r} of {self.path} never changes: leave it out of --data.factors")
        return as_data(x, truth if len(truth.columns) else None)

    def _without_constants(self, x: np.ndarray, names: list[str]) -> np.ndarray:
        constant = (x == x[:1]).all(0)
        if not constant.any():
            return x
        which = ", ".join(repr(names[i]) for i in np.flatnonzero(constant)[:5])
        which += f" and {constant.sum() - 5} more" if constant.sum() > 5 else ""
        if constant.all():
            raise InputError(f"every column of {self.path} is constant ({which}): there is nothing to take apart")
        if not self.drop_constant:
            count = int(constant.sum())
            change, them = ("changes", "it") if count == 1 else ("change", "them")
            text = f"{plural(count, 'column')} of {self.path} never {change}: {which}"
            raise InputError(f"{text}. Remove {them}, or go on without {them}: --data.drop-constant")
        return x[:, ~constant]


def _warn_of_counters(path: Path, table: pd.DataFrame) -> None:
    """A column that only counts the rows says nothing about them, and distorts all distances."""
    for name in table.columns:
        if len(table) > 10 and (np.diff(table[name].to_numpy(np.float64)) == 1).all():
            warnings.warn(
                f"column {name!r} of {path} only counts the rows and is learned from like any other; if it is no "
                "measurement, name the columns to use: --data.columns A B ...",
                stacklevel=2,
            )


def read(
    path: Path, *, factors: tuple[str, ...] = (), columns: tuple[str, ...] = ()
) -> tuple[np.ndarray | pd.DataFrame, pd.DataFrame]:
    """What to learn from, (n, d) or (n, ...), and the known factors, one row each."""
    if path.is_dir():
        if factors or columns:
            raise InputError(f"{path} is a folder of images and has no columns; its sub-folders are its labels")
        return read_images(path)
    suffix = path.suffix.lower()
    _check_exists(path)
    if suffix in TABLES:
        return split_table(path, read_table(path), factors, columns)
    if suffix == ".npy":
        if factors or columns:
            raise InputError(f"{path} is one array without names; put known factors beside it in an .npz")
        return check_array(path, "", load_array(path)), pd.DataFrame()
    if suffix == ".npz":
        return read_npz(path, factors, columns)
    raise InputError(f"{path} is of no known kind ({suffix or 'no ending'}): expected {ALL}")


def _check_exists(path: Path) -> None:
    if not path.exists():
        beside = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        near = difflib.get_close_matches(path.name, beside, 1)
        raise InputError(f"{path} does not exist" + (f"; did you mean {path.parent / near[0]}?" if near else ""))


# Tables ---------------------------------------------------------------------------------------------------------


def read_table(path: Path) -> pd.DataFrame:
    """A .csv, .tsv, .txt or .parquet as a DataFrame; separator, decimal comma and a missing header are recognized."""
    try:
        if path.suffix.lower() == ".parquet":
            return pd.read_parquet(path)
        with path.open(encoding="utf-8-sig") as file:
            lines = [line.rstrip("\r\n") for line in itertools.islice(file, 50)]
        layout = _layout(path, lines)
        # The C parser takes a row that is too short for one with gaps, and then NaN is reported with its place.
        table = pd.read_csv(path, **layout, index_col=False, encoding="utf-8-sig", skipinitialspace=True)
    except InputError:
        raise
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not text in UTF-8 ({error}): save it again with that encoding") from error
    except (pd.errors.EmptyDataError, pd.errors.ParserError) as error:
        raise InputError(f"{path} cannot be read as a table: {str(error).strip()}") from error
    except Exception as error:  # pyarrow has many; all mean that the file is not what its name says
        raise InputError(f"{path} cannot be read: {error}. It is truncated, or not what its ending says") from error
    table.columns = [f"column {i}" if layout["header"] is None else str(name) for i, name in enumerate(table.columns)]
    return table


def _layout(path: Path, lines: list[str]) -> dict[str, Any]:
    """How a table of text is written, from its first lines: separator, decimal sign, and whether it has a header."""
    if not lines:
        raise InputError(f"{path} cannot be read as a table: it is empty")
    separator = next((s for s in "\t;" if s in lines[0]), ",")
    head, *body = ([cell.strip().strip('"') for cell in line.split(separator)] for line in lines if line.strip())
    comma = separator != "," and any(re.fullmatch(r"-?\d+,\d+", cell) for row in (head, *body) for cell in row)
    quoted = any('"' in line for line in lines)  # a separator may hide inside quotes: the parser counts better
    if body and len(body[0]) > len(head) and not quoted:
        raise InputError(f"{path} names {len(head)} columns, and its first row has {len(body[0])} values")
    header = None if _is_data(head, body) else 0
    names = [name.strip() for name in next(csv.reader([lines[0]], delimiter=separator))]
    twice = [name for name in names if names.count(name) > 1 and name]
    if header == 0 and twice:
        raise InputError(f"{path} has several columns named {twice[0]!r}: give each a name of its own")
    return {"sep": separator, "decimal": "," if comma else ".", "header": header}


def _is_data(head: list[str], body: list[list[str]]) -> bool:
    """Whether the first line holds values, not names. Whole numbers are names where they count, or head fractions."""
    if not all(_is_number(cell) for cell in head):
        return False
    if not all(cell.isdigit() for cell in head) or len(set(head)) < len(head):
        return True
    numbers = [int(cell) for cell in head]
    counting = len(numbers) > 1 and numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    return not counting and all(cell.lstrip("-").isdigit() for row in body for cell in row)


def _is_number(text: str) -> bool:
    return bool(re.fullmatch(r"[-+]?(\d+[.,]?\d*|\.\d+)([eE][-+]?\d+)?|nan|inf", text, re.IGNORECASE))


def split_table(
    path: Path, table: pd.DataFrame, factors: tuple[str, ...], columns: tuple[str, ...]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Columns to learn from, which must be numbers, and columns that are known factors, which may be anything."""
    if len(table) < 2:
        raise InputError(f"{path} has {plural(len(table), 'row')} of data; at least two are needed")
    for name in (*factors, *columns):
        if name not in table.columns:
            raise unknown(f"column of {path.name}", name, [str(c) for c in table.columns])
        if (*factors, *columns).count(name) > 1:
            raise InputError(f"column {name!r} of {path} is named more than once in --data.factors and --data.columns")
    truth = table[list(factors)]
    for name in factors:
        if truth[name].isna().any():
            raise InputError(f"factor {name!r} of {path} has gaps, first in row {int(truth[name].isna().argmax())}")
    x = table[list(columns)] if columns else table.drop(columns=list(factors))
    for name in x.columns:
        if not pd.api.types.is_numeric_dtype(x[name]) or pd.api.types.is_bool_dtype(x[name]):
            raise InputError(_no_numbers(path, x[name]))
    return x, truth


def _no_numbers(path: Path, column: pd.Series) -> str:
    """What is wrong with a column that should hold numbers."""
    name, given = str(column.name), column.dropna()
    text = np.flatnonzero((pd.to_numeric(column, errors="coerce").isna() & column.notna()).to_numpy())
    if 0 < len(text) < len(given) / 2:
        place = f"first {str(column.iloc[text[0]])[:30]!r} in row {text[0]} (counted from 0)"
        rows = plural(len(text), "row")
        return f"column {name!r} of {path} holds numbers, and in {rows} text: {place}. Mend or drop these"
    return (
        f"column {name!r} of {path} holds {'text' if column.dtype != bool else 'true/false'}"
        + (f" ({str(given.iloc[0])[:30]!r})" if len(given) else "")
        + f", not numbers. Make it a known factor (--data.factors {_quoted(name)}), or name the columns to use "
        "(--data.columns A B ...)"
    )


def _quoted(name: str) -> str:
    return f'"{name}"' if re.search(r"\W", name) else name


def read_codes(path: Path) -> np.ndarray:
    """A file of codes from any tool, (n, d)."""
    if path.suffix.lower() == ".npy":
        _check_exists(path)
        codes = as_array(load_array(path), str(path))
    elif path.suffix.lower() in TABLES and path.is_file():
        table = read_table(path)
        named = table.columns[0] == FILE and table.dtypes.iloc[0].kind not in "fiu"
        own = (FILE,) if named and table.shape[1] > 1 else ()  # which `unweave fit` writes
        text = [str(n) for n, kind in table.dtypes.items() if kind.kind not in "fiu" and n not in own]
        if text:
            raise InputError(f"column {text[0]!r} of {path} holds no numbers: codes are numbers alone")
        codes = split_table(path, table.drop(columns=list(own)), (), ())[0].to_numpy(np.float64)
    else:
        x, _ = read(path)
        codes = x.to_numpy(np.float64) if isinstance(x, pd.DataFrame) else x
    check_finite(codes.reshape(len(codes), -1) if codes.ndim else codes, what=str(path))
    return codes[:, None] if codes.ndim == 1 else codes


def read_factors(path: Path) -> pd.DataFrame:
    """A file of true factors: every column of it, classes by number or by name."""
    if path.suffix.lower() in TABLES:
        _check_exists(path)
        table = read_table(path)
        return split_table(path, table, tuple(str(name) for name in table.columns), ())[1]
    if path.suffix.lower() == ".npz":
        with load_array(path) as arrays:
            named = "factors" if "factors" in arrays.files else arrays.files[0] if len(arrays.files) == 1 else None
            if named is None:
                names = ", ".join(arrays.files) or "nothing"
                raise InputError(f"{path} holds {names}: save the factors as one array named 'factors'")
            return pd.DataFrame(_member(path, arrays, named)).add_prefix("factor")
    return pd.DataFrame(read_codes(path)).add_prefix("factor")


# Arrays ---------------------------------------------------------------------------------------------------------


def load_array(path: Path) -> Any:
    """The contents of an .npy or .npz; never unpickles."""
    try:
        return np.load(path, allow_pickle=False)
    except Exception as error:  # numpy raises ValueError, EOFError, BadZipFile, ... for a damaged file
        text = "it holds Python objects" if "allow_pickle" in str(error) else str(error) or type(error).__name__
        raise InputError(
            f"{path} cannot be read: {text}. Save plain arrays of numbers (numpy.save, numpy.savez)"
        ) from error


def read_npz(path: Path, factors: tuple[str, ...], columns: tuple[str, ...]) -> tuple[np.ndarray, pd.DataFrame]:
    """Array `x` (or the only one, or the one named) to learn from; `factors` (or those named) as known factors."""
    with load_array(path) as arrays:
        names = list(arrays.files)
        for name in (*factors, *columns):
            if name not in names:
                raise unknown(f"array in {path.name}", name, names)
        if len(columns) > 1:
            raise InputError(f"{path}: learning takes one array, not {plural(len(columns), 'array')}")
        factors = factors or tuple(name for name in ("factors",) if name in names)
        rest = [name for name in names if name not in factors and name != "factor_names"]
        expected = columns[0] if columns else "x" if "x" in rest else rest[0] if len(rest) == 1 else None
        if expected is None:
            raise InputError(f"which array of {path} is the data? It has {', '.join(names)}; say --data.columns NAME")
        x = check_array(path, expected, _member(path, arrays, expected))
        parts = {name: _member(path, arrays, name) for name in factors}
        given = [str(n) for n in _member(path, arrays, "factor_names")] if "factor_names" in names else []
    truth: dict[str, np.ndarray] = {}
    for name, part in parts.items():
        if part.shape[:1] != x.shape[:1] or part.ndim > 2:
            raise InputError(f"array {name!r} of {path} has shape {part.shape}; expected ({len(x)},) or ({len(x)}, k)")
        if part.ndim == 1:
            truth[name] = part
        else:
            labels = given if name == "factors" and len(given) == part.shape[1] else None
            truth |= {labels[i] if labels else f"{name}{i + 1}": part[:, i] for i in range(part.shape[1])}
    return x, pd.DataFrame(truth)


def _member(path: Path, arrays: Any, name: str) -> np.ndarray:
    try:
        return np.asarray(arrays[name])
    except Exception as error:
        text = "it holds Python objects" if "allow_pickle" in str(error) else str(error) or type(error).__name__
        raise InputError(f"array {name!r} of {path} cannot be read: {text}") from error


def check_array(path: Path, name: str, x: np.ndarray) -> np.ndarray:
    """Numbers, one row per observation."""
    where = f"array {name!r} of {path}" if name else str(path)
    if x.dtype.kind not in "fiub":
        raise InputError(f"{where} holds {x.dtype}, not real numbers")
    if len(x.shape) > 1 and len(x) == 1:
        raise InputError(f"{where} has shape {x.shape}: one observation; at least two are needed")
    if x.ndim < 2 or 0 in x.shape:
        raise InputError(f"{where} has shape {x.shape}; expected (rows, columns) or (images, ..., height, width)")
    return x if x.dtype == np.uint8 and x.ndim > 2 else x.astype(np.float64 if x.dtype.kind != "f" else x.dtype)


# Images ---------------------------------------------------------------------------------------------------------


def image_files(folder: Path) -> list[Path]:
    """The images of a folder and of its sub-folders, in the order a person would put them (2 before 10)."""
    found = [p for p in folder.rglob("*") if p.suffix.lower() in IMAGES and p.is_file() and not p.name.startswith(".")]
    if len(found) == 1:
        raise InputError(f"{folder} has one image in it; at least two are needed")
    if not found and not os.access(folder, os.R_OK | os.X_OK):
        raise InputError(f"{folder} cannot be looked into: you may not read it")
    if not found:
        raise InputError(f"{folder} has no images in it ({', '.join(sorted(IMAGES))})")
    parts = [(re.split(r"(\d+)", str(p.relative_to(folder))), p) for p in found]
    return [p for _, p in sorted(parts, key=lambda s: [int(t) if t.isdigit() else t for t in s[0]])]  # digits alternate


def read_images(folder: Path) -> tuple[np.ndarray, pd.DataFrame]:
    """Images as bytes, (n, channels, h, w); gray if all are; sub-folders become the factor `label`."""
    paths = image_files(folder)
    first = decode_image(paths[0], str(paths[0]))
    images = [first]
    for path in paths[1:]:
        image = decode_image(path, str(path))
        if image.shape[1:] != first.shape[1:]:
            (h, w), (h0, w0) = image.shape[1:], first.shape[1:]
            raise InputError(
                f"images of different sizes: {paths[0]} is {w0} x {h0}, {path} is {w} x {h}; bring them to one size"
            )
        images.append(image)
    channels = max(len(image) for image in images)
    x = np.stack([image if len(image) == channels else np.repeat(image, channels, 0) for image in images])
    labels = [path.parent.relative_to(folder).as_posix() for path in paths]
    return x, pd.DataFrame({"label": labels} if len(set(labels)) > 1 else {})


def decode_image(source: Path | BinaryIO, name: str, *, crop: int | None = None) -> np.ndarray:
    """An image as bytes, (1 or 3, h, w); with `crop`, its central square, brought to that many pixels."""
    try:
        with Image.open(source) as file:
            frames = getattr(file, "n_frames", 1)
            if frames > 1:
                raise InputError(f"{name} holds {frames} images: save each as a file of its own")
            image = _eight_bits(file, name)
    except InputError:
        raise
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError) as error:
        raise InputError(f"{name} is not a readable image ({error}): remove it or replace it") from error
    if crop is not None and image.size != (crop, crop):
        image = ImageOps.fit(image, (crop, crop), Image.Resampling.LANCZOS)
    pixels = np.asarray(image)
    return pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)


def _eight_bits(image: Image.Image, name: str) -> Image.Image:
    """Gray or color with 8 bits; pillow by itself would clip deeper images at 255."""
    if image.mode.startswith("I") or image.mode == "F":
        values = np.asarray(image, dtype=np.float64)
        most = 1.0 if image.mode == "F" else 65535.0
        if values.min() < 0 or values.max() > most:
            raise InputError(f"{name} holds values from {values.min():g} to {values.max():g}; expected 0 to {most:g}")
        return Image.fromarray((values * (255 / most)).round().astype(np.uint8))
    return image.convert("L" if image.mode in ("1", "L", "LA") else "RGB")
