"""The explorer: one self-contained HTML page to move the codes of a method and see what they do."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader
from markupsafe import Markup
from sklearn.utils.validation import check_is_fitted

from unweave.data.dataset import Dataset
from unweave.methods.base import Method
from unweave.report.explorer.data import CodeFacts, describe_method, describe_sample
from unweave.report.explorer.decoder_export import export_decoder
from unweave.report.explorer.grid import describe_grid
from unweave.report.explorer.matching import match_codes
from unweave.report.sample import MAX_OBSERVATIONS, DrawnData, sample_data
from unweave.utils.atomic import write_atomic
from unweave.utils.errors import InputError, plural

FOLDER = "report/explorer"
CHECKED_OBSERVATIONS = 64  # at whose codes the exported decoder is compared with the method
STYLE = "explorer/explorer.css"
SCRIPTS = (  # in the order of their dependencies
    "explorer/decoder.js", "explorer/views/state.js", "explorer/views/model.js", "explorer/views/drawing.js",
    "explorer/views/dom.js", "explorer/views/sliders.js", "explorer/views/panel.js", "explorer/views/filmstrip.js",
    "explorer/views/compare.js", "explorer/views/map.js", "explorer/views/matrix.js", "explorer/views/gif.js",
    "explorer/views/export.js", "explorer/views/main.js",
)  # fmt: skip


def explore(
    method: Method,
    data: Any,
    path: str | Path = "explore.html",
    *,
    compare: Method | None = None,
    title: str = "",
    model_path: str | Path = "model",
    seed: int = 0,
    notify: Callable[[str], None] = lambda text: None,
) -> Path:
    """Write a page with sliders for the codes of a fitted method; it opens from disk, without a server or a network.

    A method without a decoder shows the nearest observations of the sample instead of decoded ones. A decoder with
    layers that the page cannot run is evaluated beforehand, at observations and along their traversals.

    Args:
        method: A fitted method.
        data: Observations of the shape that it has learned from: an array (n, ...), a DataFrame, a `FactorData` or a
            `Dataset`. At most 5,000 are shown. Factors of the data are compared with the codes.
        path: The page to write.
        compare: A second method fitted to the same data, e.g. with another seed. Its codes are matched with those of
            the first one by the best assignment of correlations, and both are shown side by side.
        title: Heading of the page; by default method and data.
        model_path: Folder that "Copy as Python" loads the method from.
        seed: Seed that selects the observations.
        notify: Receives messages about the progress.

    Returns:
        The path of the page.

    Example:
        >>> import unweave
        >>> data = unweave.datasets.SquaresXY(points=100, size=16, side=6).load()
        >>> method = unweave.methods.PCA(latent_dim=2).fit(data)
        >>> explore(method, data, "squares.html")  # doctest: +SKIP
        PosixPath('squares.html')
    """
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path} is a folder: name the page, e.g. {path / 'explore.html'}")
    for each in (method, compare or method):
        if not isinstance(each, Method):
            raise InputError(f"{each!r} is no method: load a run with unweave.load(folder)")
    name = f"{method.name} on {data.title()}" if isinstance(data, Dataset) else method.name
    payload = describe_explorer(method, data, compare=compare, seed=seed, model_path=model_path, notify=notify)
    write_atomic(path, render_page(payload, title or name))
    return path


def describe_explorer(
    method: Method,
    data: Any,
    *,
    compare: Method | None = None,
    limit: int = MAX_OBSERVATIONS,
    max_decoder_bytes: int | None = None,
    seed: int = 0,
    model_path: str | Path = "model",
    notify: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Return everything that a page about a method holds, as JSON values.

    Arguments are those of `explore`, and `limit`, the largest number of observations. A decoder whose weights take
    more than `max_decoder_bytes` is evaluated beforehand instead.
    """
    check_is_fitted(method)
    notify("encoding a sample")
    sample = sample_data(method, data, seed, limit)
    payload = describe_sample(sample) | {"path": str(model_path), "name": method.name}
    values, codes, facts = describe_method(method, sample)
    notify("packing the decoder")
    payload |= values | describe_decoder(method, codes, values, facts, max_decoder_bytes)
    about = f"{plural(len(sample.x), 'observation')}, {plural(method.latent_dim_, 'code')}"
    payload["about"] = f"{about}, {describe_source(method, payload)}."
    if compare is not None:
        notify("matching the codes of the other method")
        payload["other"] = describe_other(compare, method, sample, codes, np.array([fact.is_dead for fact in facts]))
        payload["name"], payload["other"]["name"] = distinct_names(method, compare)
    return payload


