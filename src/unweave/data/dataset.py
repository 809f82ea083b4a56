"""The dataset contract: a recipe (a frozen dataclass) that loads `FactorData`. Equal recipes give equal data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, dataclass_transform, final

from unweave.data.core import FactorData
from unweave.data.downloads import MissingData, PublishedFile
from unweave.utils.errors import kebab
from unweave.utils.validation import check_fields, normalize_numbers


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Dataset(ABC):
    """Fields are the recipe, `load` does the work. Every subclass becomes a frozen, keyword-only dataclass."""

    name: ClassVar[str] = ""
    """name in the catalog and on the command line; made from the class name where a subclass sets none"""
    paper: ClassVar[str] = ""
    """where the data come from"""
    page: ClassVar[str] = ""
    """the official page of the original files"""
    license: ClassVar[str] = ""
    """of the original files"""
    files: ClassVar[tuple[PublishedFile, ...]] = ()
    """the original files, if the data have any"""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.name = vars(cls).get("name") or kebab(cls.__name__)
        dataclass(frozen=True, kw_only=True)(cls)

    def __post_init__(self) -> None:
        check_fields(self)

    @abstractmethod
    def load(self) -> FactorData:
        """Find, make or read the data."""

    def evaluation_data(self, data: FactorData) -> FactorData:
        """What a run is scored on, given what it learned from: the same, unless a test set is part of the recipe."""
        return data

    def required_files(self) -> tuple[PublishedFile, ...]:
        """Those of the original files that this recipe reads."""
        return self.files

    def title(self) -> str:
        """What tables and pages call these data; a substitute says here that it is one."""
        return self.name

    def recipe(self) -> dict[str, Any]:
        """Everything that decides the data, as JSON."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        return {"name": self.title()} | normalize_numbers(type(self), values)

    @final
    def paths(self) -> list[Path]:
        """The files this recipe reads, found and whole; or an error that says how to get them."""
        try:
            return [original.path() for original in self.required_files()]
        except MissingData as error:
            fetch = f", or let unweave fetch it: unweave data make {self.name} --download"
            fetch = fetch if all(original.url for original in self.required_files()) else ""
            raise MissingData(
                f"{error}. Get it from {self.page} and put it there{fetch}; license: {self.license}"
            ) from None

    def make(self, notify: Callable[[str], None] = lambda text: None) -> None:
        """Make what has to be made once; for most data, nothing."""
        return

    def is_available(self) -> bool:
        """Whether all files that this recipe reads are somewhere."""
        return all(original.find() is not None for original in self.required_files())
