"""The explorer: one self-contained HTML page to move the codes of a method and see what they do."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader
from markupsafe import Markup
from sklearn.utils.validation import check_is_fitted

from unweave.data.dataset import Dataset
from unweave.methods.base import Method
from unweave.methods.encoding import encode_array
from unweave.report.explorer.data import MAX_OBSERVATIONS, describe_data, sample_data
from unweave.report.explorer.decoder_export import export_decoder
from unweave.utils.errors import InputError, plural
from unweave.utils.storage import write_atomic

FOLDER = "report/explorer"
CHECKED_OBSERVATIONS = 64  # at whose codes the exported decoder is compared with the method
SCRIPTS = (  # in the order of their dependencies
    "decoder.js", "views/state.js", "views/model.js", "views/drawing.js", "views/dom.js", "views/sliders.js",
    "views/panel.js", "views/filmstrip.js", "views/map.js", "views/matrix.js", "views/export.js", "views/main.js",
)  # fmt: skip


def explore(
    method: Method,
    data: Any,
    path: str | Path = "explore.html",
    *,
    title: str = "",
    model_path: str | Path = "model",
    seed: int = 0,
    notify: Callable[[str], None] = lambda text: None,
) -> Path:
    """Write a page with sliders for the codes of a fitted method; it opens from disk, without a server or a network.

    A method without a decoder shows the nearest observations of the sample instead of decoded ones.

    Args:
        method: A fitted method.
        data: Observations of the shape that it has learned from: an array (n, ...), a DataFrame, a `FactorData` or a
            `Dataset`. At most 5,000 are shown. Factors of the data are compared with the codes.
        path: The page to write.
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
    check_is_fitted(method)
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path} is a folder: name the page, e.g. {path / 'explore.html'}")
    name = f"{method.name} on {data.title()}" if isinstance(data, Dataset) else method.name
    notify("encoding a sample")
    sample = sample_data(method, data, seed, MAX_OBSERVATIONS)
    payload = describe_data(method, sample)
    notify("packing the decoder")
    payload |= {"path": str(model_path), "decoderData": describe_decoder(method, sample.x)}
    about = f"{plural(len(sample.x), 'observation')}, {plural(method.latent_dim_, 'code')}"
    write_atomic(path, render_page(payload, title or name, f"{about}, {describe_source(method, payload)}."))
    return path


def describe_decoder(method: Method, x: np.ndarray) -> dict[str, Any] | None:
    """Return the decoder as the page reads it; None where there is none, or none that it can run."""
    exported = export_decoder(method, encode_array(method, x[:CHECKED_OBSERVATIONS])) if method.has_decoder() else None
    if exported is None:
        return None
    weights = base64.b64encode(exported.weights).decode()
    return {
        "operations": exported.operations,
        "shape": list(exported.shape),
        "latent_dim": exported.latent_dim,
        "weights": weights,
    }


def describe_source(method: Method, payload: dict[str, Any]) -> str:
    """Return where the pictures of the page come from."""
    if payload["decoderData"]:
        return "decoded in this page"
    reason = "its decoder cannot run in a page" if method.has_decoder() else "the method has no decoder"
    return f"shown by the nearest observations ({reason})"


def render_page(payload: dict[str, Any], title: str, about: str) -> str:
    """Return the HTML of the page; the policy admits its own script and style by their hashes, and nothing else."""
    root = resources.files("unweave").joinpath(FOLDER)
    script = "\n".join(root.joinpath(name).read_text(encoding="utf-8") for name in SCRIPTS)
    style = root.joinpath("explorer.css").read_text(encoding="utf-8")
    environment = Environment(loader=PackageLoader("unweave", FOLDER), autoescape=True)
    return environment.get_template("template.html.jinja").render(
        title=title,
        about=about,
        has_decoder=payload["decoderData"] is not None,
        style=Markup(style),
        script=Markup(script),
        style_hash=content_hash(style),
        script_hash=content_hash(script),
        data=Markup(to_json(payload)),
    )


def content_hash(text: str) -> str:
    """Return the hash by which a content security policy admits an inline script or style."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def to_json(value: Any) -> str:
    """Return JSON for a script element: a name such as "</script>" cannot end it."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
