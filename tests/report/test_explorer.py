"""The explorer: the sample that it packs, and the page."""

import base64
import hashlib
import io
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from tests.report.browser import CHROMIUM, Browser
from unweave import Factor, InputError, Table, as_data, explore
from unweave.datasets import SquaresXY
from unweave.methods import PCA, HessianICA, LinearICA, SwapContrast
from unweave.report import page as report_page
from unweave.report import sample as report_sample
from unweave.report.explorer import data as explorer_data
from unweave.report.explorer.data import describe_data
from unweave.report.explorer.page import SCRIPTS
from unweave.report.explorer.thumbnails import pack_thumbnails
from unweave.report.sample import sample_data

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def squares():
    return SquaresXY(points=300, size=16, side=6).load()


@pytest.fixture(scope="module")
def pca(squares):
    return PCA(latent_dim=3).fit(squares)


def floats(text):
    return np.frombuffer(base64.b64decode(text), "<f4")


def test_a_sample_has_each_observation_once_and_keeps_its_factors(squares, pca, monkeypatch):
    sample = sample_data(pca, squares)
    assert len(sample.x) == 300 and len(np.unique(sample.truth, axis=0)) == 300
    packed = describe_data(pca, sample)
    np.testing.assert_allclose(floats(packed["codes"]).reshape(-1, 3), pca.transform(sample.x), rtol=1e-6)
    np.testing.assert_allclose(floats(packed["factors"][1]["values"]), sample.truth[:, 1], rtol=1e-6)
    monkeypatch.setattr(report_sample, "MAX_CODE_VALUES", 600)
    monkeypatch.setattr(report_sample, "MIN_OBSERVATIONS", 10)
    assert len(sample_data(pca, squares).x) == 200, "600 values of three codes"
    with pytest.raises(InputError, match="trained on shape"):
        sample_data(pca, np.zeros((5, 2)))


def test_codes_are_ordered_by_their_effect_and_named_by_their_factor():
    rng = np.random.default_rng(0)
    c = rng.uniform(-1, 1, size=(400, 2))
    x = torch.as_tensor(c * [0.1, 3.0])
    data = Table(x, torch.as_tensor(c), [Factor("small"), Factor("large")])
    method = PCA(latent_dim=2).fit(data)
    packed = describe_data(method, sample_data(method, data))
    facts = packed["facts"]
    assert [packed["factors"][facts[j]["factor"]]["name"] for j in range(2)] == ["large", "small"]
    assert facts[0]["score"] > 0.7 and packed["scored"] == [0, 1]
    assert np.argmax(packed["information"][0]) == 1 and np.argmax(packed["importance"][1]) == 0
    for fact in facts:
        assert fact["low"] < fact["lower"] < fact["upper"] < fact["high"]
        assert sum(fact["counts"]) == 400 and fact["counts"][0] == fact["counts"][-1] == 0, "the margin has no data"


def test_dead_codes_come_last():
    x = np.random.default_rng(0).uniform(size=(200, 1, 1, 3)) * [1.0, 0.5, 1e-4]
    method = PCA(latent_dim=3).fit(x)
    method.components_ = method.components_.flip(0)  # the strongest is the last
    packed = describe_data(method, sample_data(method, x))
    assert packed["order"] == [2, 1, 0] and packed["scored"] == []
    assert [fact["is_dead"] for fact in packed["facts"]] == [True, False, False]
    constant = describe_data(method, sample_data(method, np.repeat(x[:1], 200, 0)))
    assert all(fact["is_dead"] for fact in constant["facts"])
    assert all(fact["low"] < fact["high"] for fact in constant["facts"])


def test_a_method_without_a_decoder_orders_codes_by_information(squares):
    method = HessianICA(latent_dim=2).fit(squares)
    packed = describe_data(method, sample_data(method, squares))
    best = [fact["score"] for fact in packed["facts"]]
    assert packed["order"] == np.argsort([-score for score in best], kind="stable").tolist()


