"""The dataset contract: a recipe (a frozen dataclass) that loads `FactorData`. Equal recipes give equal data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar, dataclass_transform

from .data import FactorData
from .errors import kebab


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Dataset(ABC):
    """Fields are the recipe, `load` does the work. Every subclass becomes a frozen, keyword-only dataclass."""

    paper: ClassVar[str] = ""
    """where the data come from"""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        dataclass(frozen=True, kw_only=True)(cls)

    @abstractmethod
    def load(self) -> FactorData:
        """Find, make or read the data."""

    def title(self) -> str:
        """What tables and pages call these data; a substitute says here that it is one."""
        return kebab(type(self).__name__)

    def recipe(self) -> dict[str, Any]:
        """Everything that decides the data, as JSON."""
        return {"name": kebab(type(self).__name__)} | {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
