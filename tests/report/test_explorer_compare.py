"""The explorer beyond one method: two methods side by side, decoded points for unknown layers, animated GIFs."""

import io
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from torch import Tensor, nn

from tests.report.browser import CHROMIUM, Browser
from tests.report.test_explorer import floats
from unweave import InputError, explore
from unweave.datasets import SquaresXY
from unweave.methods import PCA, Autoencoder, HessianICA, LinearICA
from unweave.report.explorer import page as explorer_page
from unweave.report.explorer.data import describe_method
from unweave.report.explorer.grid import STARTS, STEPS, describe_grid, grid_points
from unweave.report.explorer.matching import match_codes
from unweave.report.explorer.page import describe_explorer, distinct_names
from unweave.report.sample import sample_data

VIEWS = Path(explorer_page.__file__).parent / "views"
needs_node = pytest.mark.skipif(not shutil.which("node"), reason="node is not installed")
needs_chromium = pytest.mark.skipif(not CHROMIUM, reason="Chromium is not installed")


@pytest.fixture(scope="module")
def squares():
    return SquaresXY(points=300, size=16, side=6).load()


class Doubling(nn.Module):
    """A layer that the page does not know."""

    def forward(self, x: Tensor) -> Tensor:
        """Return 2 x."""
        return 2 * x


@pytest.fixture(scope="module")
def unknown_layers(squares):
    decoder = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 256), Doubling(), nn.Sigmoid())
    return Autoencoder(latent_dim=2, steps=60, decoder=decoder, layers=(16,)).fit(squares)


def run_node(code: str, name: str) -> Any:
    text = f"const L = require({json.dumps(str(VIEWS / name))});\n{code}"
    return json.loads(subprocess.run(["node", "-e", text], capture_output=True, text=True, check=True).stdout)


# Matching -------------------------------------------------------------------------------------------------------------


def test_codes_are_matched_one_to_one_with_their_direction():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(500, 4))
    others = np.column_stack([3 * z[:, 2], -z[:, 0] + 0.1 * rng.normal(size=500), rng.normal(size=500)])
    matches = match_codes(z, others, [None] * 4, [None] * 3, np.array([False, False, False, True]))
    assert [match.code for match in matches] == [1, -1, 0, -1], "codes 2 and 4 have no counterpart"
    assert [match.sign for match in matches] == [-1, 1, 1, 1]
    assert matches[0].correlation < -0.98 and matches[2].correlation == pytest.approx(1)
    dead = match_codes(z, others, [None] * 4, [None] * 3, np.array([True, False, False, False]))
    assert dead[0].code == -1


def test_angles_are_matched_as_angles():
    angle = np.random.default_rng(0).uniform(0, 360, 400)
    mirrored = ((-angle + 90) % 360) / 360
    (match,) = match_codes(angle[:, None], mirrored[:, None], [360.0], [1.0], np.array([False]))
    assert match.code == 0 and match.correlation == pytest.approx(1) and match.sign == -1
    (match,) = match_codes(angle[:, None], (angle[:, None] + 200) % 360, [360.0], [360.0], np.array([False]))
    assert match.sign == 1


def test_methods_of_other_data_are_not_compared(squares):
    other = PCA(latent_dim=2).fit(np.random.default_rng(0).random((50, 8, 8)))
    with pytest.raises(InputError, match="compare methods of the same data"):
        describe_explorer(PCA(latent_dim=2).fit(squares), squares, compare=other)


def test_names_of_two_methods_are_distinct():
    assert distinct_names(PCA(), LinearICA()) == ("pca", "linear-ica")
    assert distinct_names(PCA(seed=1), PCA(seed=2)) == ("pca, seed 1", "pca, seed 2")
    assert distinct_names(PCA(), PCA()) == ("pca, first", "pca, second")


