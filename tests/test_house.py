"""Rules of the code base: layout, import direction, size limits, vocabulary, nothing unfinished."""

import ast
import doctest
import inspect
import re
import subprocess
import sys
from collections import defaultdict
from importlib import import_module
from pathlib import Path

import pytest

import unweave
from unweave import Method, catalog

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "unweave"
FILES = sorted(SOURCE.rglob("*.py"))
TREES = {path: ast.parse(path.read_text()) for path in FILES}

# A module imports only from rooms to its left, or from its own room.
ORDER = [
    "utils", "data", "nn", "training", "methods", "datasets", "metrics", "catalog", "experiments", "report", "papers",
    "cli",
]  # fmt: skip
MAX_ENTRIES, MAX_LINES, MAX_BODY_LINES, MAX_PARAMETERS, MAX_DEPTH = 15, 300, 40, 8, 3
BANNED_NAMES = {"expected", "told", "found", "apart", "judged", "AT_ONCE", "MOST", "said"}  # see CONTRIBUTING.md


def name_of(path: Path) -> str:
    return str(path.relative_to(SOURCE))


def room(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_names(tree: ast.Module) -> list[tuple[str, str]]:
    """(module, name) of every import of our own package, wherever in the file it stands."""
    pairs = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            pairs += [(alias.name, "") for alias in node.names if alias.name.split(".")[0] == "unweave"]
        if isinstance(node, ast.ImportFrom):
            assert not node.level, "imports are absolute: from unweave.data.core import Factor"
            if (node.module or "").split(".")[0] == "unweave":
                pairs += [(str(node.module), alias.name) for alias in node.names]
    return pairs


def imported_rooms(tree: ast.Module) -> set[str]:
    rooms = {f"{module}.{name}.".split(".")[1] for module, name in imported_names(tree)}
    return rooms & {*ORDER, *(path.stem for path in SOURCE.iterdir())}


def test_the_package_has_few_entries():
    entries = sorted(path.name for path in SOURCE.iterdir() if path.name != "__pycache__")
    assert len(entries) <= MAX_ENTRIES, entries
    assert {Path(name).stem for name in entries} == {*ORDER, "__init__", "__main__", "py"}


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_imports_point_to_the_left(path):
    if path.parent == SOURCE and path.stem.startswith("__"):
        return  # the public names, imported on first use
    later = [name for name in imported_rooms(TREES[path]) if ORDER.index(name) > ORDER.index(room(path))]
    assert not later, f"{name_of(path)} imports from {later}; the order is {' -> '.join(ORDER)}"


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_files_and_functions_are_short(path):
    lines = path.read_text().count("\n")
    assert lines <= MAX_LINES, f"{lines} lines: is it two ideas?"
    for node in ast.walk(TREES[path]):
        if isinstance(node, ast.FunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            length = (node.end_lineno or 0) - body[0].lineno + 1 if body else 0
            assert length <= MAX_BODY_LINES, f"the body of {node.name} has {length} lines"
            is_kernel = any("triton.jit" in ast.unparse(decorator) for decorator in node.decorator_list)
            count = len(node.args.args) + len(node.args.kwonlyargs)
            # A kernel takes every size by itself: there are no tuples and no objects on a GPU.
            assert count <= MAX_PARAMETERS or is_kernel, f"{node.name} has {count} parameters"


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_names_are_words_of_the_field(path):
    for node in ast.walk(TREES[path]):
        names = {
            ast.Name: lambda n: [n.id], ast.arg: lambda n: [n.arg], ast.FunctionDef: lambda n: [n.name],
            ast.ClassDef: lambda n: [n.name], ast.Attribute: lambda n: [n.attr], ast.keyword: lambda n: [n.arg],
        }.get(type(node), lambda n: [])(node)  # fmt: skip
        banned = BANNED_NAMES & {str(name).strip("_") for name in names}
        assert not banned, f"line {getattr(node, 'lineno', '?')}: {banned}; say what it holds (see docs/writing.md)"


def test_no_file_imports_two_things_of_the_same_name():
    """Two module-level functions may share a name only if no file has to tell them apart."""
    homes = defaultdict(set)
    for path, tree in TREES.items():
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].add(module_name(path))
    twice = {name: modules for name, modules in homes.items() if len(modules) > 1}
    for path, tree in TREES.items():
        own = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        seen = defaultdict(set)
        for module, name in imported_names(tree):
            if name in twice and module in twice[name]:
                seen[name].add(module)
        for name, modules in seen.items():
            assert len(modules) + (name in own) <= 1, f"{name_of(path)}: {name} of {modules} and of its own"


@pytest.mark.parametrize("name", catalog.methods())
def test_classes_are_flat(name):
    def depth(cls: type) -> int:
        ours = [base for base in cls.__bases__ if base.__module__.startswith("unweave")]
        return 1 + max(map(depth, ours)) if ours else 0

    assert depth(catalog.methods()[name]) <= MAX_DEPTH, inspect.getmro(catalog.methods()[name])


@pytest.mark.parametrize("package", ["methods", "datasets", "metrics"])
def test_exports_are_what_the_folder_defines(package):
    """A file in the folder without an export, or an export without a catalog name, is forgotten work."""
    exported = import_module(f"unweave.{package}")
    base = {"methods": Method, "datasets": unweave.Dataset}.get(package)
    defined = set()
    for path in (SOURCE / package).rglob("*.py"):
        module = import_module(module_name(path))
        for name, thing in vars(module).items():
            if name.startswith("_") or getattr(thing, "__module__", "") != module.__name__:
                continue
            is_entry = isinstance(thing, type) and issubclass(thing, base) if base else hasattr(thing, "facts")
            if is_entry and not inspect.isabstract(thing):
                defined.add(name)
                assert base is None or "name" in vars(thing), f"{name} needs a catalog name: name = ..."
    extra = {"prepared", "score_all", "score_many"} if package == "metrics" else set()
    assert defined | extra == set(exported.__all__)
    assert sorted(exported.__all__, key=str.lower) == sorted(set(exported.__all__), key=str.lower)


@pytest.mark.parametrize(
    "path", [path for path in FILES if ">>>" in path.read_text()], ids=name_of
)  # examples are part of the documentation, so they must run
def test_doctests_run(path):
    result = doctest.testmod(import_module(module_name(path)), optionflags=doctest.ELLIPSIS)
    assert not result.failed


def test_nothing_is_left_for_later_and_nothing_loaded_can_execute():
    unfinished = re.compile(r"\b(TODO|FIXME|XXX)\b|NotImplementedError\(\)")
    dangerous = re.compile(r"\bpickle\b(?!=False)|allow_pickle=True|torch\.load\(|joblib|(?<![.\w])(eval|exec)\(")
    for path in FILES:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            assert not unfinished.search(line), f"{path}:{number}"
            assert not dangerous.search(line.split("#")[0].replace('"allow_pickle"', "")), f"{path}:{number}"


def test_every_test_can_fail():
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                body = ast.unparse(node)
                assert re.search(r"\bassert\b|raises|warns|assert_|check_finite", body), f"{path.name}: {node.name}"


def test_tests_mirror_the_source():
    """A folder of tests stands for a folder of the source."""
    folders = {path.parent.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("test_*.py")}
    assert all((SOURCE / folder).is_dir() for folder in folders), folders


def test_importing_unweave_imports_neither_torch_nor_scikit_learn():
    modules = "('torch', 'sklearn', 'pandas')"
    code = f"import sys, unweave, unweave.cli.main; print([m for m in {modules} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_every_public_name_exists_and_is_documented():
    for name in unweave.__all__:
        thing = getattr(unweave, name)
        assert thing is not None
        if inspect.isclass(thing) or inspect.isfunction(thing):
            assert inspect.getdoc(thing), f"unweave.{name} has no docstring"
    for package in (unweave.methods, unweave.datasets, unweave.metrics):
        for name in package.__all__:
            assert inspect.getdoc(getattr(package, name)), f"{name} has no docstring"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = unweave.nothing
