"""The release: one version, metadata that agree, workflows whose commands and versions exist."""

import importlib.util
import re
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

import unweave
from unweave.cli.main import main
from unweave.papers.registry import PAPERS

ROOT = Path(__file__).parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = [path for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml"]
PINS = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").split() if "==" in line)


def steps(path: Path) -> list[dict[str, Any]]:
    """Return the steps of every job of a workflow."""
    jobs = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].values()
    return [step for job in jobs for step in job["steps"]]


def supported_versions() -> set[str]:
    """Return the Python versions that the classifiers list, e.g. 3.11."""
    return {match[1] for text in PROJECT["classifiers"] if (match := re.search(r"Python :: (3\.\d+)$", text))}


@pytest.fixture(scope="module")
def package() -> ModuleType:
    """Return .ci/check_wheel.py as a module."""
    spec = importlib.util.spec_from_file_location("check_wheel", ROOT / ".ci" / "check_wheel.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_version_is_written_once_and_agrees_everywhere(capsys):
    assert "version" not in PROJECT and "version" in PROJECT["dynamic"]
    assert version("unweave") == unweave.__version__, "the environment has an old version: run make again"
    assert CITATION["version"] == unweave.__version__
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out.strip() == f"unweave {unweave.__version__}"


def test_the_citation_agrees_with_the_metadata_and_names_every_paper():
    assert CITATION["license"] == PROJECT["license"]
    assert CITATION["authors"] == PROJECT["authors"]
    years = {entry["notes"].removeprefix("unweave paper list: "): entry["year"] for entry in CITATION["references"]}
    titles = {name: title for name, title in PAPERS.items() if name != "baselines"}
    assert years == {name: int(re.findall(r"(\d{4})\)$", title)[0]) for name, title in titles.items()}


def test_workflows_test_every_supported_version_of_python():
    tests = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8"))
    matrix = tests["jobs"]["tests"]["strategy"]["matrix"]
    assert set(matrix["python-version"]) == supported_versions()
    assert PROJECT["requires-python"] == f">={min(supported_versions(), key=lambda text: int(text[2:]))}"
    assert {name.split("-")[0] for name in matrix["os"]} == {"ubuntu", "macos", "windows"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_commands_of_a_workflow_exist(path):
    """Scripts are in the repository, extras in pyproject.toml, and actions have a version."""
    for step in steps(path):
        command, given = step.get("run", ""), step.get("with", {})
        missing = [file for file in re.findall(r"[\w./-]+\.(?:py|txt)\b", command) if not (ROOT / file).is_file()]
        assert not missing, f"{path.name}: {command}"
        extras = {extra for text in re.findall(r"\[([\w,]+)\]", command) for extra in text.split(",")}
        assert extras <= set(PROJECT["optional-dependencies"]), f"{path.name}: {command}"
        assert "run" in step or re.fullmatch(r"[\w-]+/[\w-]+@(release/)?v\d+", step["uses"]), f"{path.name}: {step}"
        python = given.get("python-version", "3.11")
        assert python in supported_versions() or python.startswith("${{ matrix."), f"{path.name}: {python}"


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name)
def test_issue_forms_have_fields_with_labels(path):
    form = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert form["name"] and form["description"]
    identifiers = [field["id"] for field in form["body"]]
    assert len(set(identifiers)) == len(identifiers) >= 3
    assert all(field["attributes"]["label"] for field in form["body"])


def test_pins_meet_the_requirements():
    """A pin below a lower bound makes every install fail."""
    texts = [*PROJECT["dependencies"], *(text for group in PROJECT["optional-dependencies"].values() for text in group)]
    requirements = {each.name.lower(): each for each in map(Requirement, texts)}
    assert set(PINS) <= set(requirements), "constraints.txt pins what nothing needs"
    assert [name for name, pin in PINS.items() if not requirements[name].specifier.contains(pin)] == []


def test_hooks_before_a_commit_use_pinned_tools():
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    tools = {hook["entry"].split()[0] for hook in repository["hooks"]}
    assert repository["repo"] == "local" and tools == {"ruff", "codespell", "mypy"}
    assert tools <= set(PINS)


def test_a_release_needs_the_tag_of_its_version(package):
    metadata = {"Version": "0.2.0"}
    package.check_tag(metadata, "v0.2.0")
    with pytest.raises(package.PackageError, match=r"tag is v0.1.0.*expected v0.2.0"):
        package.check_tag(metadata, "v0.1.0")


def test_a_failed_check_says_what_differs(package, tmp_path):
    with pytest.raises(package.PackageError, match=r"wheel: missing: b.txt; extra: c.txt"):
        package.require_same("wheel", {"a.txt", "b.txt"}, {"a.txt", "c.txt"})
    with pytest.raises(package.PackageError, match=r"exit code 3:\nno such table"):
        package.call([sys.executable, "-c", "print('no such table'); raise SystemExit(3)"], tmp_path)


def test_a_status_that_differs_in_the_wheel_is_named(package):
    here = [{"name": f"gin/figure-{k}", "state": "drawn"} for k in range(12)]
    assert package.compare_rows(here, here) == ""
    there = [row | {"state": "not run"} for row in here]
    lines = package.compare_rows(here, there).splitlines()
    assert lines[0] == "gin/figure-0, state: 'drawn' in the repository, 'not run' in the wheel"
    assert lines[-1] == "... and 4 more" and len(lines) == 9
    assert "gin/figure-11, state: 'drawn' in the repository, None" in package.compare_rows(here, here[:-1])
    assert package.compare_rows(here[:-1], here) == "gin/figure-11: only in the wheel"
