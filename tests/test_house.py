"""The house rules: reading order, budgets, nothing unfinished."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import unweave

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "unweave"
FILES = sorted(SOURCE.rglob("*.py"))

# Import order is reading order: a module imports only what stands in an earlier line (or in its own folder).
ORDER = [
    ["__init__"],
    ["errors"],
    ["checks", "claims", "discovery", "storage", "terminal", "originals", "augment"],
    ["data"],
    ["dataset", "arrays"],
    ["files", "supervision", "functional", "families", "knee", "nn", "scoring", "spectral", "findings"],
    ["method", "optimiser"],
    ["pack"],
    ["step", "checkpoint"],
    ["engine"],
    ["train"],
    ["neural"],
    ["datasets", "methods", "metrics"],
    ["catalog", "explanation"],
    ["evaluation"],
    ["run"],
    ["perform", "settings"],
    ["study", "choosing"],
    ["remote", "papers"],
    ["figures"],
    ["report"],
    ["cli_data", "cli_draw", "cli_score"],
    ["cli_study", "cli_paper"],
    ["cli"],
    ["__main__"],
]
MOST_LINES, MOST_FUNCTION_LINES, MOST_PARAMETERS = 400, 60, 8


def floor(name: str) -> int:
    return next(i for i, rooms in enumerate(ORDER) if name in rooms)


def room(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(path: Path) -> set[str]:
    """The rooms of our own package that a file imports from, wherever in the file it does."""
    depth = len(path.relative_to(SOURCE).parts)
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {a.name.split(".")[1] for a in node.names if a.name.startswith("unweave.")}
        if isinstance(node, ast.ImportFrom) and node.level == depth:
            found |= {node.module.split(".")[0]} if node.module else {a.name for a in node.names}
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "unweave" and not node.level:
            found |= {"absolute import of our own package"}
    return found - {"__version__"}


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_a_module_imports_only_what_stands_above_it(path):
    if room(path) == "__init__":
        return  # its imports are for type checkers, and happen when a name is used
    late = [name for name in imports(path) if floor(name) >= floor(room(path)) and name != room(path)]
    assert not late, f"{path.name} imports {late}, which stand below it"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_files_and_functions_keep_to_their_budgets(path):
    text = path.read_text()
    assert text.count("\n") <= MOST_LINES, "is it two ideas?"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            assert (node.end_lineno or 0) - node.lineno < MOST_FUNCTION_LINES, f"{node.name} is too long"
            count = len(node.args.args) + len(node.args.kwonlyargs)
            assert count <= MOST_PARAMETERS, f"{node.name} has {count} parameters"


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


def test_importing_unweave_imports_neither_torch_nor_scikit_learn():
    code = "import sys, unweave, unweave.cli; print([m for m in ('torch', 'sklearn', 'pandas') if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_every_public_name_can_be_had():
    for name in unweave.__all__:
        assert getattr(unweave, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = unweave.nothing


def test_the_version_is_written_once_more_and_the_same():
    assert f'version = "{unweave.__version__}"' in (ROOT / "pyproject.toml").read_text()
