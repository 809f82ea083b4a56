"""The contract of datasets: a recipe (a frozen dataclass) that loads `FactorData`. Equal recipes give equal data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, dataclass_transform, final

from unweave.data.core import FactorData
from unweave.data.downloads import MissingData, PublishedFile
from unweave.utils.errors import kebab, refuse_former_names
from unweave.utils.validation import check_fields, normalize_numbers

FORMER_NAMES = {"judged": "evaluation_data", "needed": "required_files", "complete": "is_available"}


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Dataset(ABC):
    """A recipe for data: the fields are its settings, `load` returns the data.

    Every subclass becomes a frozen, keyword-only dataclass.

    Example:
        >>> from unweave.datasets import SquaresXY
        >>> SquaresXY(points=100).load().shape
        (1, 64, 64)
    """

    name: ClassVar[str] = ""
    """Name in the catalog and on the command line; derived from the class name if a subclass sets none."""
    paper: ClassVar[str] = ""
    """Paper that introduced the data."""
    page: ClassVar[str] = ""
    """Official page of the published files."""
    license: ClassVar[str] = ""
    """License of the published files."""
    files: ClassVar[tuple[PublishedFile, ...]] = ()
    """Published files of the dataset, if there are any."""
    optional_settings: ClassVar[tuple[str, ...]] = ()
    """Settings that are not in the recipe by default: they were added later, and keys of earlier runs stay valid."""
    loads_fast: ClassVar[bool] = False
    """Whether `load` takes milliseconds, so that a notebook that shows the recipe also shows observations."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        refuse_former_names(cls, FORMER_NAMES)
        cls.name = vars(cls).get("name") or kebab(cls.__name__)
        dataclass(frozen=True, kw_only=True)(cls)

    def __post_init__(self) -> None:
        check_fields(self)

    def _repr_html_(self) -> str:
        from unweave.data.preview import dataset_html

        return dataset_html(self)

    @abstractmethod
    def load(self) -> FactorData:
        """Return the data: read, rendered or sampled."""

    def evaluation_data(self, data: FactorData) -> FactorData:
        """Return the data that a run is scored on: the training data, unless the recipe has a test set."""
        return data

    def required_files(self) -> tuple[PublishedFile, ...]:
        """Return the published files that this recipe reads."""
        return self.files

    def title(self) -> str:
        """Return the name in tables and pages; a substitute for published data says that it is one."""
        return self.name

    def recipe(self) -> dict[str, Any]:
        """Return everything that determines the data, as JSON values."""
        every = {f: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        values = {f.name: v for f, v in every.items() if f.name not in self.optional_settings or v != f.default}
        return {"name": self.title()} | normalize_numbers(type(self), values)

    @final
    def paths(self) -> list[Path]:
        """Return the verified files that this recipe reads, or raise an error that explains how to get them."""
        try:
            return [file.path() for file in self.required_files()]
        except MissingData as error:
            fetch = f", or let unweave fetch it: unweave data make {self.name} --download"
            fetch = fetch if all(file.url for file in self.required_files()) else ""
            raise MissingData(
                f"{error}. Get it from {self.page} and put it there{fetch}; license: {self.license}"
            ) from None

    def make(self, notify: Callable[[str], None] = lambda text: None) -> None:
        """Prepare files that are rendered once; most datasets need none."""
        return

    def is_available(self) -> bool:
        """Return whether all files that this recipe reads exist."""
        return all(file.find() is not None for file in self.required_files())
