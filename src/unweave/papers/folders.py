"""Folders of a paper's script, the figures it has drawn, and the models it has trained."""

from __future__ import annotations

import shutil
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple, TypeVar

from matplotlib.figure import Figure

from unweave.data.core import FactorData
from unweave.methods.base import Method
from unweave.methods.user_networks import user_networks
from unweave.report.figures.style import save_figure
from unweave.training.loop import Callback
from unweave.utils.locks import lock
from unweave.utils.storage import read_json, write_json

M = TypeVar("M", bound=Method)
RECORD_FILE = "figures.json"


class Folders(NamedTuple):
    """Output folders of a script: tables, models and runs below `results`, figures below `figures`."""

    paper: Path
    """Folder of the paper."""
    name: str = ""
    """Folder of the script below both; none for a paper with a single script."""

    @property
    def results(self) -> Path:
        """Folder of tables and models."""
        return self.paper / "results" / self.name

    @property
    def figures(self) -> Path:
        """Folder of figures, which are not part of the wheel."""
        return self.paper / "figures" / self.name

    @property
    def runs(self) -> Path:
        """Folder of runs."""
        return self.results / "runs"

    @property
    def scores(self) -> Path:
        """Path of the table of scores."""
        return self.results / "scores.csv"

    def create(self) -> None:
        """Create the folder of results."""
        self.results.mkdir(parents=True, exist_ok=True)

    def save(self, figure: Figure, name: str) -> None:
        """Save a figure, and record beside the results that it was drawn: a wheel has results, but no figures."""
        save_figure(figure, self.figures / name)
        with lock(self.results / RECORD_FILE):
            names = {*self._recorded(), name}
            write_json(self.results / RECORD_FILE, {"figures": sorted(names)})

    def drawn(self, *patterns: str) -> tuple[Path, ...]:
        """Return the paths of the recorded figures whose names match a pattern, e.g. "figure-5-*.png"."""
        return tuple(
            self.figures / name for name in self._recorded() if any(fnmatch(name, pattern) for pattern in patterns)
        )

    def _recorded(self) -> list[str]:
        path = self.results / RECORD_FILE
        return list(read_json(path)["figures"]) if path.is_file() else []


def fit_or_load(method: M, data: FactorData, folder: Path, callback: Callback | None = None) -> M:
    """Return the method fitted to data and saved in a folder; one with the same settings there is loaded instead."""
    if (folder / "config.json").is_file():
        saved = type(method).load(folder, **user_networks(method))
        if repr(saved.get_params()) == repr(method.get_params()):
            return saved
        shutil.rmtree(folder)
    method.fit(data, callback=callback)
    method.save(folder)
    return method