@needs_node
def test_codes_of_the_second_method_move_with_those_of_the_first():
    code = """
    const model = {codesOf: (row) => [[0, 1], [5, 5]][row], statistics: [{deviation: 2}, {deviation: 1}]};
    const statistics = [1, 3, 0.5].map((deviation) => ({deviation}));
    const other = {codesOf: (row) => [[10, 20, 30], [11, 21, 31]][row], statistics};
    const matches = [{code: 1, sign: -1}, {code: 2, sign: 1}], none = [{code: -1}, {code: -1}];
    const start = {start: 0, second: -1, swapped: [], edits: {}};
    const at = (state, pairs = matches) => Array.from(L.matchedCodes({...start, ...state}, model, other, pairs));
    console.log(JSON.stringify({still: at({}), edited: at({edits: {0: 4}}), swapped: at({second: 1, swapped: [1]}),
      none: at({edits: {0: 9}}, none)}));
    """
    out = run_node(code, "state.js")
    assert out["still"] == out["none"] == [10, 20, 30]
    assert out["edited"] == [10, 14, 30], "two deviations up are two deviations down"
    assert out["swapped"] == [10, 20, 31]


# Decoded points -------------------------------------------------------------------------------------------------------


def test_a_decoder_with_unknown_layers_is_evaluated_beforehand(squares, unknown_layers):
    sample = sample_data(unknown_layers, squares)
    values, codes, facts = describe_method(unknown_layers, sample)
    z = grid_points(codes, facts, values["order"])
    assert np.array_equal(z[:300], codes), "reconstructions of the sample"
    line = z[300 : 300 + STARTS * STEPS].reshape(STARTS, STEPS, 2)
    strongest = values["order"][0]
    assert line[3, 0, strongest] == pytest.approx(facts[strongest].lower)
    assert line[3, -1, strongest] == pytest.approx(facts[strongest].upper)
    assert np.array_equal(line[:, :, 1 - strongest], np.repeat(codes[:STARTS, None, 1 - strongest], STEPS, 1))
    grid = describe_grid(unknown_layers, codes, facts, values["order"])
    np.testing.assert_array_equal(floats(grid["codes"]).reshape(-1, 2), z)
    payload = describe_explorer(unknown_layers, squares)
    assert payload["decoderData"] is None and payload["grid"]["count"] == len(z)
    assert "decoded beforehand" in payload["about"]


def test_no_points_are_decoded_without_need(squares):
    assert describe_explorer(PCA(latent_dim=2).fit(squares), squares)["grid"] is None
    assert describe_explorer(HessianICA(latent_dim=2).fit(squares), squares)["grid"] is None


# GIF ------------------------------------------------------------------------------------------------------------------


def make_frames(colors: int) -> np.ndarray:
    """Return three frames of 40 x 60 pixels with random colors, (3, 40, 60, 3)."""
    rng = np.random.default_rng(0)
    return rng.integers(0, 256, (colors, 3))[rng.integers(0, colors, (3, 40, 60))].astype(np.uint8)


@needs_node
@pytest.mark.parametrize(("colors", "tolerance"), [(1, 0), (2, 0), (200, 0), (5000, 32)])
def test_a_gif_has_the_pixels_of_its_frames(colors, tolerance, tmp_path):
    frames = make_frames(colors)
    rgba = [np.dstack([frame, np.full(frame.shape[:2], 255)]).ravel().tolist() for frame in frames]
    (tmp_path / "frames.json").write_text(json.dumps(rgba))
    code = f"""
    const frames = JSON.parse(require("node:fs").readFileSync({json.dumps(str(tmp_path / "frames.json"))}));
    console.log(JSON.stringify(Array.from(L.encode(frames.map((data) => ({{width: 60, height: 40, data}})), 7))));"""
    picture: Any = Image.open(io.BytesIO(bytes(run_node(code, "gif.js"))))
    assert (picture.n_frames, picture.info["duration"], picture.info["loop"]) == (3, 70, 0)
    for i, frame in enumerate(frames):
        picture.seek(i)
        error = np.abs(np.asarray(picture.convert("RGB")).astype(int) - frame)
        assert error.mean() <= tolerance / 2 and np.quantile(error, 0.99) <= 2 * tolerance


