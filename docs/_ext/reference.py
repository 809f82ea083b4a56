"""Sphinx extension: one page for every method, dataset and metric, made from the catalog and the docstrings."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import io
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.pycode import ModuleAnalyzer

import unweave
from unweave import catalog
from unweave.cli.main import COMMANDS, main
from unweave.data.attributes import ATTRIBUTES
from unweave.data.dataset import Dataset
from unweave.methods.base import Method
from unweave.metrics.contract import Metric

GROUPS = {  # public names that are no method, dataset or metric
    "data": ("as_data", "as_pairs", "features", "Factor", "FactorData", "Table", "Grid", "Mixing", "LazyTable",
             "GeneratorManifold", "Dataset", "OwnData"),
    "experiments": ("advise", "sweep", "execute", "Run", "rows", "load", "explain", "describe", "explore", "scorer",
                    "write_report", "progress_bar"),
    "base": ("Method", "Neural", "Lane", "metric", "InputError"),
}  # fmt: skip
TRUTHS = {
    "factors": "true factors",
    "inputs": "the observations; no labels",
    "decoder": "a method with a decoder; no labels",
    "nothing": "codes only; no labels",
    "labels": "labels and predictions of a classifier",
    "runs": "codes of several runs; no labels",
}


def write_pages(app: Sphinx) -> None:
    """Write all pages of the reference below api/generated; pages that did not change keep their date."""
    folder = Path(app.srcdir) / "api" / "generated"
    pages: dict[str, str] = {}
    for name, method in catalog.methods().items():
        pages[f"methods/{method.__name__}"] = "\n".join(method_page(name, method))
    for name, dataset in catalog.datasets().items():
        pages[f"datasets/{dataset.__name__}"] = "\n".join(dataset_page(name, dataset))
    for name, function in catalog.metrics().items():
        pages[f"metrics/{function.__name__}"] = "\n".join(metric_page(name, function))
    for kind in ("methods", "datasets", "metrics"):
        pages[kind] = "\n".join(index_page(kind, getattr(catalog, kind)()))
    for group, names in GROUPS.items():
        pages[group] = "\n".join(group_page(group, names))
    pages["attributes"] = "\n".join(attributes_page())
    pages["cli"] = "\n".join(cli_page())
    for name, text in pages.items():
        path = folder / f"{name}.rst"
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def method_page(name: str, cls: type[Method]) -> Iterator[str]:
    """Yield the lines of a method's page: facts, docstring, settings, and examples that use it."""
    yield from heading(cls.__name__)
    yield from facts({
        "On the command line": f"``unweave fit {name} DATA``",
        "Learns from": cls.needs,
        "Decoder": "yes: ``inverse_transform``" if cls.has_decoder() else "no",
        "Paper": cls.paper,
        "Former names": ", ".join(f"``{alias}``" for alias in cls.aliases),
        "Source": f"``{source_path(cls)}``",
    })  # fmt: skip
    yield from autodoc_class(f"unweave.methods.{cls.__name__}", cls)
    yield from settings_tables(cls, Method)
    yield "``fit``, ``transform``, ``inverse_transform``, ``save`` and ``load`` are those of :class:`unweave.Method`.\n"
    yield from examples(f"unweave.methods.{cls.__name__}")


def dataset_page(name: str, cls: type[Dataset]) -> Iterator[str]:
    """Yield the lines of a dataset's page."""
    yield from heading(cls.__name__)
    files = ", ".join(f"``{published.file}``" for published in cls.files)
    yield from facts({
        "On the command line": f"``unweave fit METHOD {name}``",
        "Published files": files or "none needed",
        "Official page": cls.page,
        "License of the files": cls.license,
        "Paper": cls.paper,
        "Source": f"``{source_path(cls)}``",
    })  # fmt: skip
    yield from autodoc_class(f"unweave.datasets.{cls.__name__}", cls)
    yield from settings_tables(cls, Dataset)
    yield from examples(f"unweave.datasets.{cls.__name__}")