def test_thumbnails_are_in_order_and_shrink_with_their_number():
    x = np.zeros((40, 3, 20, 10))
    x[7, 0] = 1.0
    packed = pack_thumbnails(x)
    assert (packed["width"], packed["height"], packed["perSheet"]) == (10, 20, 40)
    sheet = np.asarray(Image.open(io.BytesIO(base64.b64decode(packed["sheets"][0].split(",")[1]))))
    assert sheet[20 * (7 // packed["columns"]) + 5, 10 * (7 % packed["columns"]) + 5].tolist() == [255, 0, 0]
    assert sheet.reshape(-1, 3)[:, 0].sum() == 255 * 200
    many = pack_thumbnails(np.random.default_rng(0).integers(255, size=(2500, 64, 64)).astype(np.uint8))
    assert len(many["sheets"]) == 3 and many["width"] == 56
    assert many["sheets"][0].startswith("data:image/jpeg"), "noise does not compress without loss"


def test_tables_keep_names_values_and_units():
    x = np.random.default_rng(0).normal(size=(50, 2)) * [1, 100]
    method = LinearICA(latent_dim=2).fit(x)
    packed = describe_data(method, sample_data(method, as_data(x, np.arange(50) % 2)))
    assert packed["kind"] == "table" and packed["columns"] == ["column 1", "column 2"]
    np.testing.assert_allclose(packed["deviations"], x.std(0), rtol=1e-4)
    assert floats(packed["values"]).reshape(-1, 2)[:, 1].std() > 50


# The page -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hostile_page(tmp_path_factory):
    """Table whose title, columns, factors, classes and folder have markup in their names."""
    rng = np.random.default_rng(0)
    x = pd.DataFrame(rng.uniform(size=(400, 3)), columns=[f"{HOSTILE}{i}" for i in range(3)])
    y = pd.DataFrame({HOSTILE: rng.choice([f"{HOSTILE}a", f"{HOSTILE}b"], 400)})
    data = as_data(x, y)
    method = LinearICA(latent_dim=2).fit(data)
    path = tmp_path_factory.mktemp("hostile") / "page.html"
    return explore(method, data, path, title=HOSTILE, model_path=HOSTILE)


@pytest.fixture(scope="module")
def page(squares, tmp_path_factory):
    method = PCA(latent_dim=3).fit(squares)
    return method, explore(method, squares, tmp_path_factory.mktemp("explorer") / "page.html")


def test_names_with_markup_cannot_become_markup(hostile_page):
    text = hostile_page.read_text()
    assert text.count("<script") == 2 and text.count("</script>") == 2
    assert "<img" not in text
    assert "&lt;/script&gt;&lt;script&gt;alert(1)" in text, "the title, as text"


def test_the_policy_admits_one_script_and_one_style_by_their_hashes(page):
    text = page[1].read_text()
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)[1]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    for tag in ("script", "style"):
        content = re.search(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)[1]
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert not re.findall(r'(?:src|href)="(?!data:)', text)
    assert "http" not in re.sub(r"http-equiv|data:image[^\"]*", "", text)
    assert len(text) < 200_000, "300 observations of 16 x 16 pixels and three codes"


def test_paths_and_empty_data_are_refused(squares, pca, tmp_path):
    with pytest.raises(InputError, match=r"'runs/a' is no method: load a run with unweave\.load"):
        explore("runs/a", squares, tmp_path / "page.html")
    with pytest.raises(InputError, match="is no method"):
        explore(pca, squares, tmp_path / "page.html", compare="runs/a")
    with pytest.raises(InputError, match="the data have no rows"):
        explore(pca, np.zeros((0, 1, 16, 16)), tmp_path / "page.html")


def test_a_page_is_not_written_over_a_folder(squares, pca, tmp_path):
    with pytest.raises(InputError, match="is a folder"):
        explore(pca, squares, tmp_path)


@pytest.mark.parametrize("name", sorted({*SCRIPTS, *report_page.SCRIPTS}))
def test_scripts_are_strict_and_do_not_write_html(name):
    text = (Path(report_page.__file__).parent / name).read_text()
    assert '"use strict";' in text
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text)


needs_node = pytest.mark.skipif(not shutil.which("node"), reason="node is not installed")
needs_chromium = pytest.mark.skipif(not CHROMIUM, reason="Chromium is not installed")


@needs_node
def test_the_state_survives_the_address():
    source = Path(explorer_data.__file__).parent / "views" / "state.js"
    code = f"""
    const S = require({json.dumps(str(source))});
    const start = S.initialState([2, 0, 1], 1), limits = {{count: 10, codes: 3, factors: 1}};
    const state = {{...start, start: 4, edits: {{1: -0.25}}, second: 7, swapped: [2], x: 0, y: 1, color: -1, code: 1}};
    const bad = S.fromHash("#i=99&e=7:1,0:x,1:2&s=-4&t=1&m=5,a,3&c=1e0", start, limits);
    console.log(JSON.stringify({{
      same: S.fromHash(S.toHash(state), start, limits), state, bad, start,
      z: Array.from(S.editedCodes(state, (row) => [row, row, row])),
      empty: S.emptyRegions([0, 0, 3, 0]), values: S.traversal({{lower: -1, upper: 1}}, 3),
      python: S.toPython([0.5], {{path: 'a"b', hasDecoder: true, shape: [1, 2]}}),
    }}));"""
    done = subprocess.run(["node", "-e", code], capture_output=True, text=True, check=True)
    out = json.loads(done.stdout)
    assert out["same"] == out["state"]
    assert out["bad"] == out["start"] | {"edits": {"1": 2}}, "numbers out of range are left out"
    assert out["z"] == [4, -0.25, 7] and out["empty"] == [[0, 2], [3, 4]] and out["values"] == [-1, 0, 1]
    assert 'unweave.load("a\\"b")' in out["python"]
    compile(out["python"], "snippet", "exec")


