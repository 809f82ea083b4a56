"""The command `unweave cache`."""

import json

import pytest

from unweave.training.compile_cache import VARIABLE, compile_folder, mark_compiled


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(VARIABLE, raising=False)


def test_compiled_steps_are_shown_packed_unpacked_and_removed(run):
    mark_compiled("key")
    code, out, _ = run("cache", "--json")
    assert code == 0
    info = json.loads(out)
    assert info["folder"] == str(compile_folder())
    assert info["steps"] == info["files"] == 1
    assert json.loads(run("cache", "pack", "steps.tar.gz", "--json")[1])["files"] == 1
    assert str(compile_folder()) in run("cache", "clear")[1]
    assert json.loads(run("cache", "info", "--json")[1])["steps"] == 0
    assert run("cache", "unpack", "steps.tar.gz")[0] == 0
    assert json.loads(run("cache", "--json")[1])["steps"] == 1


def test_help_says_that_files_are_executed_and_mistakes_are_named(run):
    assert "What FILE holds is executed" in run("cache", "--help")[1]
    for args, text in (
        (("pack",), "unweave cache pack: expected a file"),
        (("info", "x"), "unweave cache info: expected no file"),
        (("melt",), "melt"),
        (("unpack", "missing.tar.gz"), "missing.tar.gz is no file"),
        (("pack", "x.tar.gz"), "has no compiled steps yet"),
    ):
        code, _, err = run("cache", *args)
        assert code == 2
        assert text in err