def metric_page(name: str, function: Metric) -> Iterator[str]:
    """Yield the lines of a metric's page."""
    known = function.facts
    yield from heading(function.__name__)
    variants = [
        f"``{name}[{variant}]``{' (default)' * (variant in known.default)}{' (slow)' * (variant in known.slow)}"
        for variant in known.variants
        if variant
    ]
    yield from facts({
        "On the command line": f"``unweave score CODES --factors FACTORS --metrics {name}``",
        "Compares codes with": TRUTHS[known.truth],
        "Best score": f"{known.best:g}",
        "Score of a constant code": "that of guessing" if known.worst is None else f"{known.worst:g}",
        "Kinds of factors": ", ".join(known.kinds) if known.truth == "factors" else "",
        "Variants": ", ".join(variants),
        "Paper": known.paper,
        "Source": f"``{source_path(function)}``",
    })  # fmt: skip
    yield f".. autofunction:: unweave.metrics.{function.__name__}\n"
    yield from examples(f"unweave.metrics.{function.__name__}")


def index_page(kind: str, entries: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the table of all methods, datasets or metrics."""
    yield from heading(kind.capitalize())
    role = "func" if kind == "metrics" else "class"
    rows = []
    for name, entry in entries.items():
        cells = [f":{role}:`~unweave.{kind}.{entry.__name__}`", f"``{name}``", summary(entry)]
        rows.append([*cells, entry.needs] if kind == "methods" else cells)
    header = ["Class" if role == "class" else "Function", "Name", "Summary"]
    yield from table([*header, "Learns from"] if kind == "methods" else header, rows)
    if kind == "metrics":
        yield from ("Tables of scores", "-" * 16, "")
        for name in ("prepared", "score_all", "score_many"):
            yield f".. autofunction:: unweave.metrics.{name}\n"
    yield from (".. toctree::", "   :hidden:", "")
    yield from (f"   {kind}/{entry.__name__}" for entry in sorted(entries.values(), key=lambda e: e.__name__.lower()))


def group_page(group: str, names: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a page with several public names."""
    titles = {"data": "Data", "experiments": "Experiments", "base": "Base classes"}
    yield from heading(titles[group])
    yield from table(
        ["Name", "Summary"], [[f":obj:`unweave.{name}`", summary(getattr(unweave, name))] for name in names]
    )
    for name in names:
        thing = getattr(unweave, name)
        if inspect.isclass(thing):
            yield from (name, "-" * len(name), "", f".. autoclass:: unweave.{name}{signature(thing)}")
            yield "   :members:\n"
        elif inspect.isfunction(thing):
            yield from (name, "-" * len(name), "", f".. autofunction:: unweave.{name}\n")
        else:
            yield from (name, "-" * len(name), "", f".. autodata:: unweave.{name}\n   :no-value:\n")


def attributes_page() -> Iterator[str]:
    """Yield the lines of the page of image attributes."""
    yield from heading("Attributes of images")
    yield "``unweave.attributes``: functions of images (n, h, w) or (n, c, h, w) that return one number per image."
    yield "``measure(images, names)`` returns several by name, by default all.\n"
    rows = [[f"``{name}``", entry.words, summary(entry.function)] for name, entry in ATTRIBUTES.items()]
    yield from table(["Function", "In words", "Returns"], rows)


def cli_page() -> Iterator[str]:
    """Yield the lines of the reference of all commands: what `--help` prints."""
    yield from heading("Command line")
    yield "What ``unweave COMMAND --help`` prints, command by command. ``unweave fit METHOD --help`` adds the settings"
    yield "of the method, which are on its page: :doc:`methods`.\n"
    for name in COMMANDS:
        title = f"unweave {name}"
        yield from (title, "-" * len(title), "", ".. code-block:: text", "")
        yield from (f"   {line}".rstrip() for line in help_text(name).splitlines())
        yield ""


def help_text(command: str) -> str:
    """Return what `unweave COMMAND --help` prints, 100 characters wide and without colors."""
    os.environ |= {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
    printed = io.StringIO()
    showwarning = warnings.showwarning  # the command sets its own
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        main([command, "--help"])
    warnings.showwarning = showwarning
    return re.sub(r"\x1b\[[0-9;]*m", "", printed.getvalue())


def settings_tables(cls: type, base: type) -> Iterator[str]:
    """Yield tables of the fields: those of the class first, inherited ones below."""
    own: list[list[str]] = []
    inherited: list[list[str]] = []
    for field in dataclasses.fields(cls):
        owner = next(parent for parent in cls.__mro__ if field.name in vars(parent).get("__annotations__", {}))
        row = [f"``{field.name}``", f"``{default_text(field)}``", field_text(cls, field.name)]
        (own if owner is cls or base is Dataset else inherited).append(row)
    for title, rows in (("Settings", own), ("Inherited settings", inherited)):
        if rows:
            yield from (title, "-" * len(title), "")
            yield from table(["Setting", "Default", "Meaning"], rows)


def field_text(cls: type, name: str) -> str:
    """Return the docstring below a field, from the first class that has one."""
    for parent in cls.__mro__:
        if parent.__module__.startswith("unweave"):
            docs = ModuleAnalyzer.for_module(parent.__module__).find_attr_docs()
            if (parent.__name__, name) in docs:
                return as_rst(" ".join(docs[parent.__name__, name]).strip())
    return ""


def as_rst(text: str) -> str:
    """Return text with the characters escaped that mean something in reStructuredText, except within `code`."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"[*|]|_(?!\w)", r"\\\g<0>", part) for part in parts)


def process_docstring(app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Escape the docstrings that autodoc reads; examples stay as they are."""
    is_code = False
    for i, line in enumerate(lines):
        is_code = line.lstrip().startswith(">>>") or (is_code and bool(line.strip()))
        if not is_code:
            lines[i] = as_rst(line)
    _escaped[name] = list(lines)


def restore_attribute(app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Undo what napoleon does to docstrings of attributes: it takes the words before a colon for a type."""
    if what in ("attribute", "data", "property"):
        lines[:] = _escaped[name]


_escaped: dict[str, list[str]] = {}


def skip_member(app: Sphinx, what: str, name: str, thing: object, skip: bool, options: object) -> bool | None:
    """Leave out the methods that scikit-learn adds for metadata routing."""
    return True if re.fullmatch(r"set_\w+_request", name) else None


def default_text(field: dataclasses.Field[Any]) -> str:
    """Return the default of a field as Python would show it."""
    if field.default is not dataclasses.MISSING:
        return repr(str(field.default) if isinstance(field.default, Path) else field.default)
    return "required" if field.default_factory is dataclasses.MISSING else repr(field.default_factory())


def signature(cls: type) -> str:
    """Return the parameters of a dataclass for its heading: its own fields, and `**settings` for inherited ones."""
    if not (issubclass(cls, Method | Dataset) and dataclasses.is_dataclass(cls)):
        return ""  # autodoc's
    own = [field for field in dataclasses.fields(cls) if field.name in vars(cls).get("__annotations__", {})]
    parts = [f"{f.name}={default_text(f)}" if default_text(f) != "required" else f.name for f in own if f.init]
    more = ["**settings"] if len(own) < len(dataclasses.fields(cls)) else []
    return f"({', '.join([*parts, *more])})"


def autodoc_class(name: str, cls: type) -> Iterator[str]:
    """Yield the directive that inserts the docstring of a class."""
    yield f".. autoclass:: {name}{signature(cls)}\n"


def examples(name: str) -> Iterator[str]:
    """Yield the gallery of examples that use a name."""
    yield f".. minigallery:: {name}\n   :add-heading: Examples\n   :heading-level: -\n"


def heading(title: str) -> tuple[str, ...]:
    """Return the title of a page."""
    return (title, "=" * len(title), "")


def facts(values: dict[str, str]) -> Iterator[str]:
    """Yield a list of facts; empty ones are left out."""
    yield from (f":{name}: {text}" for name, text in values.items() if text)
    yield ""


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield a table."""
    yield from (".. list-table::", "   :header-rows: 1", "   :class: reference", "")
    for row in [header, *rows]:
        for i, cell in enumerate(row):
            yield f"   {'* -' if i == 0 else '  -'} {cell}"
    yield ""


def summary(thing: Callable[..., Any]) -> str:
    """Return the first sentence of a docstring."""
    return as_rst((inspect.getdoc(thing) or "").split("\n\n")[0].replace("\n", " "))


def source_path(thing: Any) -> str:
    """Return the file that defines a class or function, below the repository."""
    return "src/" + thing.__module__.replace(".", "/") + ".py"


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the pages before Sphinx looks for them."""
    app.connect("builder-inited", write_pages, priority=100)
    app.connect("autodoc-process-docstring", process_docstring, priority=100)  # before napoleon
    app.connect("autodoc-process-docstring", restore_attribute, priority=900)  # after napoleon
    app.connect("autodoc-skip-member", skip_member)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