def describe_other(
    other: Method, method: Method, sample: DrawnData, codes: np.ndarray, is_dead: np.ndarray
) -> dict[str, Any]:
    """Return codes and decoder of a second method for the same observations, and the match of both methods' codes."""
    check_is_fitted(other)
    if other.shape_ != method.shape_ or _column_names(other) != _column_names(method):
        text = f"{other.name} ({other.shape_}) and {method.name} ({method.shape_})"
        raise InputError(f"{text} were trained on other columns or shapes: compare methods of the same data")
    values, other_codes, facts = describe_method(other, sample)
    matches = match_codes(codes, other_codes, method.code_periods(), other.code_periods(), is_dead)
    decoder = describe_decoder(other, other_codes, values, facts)
    return values | decoder | {"matches": [match._asdict() for match in matches]}


def distinct_names(method: Method, other: Method) -> tuple[str, str]:
    """Return the names of two methods; with their seeds, or in their order, where they would be the same."""
    for pair in (
        (method.name, other.name),
        (f"{method.name}, seed {method.seed}", f"{other.name}, seed {other.seed}"),
    ):
        if pair[0] != pair[1]:
            return pair
    return f"{method.name}, first", f"{other.name}, second"


def _column_names(method: Method) -> list[str]:
    return [str(name) for name in getattr(method, "feature_names_in_", ())]


def describe_decoder(
    method: Method, codes: np.ndarray, values: dict[str, Any], facts: list[CodeFacts], max_bytes: int | None = None
) -> dict[str, Any]:
    """Return the decoder as the page runs it; one that it cannot run is replaced by observations decoded beforehand."""
    if not method.has_decoder():
        return {"decoderData": None, "grid": None}
    exported = export_decoder(method, codes[:CHECKED_OBSERVATIONS])
    if exported is None or (max_bytes is not None and 4 * len(exported.weights) / 3 > max_bytes):  # in base64
        return {"decoderData": None, "grid": describe_grid(method, codes, facts, values["order"])}
    fields = {"operations": exported.operations, "shape": list(exported.shape), "latent_dim": exported.latent_dim}
    return {"decoderData": fields | {"weights": base64.b64encode(exported.weights).decode()}, "grid": None}


def describe_source(method: Method, payload: dict[str, Any]) -> str:
    """Return where the pictures of the page come from."""
    if payload["decoderData"]:
        return "decoded in this page"
    if payload["grid"]:
        count = plural(payload["grid"]["count"], "point")
        return f"decoded beforehand at {count}, of which the nearest is shown (not by this page)"
    return "shown by the nearest observations (the method has no decoder)"


def render_page(payload: dict[str, Any], title: str) -> str:
    """Return the HTML of the page; the policy admits its own script and style by their hashes, and nothing else."""
    style, script = read_assets(STYLE, SCRIPTS)
    environment = Environment(loader=PackageLoader("unweave", FOLDER), autoescape=True)
    return environment.get_template("template.html.jinja").render(
        title=title,
        about=payload["about"],
        has_decoder=payload["decoderData"] is not None,
        has_grid=payload["grid"] is not None,
        has_other="other" in payload,
        name=payload["name"],
        style=Markup(style),
        script=Markup(script),
        style_hash=content_hash(style),
        script_hash=content_hash(script),
        data=Markup(to_json(payload)),
    )


def read_assets(style: str, scripts: Sequence[str]) -> tuple[str, str]:
    """Return a style sheet and one script of several files, by their paths below `report`."""
    root = resources.files("unweave").joinpath("report")
    script = "\n".join(root.joinpath(name).read_text(encoding="utf-8") for name in scripts)
    return root.joinpath(style).read_text(encoding="utf-8"), script


def content_hash(text: str) -> str:
    """Return the hash by which a content security policy admits an inline script or style."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def to_json(value: Any) -> str:
    """Return JSON for a script element: a name such as "</script>" cannot end it."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
