"""Hashes of recipes, files and source code, and JSON files that name what is wrong with them."""

import hashlib
import importlib.util
import json
import linecache
import os
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from unweave import InputError
from unweave.methods import PCA
from unweave.utils import storage
from unweave.utils.storage import (
    cached_sha256,
    check_hash,
    read_json,
    recipe_hash,
    sha256,
    sha256_of_text,
    source_hash,
    to_jsonable,
    write_json,
)


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


# JSON -----------------------------------------------------------------------------------------------------------------


def test_json_is_indented_and_keeps_letters(tmp_path):
    write_json(tmp_path / "a.json", {"größe": np.arange(2), "place": Path("a/b"), "mcc": np.float64(0.5)})
    text = '{\n  "größe": [\n    0,\n    1\n  ],\n  "place": "a/b",\n  "mcc": 0.5\n}\n'
    assert (tmp_path / "a.json").read_bytes() == text.encode()
    assert read_json(tmp_path / "a.json") == {"größe": [0, 1], "place": "a/b", "mcc": 0.5}
    with pytest.raises(TypeError, match="set cannot be written as JSON"):
        to_jsonable({1})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, r"a\.json is missing: is .* a folder that unweave wrote\?"),
        ('{"mcc": 0.', r"a\.json cannot be read \(.*\): it is truncated or altered; delete the folder and repeat"),
        ("[" * 100_000, r"a\.json cannot be read"),
        (b"\xff", r"a\.json cannot be read"),
        ("[1]", r"a\.json holds list, not an object: it was not written by unweave"),
    ],
)
def test_json_that_unweave_did_not_write_is_named(text, message, tmp_path):
    if text is not None:
        (tmp_path / "a.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError, match=message):
        read_json(tmp_path / "a.json")


def test_json_in_a_pipe_is_not_waited_for_and_a_folder_is_no_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="pipe is a named pipe or a device"):
        read_json(tmp_path / "pipe")
    with pytest.raises(InputError, match=r"cannot be read \(Is a directory"):
        read_json(tmp_path)


# Hashes ---------------------------------------------------------------------------------------------------------------


def test_a_recipe_has_the_hash_of_its_sorted_json():
    recipe = {"b": np.float64(0.5), "a": Path("x")}
    whole = digest(b'{"a": "x", "b": 0.5}')
    assert recipe_hash(recipe) == recipe_hash({"a": "x", "b": 0.5}) == whole[:16]
    assert recipe_hash(recipe, 8) == whole[:8]


def test_files_are_hashed_one_after_another_with_their_names_below_a_folder(tmp_path):
    (tmp_path / "b").mkdir()
    for name, text in {"a": "one", "b/c": "two"}.items():
        (tmp_path / name).write_text(text)
    a, c = tmp_path / "a", tmp_path / "b/c"
    assert sha256(a) == sha256_of_text("one") == digest(b"one")
    assert sha256(a, c) == digest(b"onetwo")
    assert sha256(a, c, below=tmp_path) == digest(b"a\0oneb/c\0two")
    with pytest.raises(InputError, match="is a folder"):
        sha256(tmp_path / "b")


def test_a_file_is_hashed_once_unless_it_changes(tmp_path, monkeypatch):
    hashed = []
    actual = storage.sha256
    monkeypatch.setattr(storage, "sha256", lambda path: hashed.append(path) or actual(path))
    path = tmp_path / "weights"
    path.write_bytes(b"old")
    os.utime(path, (1, 1))  # as copies have it: only the change of the entry is new
    first = cached_sha256(path)
    assert cached_sha256(path) == first == digest(b"old") and len(hashed) == 2, "its times may hide another change"
    now = path.stat().st_ctime + storage.MIN_AGE
    monkeypatch.setattr(storage.time, "time", lambda: now)
    assert cached_sha256(path) == cached_sha256(path) == first and len(hashed) == 3
    path.write_bytes(b"new")
    os.utime(path, (1, 1))
    assert cached_sha256(path) == digest(b"new")


def test_a_file_that_is_missing_or_altered_is_named(tmp_path):
    path = tmp_path / "weights"
    with pytest.raises(InputError, match="weights is missing: the folder is not complete"):
        check_hash(path, digest(b"old"))
    path.write_bytes(b"old")
    check_hash(path, digest(b"old"))
    path.write_bytes(b"new")
    texts = (f"sha256 is {digest(b'new')[:12]}...", f"expected {digest(b'old')[:12]}...")
    with pytest.raises(InputError, match="truncated or altered: its {}, {}".format(*texts)):
        check_hash(path, digest(b"old"))


# Source code ----------------------------------------------------------------------------------------------------------


def test_a_users_class_has_the_hash_of_its_file_as_it_was_imported(tmp_path, monkeypatch):
    file = tmp_path / "unweaving.py"  # whose name begins as ours
    file.write_text("class Mine:\n    steps = 1\n")
    spec = importlib.util.spec_from_file_location("unweaving", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "unweaving", module)
    spec.loader.exec_module(module)
    expected = digest(file.read_bytes())
    assert source_hash(module.Mine) == expected and source_hash(PCA) is None
    file.write_text("class Mine:\n    steps = 2\n")
    assert source_hash(module.Mine) == expected, "an edited file is another class once it is imported"
    sent = type("Mine", (), {"__module__": "unweaving", "source_hash_": "as it was sent"})
    assert source_hash(sent) == "as it was sent"


def test_code_without_a_file_is_hashed_where_python_knows_it(monkeypatch):
    code = "def mine(x):\n    return x\n"
    module = ModuleType("typed")
    module.__file__ = "<typed>"
    monkeypatch.setitem(sys.modules, "typed", module)
    monkeypatch.setitem(linecache.cache, "<typed>", (len(code), None, code.splitlines(keepends=True), "<typed>"))
    exec(compile(code, "<typed>", "exec"), vars(module))
    assert source_hash(module.mine) == digest(code.encode())
    with pytest.raises(InputError, match="the code of Mine cannot be read, so its versions cannot be distinguished"):
        source_hash(type("Mine", (), {"__module__": "nowhere"}))


def test_hashes_are_those_of_json_and_no_objects_address():
    with pytest.raises(TypeError, match="cannot be written as JSON"):
        recipe_hash({"a": object()})
    assert json.loads(json.dumps(np.int64(3), default=to_jsonable)) == 3
