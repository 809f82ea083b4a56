"""Explorers inside of a report: one for the best run of each method, within a budget of bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from unweave import catalog
from unweave.experiments.recorded_data import dataset_of_run
from unweave.experiments.run import FinishedRun
from unweave.report.explorer.page import describe_explorer, render_page
from unweave.utils.errors import InputError

MAX_TOTAL_BYTES = 6_000_000  # of all explorers of a report
MAX_BYTES = 2_000_000  # of one explorer
MAX_DECODER_BYTES = 1_200_000  # of its weights; larger decoders are evaluated beforehand
OBSERVATIONS = (1_000, 400)  # of the sample; the smaller number where the page would be too large


def embed_explorers(
    sections: Sequence[dict[str, Any]], runs: Mapping[str, FinishedRun], notify: Callable[[str], None]
) -> None:
    """Set `explorer` of sections about runs to {"id", "html"}, in their order, until the budget is spent.

    Args:
        sections: What the page says about the best run of each method.
        runs: Runs by key.
        notify: Receives messages about the progress.
    """
    bytes_left = MAX_TOTAL_BYTES
    for section in sections:
        notify(f"{section['label']}: writing the explorer")
        title = f"{section['label']}, seed {section['seed']}"
        try:
            html = explorer_of_run(runs[section["key"]], title, min(bytes_left, MAX_BYTES))
        except InputError as error:
            notify(f"{section['label']}: no explorer in the report: {error}")
        else:
            bytes_left -= len(html)
            section["explorer"] = {"id": f"{section['id']}-explorer", "html": html}


def explorer_of_run(run: FinishedRun, title: str, max_bytes: int = MAX_BYTES) -> str:
    """Return the page of the explorer of a run.

    Runs on your own data do not record where the data are, and classes of your own are not loaded from a report.

    Raises:
        InputError: If data or method cannot be loaded, or if the page would be too large.
    """
    data, method = dataset_of_run(run.folder).load(), catalog.load(run.folder)
    for limit in OBSERVATIONS:
        payload = describe_explorer(
            method, data, limit=limit, max_decoder_bytes=MAX_DECODER_BYTES, model_path=run.folder
        )
        page = render_page(payload, title)
        if len(page) <= max_bytes:
            return page
    raise InputError(f"it would be too large: write it with `unweave explore {run.folder}`")