@needs_chromium
def test_hostile_names_are_shown_as_text(hostile_page, tmp_path):
    with Browser(hostile_page, tmp_path) as browser:
        assert browser.evaluate("document.querySelector('h1').textContent") == HOSTILE
        assert browser.evaluate("document.querySelector('.column').textContent") == f"{HOSTILE}0"
        assert browser.evaluate("document.querySelectorAll('img').length") == 0
        assert HOSTILE in browser.evaluate("document.querySelector('.about').textContent")
        marks = "[...document.querySelectorAll('.mark.other')].filter((mark) => !mark.hidden).length"
        assert browser.evaluate(marks) == 0
        browser.press("s")
        browser.wait_for(f"{marks} === 3")  # the second observation, a mark in each column
        assert not browser.problems()


@needs_chromium
def test_input_moves_codes_pictures_map_and_address(page, tmp_path):
    method, path = page
    with Browser(path, tmp_path) as browser:
        before = browser.evaluate("[...unweaveExplorer.z]")
        x, y, width, _ = browser.center(".code input[type=range]")
        browser.click(x + width / 4, y)
        browser.wait_for("location.hash.includes('e=')")
        z = browser.evaluate("[...unweaveExplorer.z]")
        code = browser.evaluate("unweaveExplorer.model.order[0]")
        assert z[code] != before[code] and np.delete(z, code).tolist() == np.delete(before, code).tolist()
        browser.wait_for("document.body.dataset.ready === 'done'")
        pixels = browser.evaluate("[...unweaveExplorer.model.observe(unweaveExplorer.z).values]")
        decoded = method.inverse_transform(np.array([z], np.float32))
        np.testing.assert_allclose(pixels, decoded.ravel(), atol=1 / 255)
        browser.press("s")
        browser.press("t")
        browser.wait_for("unweaveExplorer.state.swapped.length === 1")
        second = browser.evaluate("[...unweaveExplorer.model.codesOf(unweaveExplorer.state.second)]")
        assert browser.evaluate("[...unweaveExplorer.z]")[code] == second[code]
        x, y, *_ = browser.center(".matrix td")
        browser.move(x, y)
        browser.wait_for("document.querySelector('.code.lit') !== null")
        x, y, width, height = browser.center(".overlay")
        place = "[unweaveExplorer.map.positions[10], unweaveExplorer.map.positions[11]]"
        left, top = browser.evaluate(place)
        browser.click(x - width / 2 + left, y - height / 2 + top)
        browser.wait_for("document.querySelector('.tip').hidden === false")
        assert browser.evaluate("unweaveExplorer.state.start") > 0, "a click on the map starts there"
        assert browser.evaluate("unweaveExplorer.state.swapped") == []
        browser.wait_for("location.hash.startsWith(`#i=${unweaveExplorer.state.start}&`)")
        assert not browser.problems()


@needs_chromium
def test_nuisances_are_exchanged_at_once(squares, tmp_path):
    """Swap and contrast: one button takes all nuisance codes of the second observation, and no class code."""
    labels = pd.DataFrame({"side": np.arange(300) % 2, "light": np.arange(300) // 2 % 3})
    x = squares.render(squares.all_points(1_000)).numpy()
    method = SwapContrast(predictive_dim=2, nuisance_dim=2, label="side", steps=2, batch_size=16).fit(x, labels)
    with Browser(explore(method, x, tmp_path / "page.html"), tmp_path / "profile") as browser:
        browser.press("s")
        browser.wait_for("unweaveExplorer.state.second >= 0")
        names = browser.evaluate("[...document.querySelectorAll('#swap-tools button')].map((b) => b.textContent)")
        assert names[-2:] == ["Take class codes", "Take nuisance codes"]
        browser.evaluate("unweaveExplorer.setCode(3, 9)")  # an edit that the exchange replaces
        x, y, *_ = browser.center("#swap-tools button:last-child")
        browser.click(x, y)
        browser.wait_for("unweaveExplorer.state.swapped.length === 2")
        z, own, second = browser.evaluate(
            "[unweaveExplorer.z, unweaveExplorer.model.codesOf(unweaveExplorer.state.start),"
            " unweaveExplorer.model.codesOf(unweaveExplorer.state.second)].map((values) => [...values])"
        )
        assert z == own[:2] + second[2:]
        assert not browser.problems()


LIVE_PAGES = sorted((Path(__file__).parents[2] / "docs" / "_static" / "explorers").glob("*.html"))


@needs_chromium
@pytest.mark.skipif(not LIVE_PAGES, reason="the source distribution has no live pages")
def test_the_live_pages_of_the_site_work(tmp_path):
    with Browser(LIVE_PAGES[0], tmp_path) as browser:
        for path in LIVE_PAGES:
            browser.open(path)
            x, y, width, _ = browser.center(".code input[type=range]")
            browser.click(x - width / 4, y)
            browser.wait_for("location.hash.includes('e=')")
            browser.wait_for("document.body.dataset.ready === 'done' && !unweaveExplorer.isDirty")
            assert not browser.problems(), path.name
