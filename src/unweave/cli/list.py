"""The command `unweave list`: the catalog of methods, datasets and metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import tyro

from unweave.cli.terminal import docstring_summary, parse_options, print_json, print_table, print_text


@dataclass(kw_only=True)
class List:
    """List the methods, datasets and metrics, with their papers."""

    kind: tyro.conf.Positional[Literal["all", "methods", "datasets", "metrics"]] = "all"
    """Kind of components to list."""
    json: bool = False
    """Print as JSON."""


def list_catalog(args: list[str]) -> None:
    """List the methods, datasets and metrics."""
    options = parse_options(List, prog="unweave list", args=args)
    listing = describe_catalog()
    if options.kind != "all":
        listing = {options.kind: listing[options.kind]}
    if options.json:
        return print_json(listing)
    for kind, entries in listing.items():
        print_table(list(entries[0]), [list(entry.values()) for entry in entries], kind)
    return print_text("To use your own data, give their path. To use your own class, give mine.py:MyMethod.")


def describe_catalog() -> dict[str, list[dict[str, str]]]:
    """Return name, summary and paper of every method, dataset and metric."""
    from unweave import catalog

    methods = [
        {"name": name, "needs": method.needs, "summary": docstring_summary(method), "paper": method.paper}
        for name, method in catalog.methods().items()
    ]
    datasets = [
        {"name": name, "summary": docstring_summary(dataset), "paper": dataset.paper}
        for name, dataset in catalog.datasets().items()
    ]
    metrics = [
        {"name": name, "variants": " ".join(filter(None, metric.facts.variants)), "summary": docstring_summary(metric)}
        | {"paper": metric.facts.paper}
        for name, metric in catalog.metrics().items()
    ]
    return {"methods": methods, "datasets": datasets, "metrics": metrics}
