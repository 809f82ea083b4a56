"""Items of a torch `Dataset`, a Hugging Face dataset, or a list of images, one observation each."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, final

import numpy as np
import pandas as pd
from PIL import Image
from torch import Tensor

from unweave.data.readers.images import decode_image, image_to_array
from unweave.data.rows import RowReader, row_dtype
from unweave.utils.errors import InputError, first_line
from unweave.utils.validation import as_array

OBSERVATION_KEYS = ("image", "pixel_values", "x", "img", "images", "observation", "input")  # of items that are dicts
LABELS_AT_ONCE = 1_000  # items that are held while labels are read
MAX_TEXT_SHARE = 0.5  # of different values, above which texts are no classes


@final
class ItemRows(RowReader):
    """Items of anything with `__len__` and `__getitem__`. Items must not change from one reading to the next.

    An item is an observation (a tensor, an array, an image), a tuple of an observation and labels, or a dict with an
    observation under one of the names of `OBSERVATION_KEYS`.

    Example:
        >>> rows = ItemRows([Image.new("RGB", (8, 6)) for _ in range(3)])
        >>> rows.read(np.array([0, 2])).shape
        (2, 3, 6, 8)
    """

    def __init__(self, source: Any) -> None:
        self.source, self._count, self._lock = source, len(source), threading.Lock()
        if not self._count:
            raise InputError(f"{type(source).__name__} has no items: expected at least two observations")
        (first,) = self._items([0])
        self._field = _observation_field(first)
        x = self._observation(first, 0)
        if x.ndim == 0:
            raise InputError(f"item 0 is one number: expected observations of shape (d,) or (..., h, w), got {first!r}")
        self.shape, self.dtype = x.shape, row_dtype(x.dtype, x.ndim + 1, "item 0")
        self._is_image = isinstance(first if self._field is None else first[self._field], Image.Image | Path | str)

    def __len__(self) -> int:
        return self._count

    def read(self, rows: np.ndarray) -> np.ndarray:
        """Read items one after the other, by one thread at a time."""
        unique, inverse = np.unique(rows, return_inverse=True)
        x = np.empty((len(unique), *self.shape), self.dtype)
        for i, (row, item) in enumerate(zip(unique, self._items(unique.tolist()), strict=True)):
            x[i] = self._checked(self._observation(item, row), int(row))
        return self.convert(x, unique)[inverse]

    def labels(self) -> pd.DataFrame | None:
        """Return what comes with the observations: known as a whole to some datasets, otherwise read item by item."""
        first, last = self._items([0, len(self) - 1])
        names = _label_names(first, self._field)
        if not names:
            return None
        columns = self._label_columns(names, [_item_labels(item, self._field) for item in (first, last)])
        if columns is None:
            records = []
            for start in range(0, len(self), LABELS_AT_ONCE):
                items = self._items(range(start, min(start + LABELS_AT_ONCE, len(self))))
                records += [_item_labels(item, self._field) for item in items]
            columns = dict(zip(names, map(list, zip(*records, strict=True)), strict=True))
        columns = {name: self._class_names(name, values) for name, values in columns.items()}
        return pd.DataFrame({name: values for name, values in columns.items() if not _is_free_text(name, values)})

    def _label_columns(self, names: list[str], ends: list[list[Any]]) -> dict[str, list[Any]] | None:
        """Return labels without reading observations, if the dataset has them and the first and last item agree."""
        if set(names) <= set(getattr(self.source, "column_names", ())):  # Hugging Face
            return {name: [_to_scalar(value) for value in self.source[name]] for name in names}
        targets = getattr(self.source, "targets", None)  # torchvision
        if len(names) > 1 or targets is None or len(targets) != len(self):
            return None
        values = [_to_scalar(value) for value in targets]
        return {names[0]: values} if [[values[0]], [values[-1]]] == ends else None

    def _class_names(self, name: str, values: list[Any]) -> list[Any]:
        """Return the names of classes where the dataset has them (Hugging Face's `ClassLabel`)."""
        features = getattr(self.source, "features", None)
        names = getattr(features[name], "names", None) if isinstance(features, Mapping) and name in features else None
        return [names[value] for value in values] if names and min(values) >= 0 else values  # -1: not labeled

    def _items(self, rows: Sequence[int]) -> list[Any]:
        """Return items by number; a dataset need not be prepared for several threads."""
        with self._lock:
            try:
                if hasattr(self.source, "__getitems__"):  # reads many at once; also used by torch's loaders
                    return list(self.source.__getitems__(list(rows)))
                return [self.source[row] for row in rows]
            except (NotImplementedError, KeyError, TypeError) as error:
                name = type(self.source).__name__
                raise InputError(
                    f"items of {name} cannot be read by their number ({first_line(error)}): expected source[0], "
                    "source[1], ..., each an observation, or an observation and its labels"
                ) from error

    def _observation(self, item: Any, row: int) -> np.ndarray:
        """Return the observation of an item as an array."""
        value = item if self._field is None else item[self._field]
        if isinstance(value, Image.Image):
            return image_to_array(value, f"item {row}")
        if isinstance(value, str | Path):
            return decode_image(Path(value), str(value))
        return as_array(value, f"item {row}")

    def _checked(self, x: np.ndarray, row: int) -> np.ndarray:
        """Return an observation with the shape and the scale of the first one, or raise an error that names it."""
        if self._is_image and x.shape == (1, *self.shape[1:]):
            return x  # gray among colored images: all channels are the same
        if x.shape != self.shape:
            raise InputError(f"item {row} has shape {x.shape}, and item 0 has {self.shape}: resize them to one shape")
        if (row_dtype(x.dtype, x.ndim + 1, f"item {row}") == np.uint8) != (self.dtype == np.uint8):
            raise InputError(
                f"item {row} holds {x.dtype}, and item 0 {self.dtype}: bytes run to 255; expected one type"
            )
        return x


def _observation_field(item: Any) -> str | int | None:
    """Return where the observation is in an item: a key, 0 in a tuple, None for the item itself."""
    if isinstance(item, Mapping):
        known = [key for key in OBSERVATION_KEYS if key in item]
        large = known[:1] or [key for key, value in item.items() if not _is_label(value)]
        if len(large) != 1:
            keys = ", ".join(map(str, item))
            raise InputError(f"which of {keys} is the observation of an item? Name it {OBSERVATION_KEYS[0]!r} or 'x'")
        return large[0]
    return 0 if isinstance(item, tuple) else None


def _is_label(value: Any) -> bool:
    """Return whether a part of an item is a label: one number or text."""
    return isinstance(value, str | bool | int | float) or (hasattr(value, "shape") and tuple(value.shape) == ())


def _label_names(item: Any, field: str | int | None) -> list[str]:
    """Return a name for every label of an item: its key, y for a single one, or y1, y2, ..."""
    if field is None:
        return []
    if isinstance(item, Mapping):
        return [str(key) for key, value in item.items() if key != field and _is_label(value)]
    count = len(_item_labels(item, field))
    return ["y"] if count == 1 else [f"y{i + 1}" for i in range(count)]


def _item_labels(item: Any, field: str | int | None) -> list[Any]:
    """Return the labels of an item; one part of a tuple may be a vector of labels."""
    if isinstance(item, Mapping):
        return [_to_scalar(value) for key, value in item.items() if key != field and _is_label(value)]
    values: list[Any] = []
    for part in item[1:]:
        array = np.asarray(part.numpy(force=True) if isinstance(part, Tensor) else part)
        if array.ndim > 1 or array.dtype.kind == "O":
            raise InputError(
                f"items are tuples with a part of shape {array.shape} that is no label: expected (x, label); pass y, "
                "or items that are observations"
            )
        values += array.reshape(-1).tolist()
    return values


def _to_scalar(value: Any) -> Any:
    """Return a label as a number or text of Python."""
    return value.item() if hasattr(value, "item") else value


def _is_free_text(name: str, values: Iterable[Any]) -> bool:
    """Return whether labels are texts that hardly repeat, such as names of files or captions, and warn of it."""
    listed = list(values)
    is_free = isinstance(listed[0], str) and len(set(listed)) > max(2, MAX_TEXT_SHARE * len(listed))
    if is_free:
        text = f"{name!r} of the items is text that hardly repeats, and no factor ({listed[0][:30]!r}, ...): left out"
        warnings.warn(text, stacklevel=4)
    return is_free
