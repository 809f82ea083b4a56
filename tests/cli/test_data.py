"""The command `unweave data`."""

import json

from PIL import Image


def test_datasets_are_listed_located_checked_prepared_and_shown(run, tmp_path, monkeypatch):
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path / "own"))
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path / "cache"))
    state = {row["name"]: row["state"] for row in json.loads(run("data", "list", "--json")[1])}
    assert state["squares-xy"] == "generated"
    assert state["dsprites"] == "substitute"
    assert state["mnist"] == state["unseen"] == "missing"
    assert state["generated-faces"] == "not rendered yet"
    where = json.loads(run("data", "where", "mnist", "--json")[1])
    assert where["folders"] == [str(tmp_path / "own"), str(tmp_path / "cache")]
    assert len(where["files"]) == 4
    code, _, err = run("data", "check", "mnist")
    assert code == 2
    assert "yann.lecun.com" in err
    assert "get its files (`unweave data where`)" in run("data", "check", "unseen")[2]
    assert "dsprites (re-rendered) is used instead." in run("data", "check", "dsprites")[1]
    code, _, err = run("data", "make", "mnist")
    assert code == 2
    assert "unweave data make mnist --download" in err
    assert run("data", "check", "squares-xy")[0] == 0
    assert "is ready" in run("data", "make", "squares-xy")[1]
    assert run("data", "show", "squares-xc", "--out", "sheet.png")[0] == 0
    with Image.open("sheet.png") as sheet:
        assert sheet.width > 500
    (tmp_path / "own" / "mnist").mkdir(parents=True)
    (tmp_path / "own" / "mnist" / "train-images-idx3-ubyte.gz").write_bytes(b"not it")
    code, _, err = run("fit", "pca", "mnist")
    assert code == 2
    assert "its sha256 is" in err