# In a browser ---------------------------------------------------------------------------------------------------------


@needs_chromium
def test_two_methods_move_together(squares, tmp_path):
    first = PCA(latent_dim=2).fit(squares)
    second = PCA(latent_dim=3).fit(squares)
    second.components_ = -second.components_  # the same codes in the other direction
    path = explore(first, squares, tmp_path / "page.html", compare=second)
    with Browser(path, tmp_path / "profile") as browser:
        assert browser.evaluate("unweaveExplorer.comparison.matches.map(({code, sign}) => [code, sign])") == [
            [0, -1],
            [1, -1],
        ]
        x, y, width, _ = browser.center(".code input[type=range]")
        browser.click(x + width / 4, y)
        browser.wait_for("location.hash.includes('e=') && document.body.dataset.ready === 'done'")
        z = np.array([browser.evaluate("[...unweaveExplorer.z]")], np.float32)
        other = np.array([browser.evaluate("[...unweaveExplorer.comparison.z]")], np.float32)
        np.testing.assert_allclose(other[:, :2], -z, atol=1e-3)
        pixels = browser.pixels("[data-part=other] canvas", 16, 16)[..., 0]
        decoded = second.inverse_transform(other)[0].reshape(16, 16)
        np.testing.assert_allclose(pixels, np.clip(np.round(255 * decoded), 0, 255), atol=1)
        x, y, width, _ = browser.center("#film-other .film-row canvas")
        browser.click(x + 0.45 * width, y)
        browser.wait_for("document.body.dataset.ready === 'done'")
        code = "unweaveExplorer.comparison.filmstrip.rows[0]"
        expected = browser.evaluate(f"{code}.values.at(-1)")
        assert browser.evaluate(f"unweaveExplorer.comparison.z[{code}.code]") == pytest.approx(expected, abs=1e-4)
        assert not browser.problems()


@needs_chromium
def test_decoded_points_are_shown_where_the_page_cannot_decode(squares, unknown_layers, tmp_path):
    path = explore(unknown_layers, squares, tmp_path / "page.html")
    with Browser(path, tmp_path / "profile") as browser:
        assert "nearest of the points decoded beforehand" in browser.evaluate("document.body.textContent")
        browser.evaluate("unweaveExplorer.setStart(5)")
        browser.wait_for("location.hash.startsWith('#i=5&')")
        z = np.array([browser.evaluate("[...unweaveExplorer.z]")], np.float32)
        decoded = np.round(255 * unknown_layers.inverse_transform(z)[0].reshape(16, 16))
        pixels = browser.pixels("[data-part=edited] canvas", 16, 16)[..., 0]
        np.testing.assert_allclose(pixels, decoded, atol=1)
        before = browser.evaluate("unweaveExplorer.model.observe(unweaveExplorer.z).point")
        x, y, width, _ = browser.center(".code input[type=range]")
        browser.click(x + width / 4, y)
        browser.wait_for(f"unweaveExplorer.model.observe(unweaveExplorer.z).point !== {before}")
        assert not browser.problems()


@needs_chromium
def test_a_traversal_is_saved_as_gif(squares, tmp_path):
    method = PCA(latent_dim=2).fit(squares)
    path = explore(method, squares, tmp_path / "page.html")
    with Browser(path, tmp_path / "profile") as browser:
        browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
        x, y, *_ = browser.center("#do-gif")
        browser.click(x, y)
        name = f"code-{browser.evaluate('unweaveExplorer.state.code') + 1}.gif"
        for _ in range(100):
            if (tmp_path / name).exists():
                break
            browser.wait_for("new Promise((resolve) => setTimeout(() => resolve(true), 100))")
        picture: Any = Image.open(tmp_path / name)
        assert picture.n_frames == 38 and picture.size[0] >= 150
        assert not browser.problems()
