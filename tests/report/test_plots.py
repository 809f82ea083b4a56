"""Plots of the report: the numbers that Python packs, and what the page does with them in a browser."""

import base64
import json
import re

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import unweave
from tests.report.browser import CHROMIUM, Browser
from unweave import Factor, Run, execute, sweep, write_report
from unweave.datasets import GaussianMixture, SquaresXY
from unweave.experiments.grouping import group_settings
from unweave.experiments.run import find_runs, read_run
from unweave.methods import PCA, BetaVAE, HessianICA
from unweave.report.plots.codes import describe_axis, describe_factor
from unweave.report.plots.overview import describe_effect, describe_scores, number_runs
from unweave.report.plots.packing import MAX_PIXEL_ERROR, pack_column, reduce_colors, round_numbers
from unweave.report.plots.single_run import describe_figures, describe_linear

DATA = SquaresXY(points=300, size=16, side=6)
METRICS = ["mcc", "local-isometry"]
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>"
needs_chromium = pytest.mark.skipif(not CHROMIUM, reason="Chromium is not installed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return runs of two methods, one of them with three strengths and two seeds."""
    place = tmp_path_factory.mktemp("runs")
    runs = sweep(DATA, BetaVAE(latent_dim=2, steps=3), beta=[1, 4, 16], seed=range(2))
    execute([*runs, Run(DATA, HessianICA())], place, metrics=METRICS)
    return place


@pytest.fixture(scope="module")
def page(folder, tmp_path_factory):
    return write_report([folder], tmp_path_factory.mktemp("page") / "report.html")


def unpack(column):
    """Return the values of a packed column."""
    steps = np.frombuffer(base64.b64decode(column["data"]), "<u2")
    return column["low"] + (column["high"] - column["low"]) * steps / 65535


# Numbers --------------------------------------------------------------------------------------------------------------


def test_packed_columns_keep_their_values():
    values = np.random.default_rng(0).normal(size=500) * 1e3
    np.testing.assert_allclose(unpack(pack_column(values)), values, atol=np.ptp(values) / 65535)
    assert unpack(pack_column(np.full(4, 2.5))).tolist() == [2.5] * 4
    assert round_numbers([1 / 3, np.nan, np.inf, 1234567.0]) == [0.33333, None, None, 1234600.0]


def test_colors_are_reduced_where_nobody_sees_it():
    rng = np.random.default_rng(0)
    gray = Image.fromarray(np.repeat(rng.integers(0, 256, (8, 8, 1), np.uint8), 3, 2))
    few = Image.fromarray(rng.integers(0, 2, (32, 32, 3), np.uint8) * 200)
    noise = Image.fromarray(rng.integers(0, 256, (64, 64, 3), np.uint8))
    assert [reduce_colors(image).mode for image in (gray, few, noise)] == ["L", "P", "RGB"]
    error = np.abs(np.asarray(reduce_colors(few).convert("RGB")).astype(int) - np.asarray(few)).max()
    assert error <= MAX_PIXEL_ERROR


def test_scores_are_those_of_the_runs(folder):
    runs = [read_run(path) for path in find_runs([folder])]
    settings = group_settings(runs)
    numbered = number_runs(settings)
    (panel,) = describe_scores(settings, ["mcc"])["panels"]
    for setting, row in zip(settings, panel["rows"], strict=True):
        values = [numbered[i].run.scores["mcc"] for i in row["runs"]]
        assert values == [run.scores["mcc"] for run in setting.runs] and row["name"] == setting.label
        if len(values) > 1:
            np.testing.assert_allclose(row["quartiles"], np.quantile(values, [0.25, 0.5, 0.75]), rtol=1e-4)
    (plot,) = describe_effect(numbered, ["mcc"], "beta")
    assert plot["log"] and plot["ticks"] == [1, 4, 16]
    (line,) = plot["panels"][0]["series"]
    at_four = [run.scores["mcc"] for run in runs if run.recipe["method"].get("beta") == 4]
    assert line["mean"][1] == pytest.approx(np.mean(at_four), rel=1e-4) and line["max"][1] == pytest.approx(
        max(at_four), rel=1e-4
    )


def test_the_observations_of_a_run_are_packed_once(folder):
    run = next(run for run in map(read_run, find_runs([folder])) if run.recipe["method"]["name"] == "hessian-ica")
    plots = [plot for plot in describe_figures(run) if plot["kind"] == "scatter"]
    codes, isometry = plots
    for j, column in enumerate(codes["source"]["codes"]):
        np.testing.assert_allclose(unpack(column), run.codes[:, j], atol=np.ptp(run.codes[:, j]) / 65535 + 1e-9)
    assert [factor["name"] for factor in codes["source"]["factors"]] == ["x", "y"]
    assert [panel["color"] for panel in codes["panels"]] == [0, 1], "one panel for each factor"
    assert isometry["panels"][0]["title"] == f"local isometry {run.scores['local-isometry']:.3f}"


def test_classes_and_angles_have_names_and_ticks():
    from unweave.report.figures.scales import FactorScale

    kind = describe_factor(FactorScale(Factor("kind", 2, "nominal", values=("$a", "b")), np.array([0.0, 1, 1])))
    assert kind["names"] == ["$a", "b"] and len(set(kind["colors"])) == 2 and unpack(kind).tolist() == [0, 1, 1]
    turn = describe_factor(FactorScale(Factor("turn", kind="circular", period=360), np.array([0.0, 90, 350])))
    assert [text for _, text in turn["ticks"]] == ["0", "180", "360"]
    ends = [[int(turn["stops"][i][k : k + 2], 16) for k in (1, 3, 5)] for i in (0, -1)]
    np.testing.assert_allclose(*ends, atol=4, err_msg="0 and 360 degrees have the same color")
    code = describe_axis(np.array([0.0, 3.0]), 1, 2 * np.pi)
    assert code["name"] == "code 2 (angle)" and [text for _, text in code["ticks"]] == ["0", "π", "2π"]


def test_variance_and_loadings_of_a_linear_method():
    rng = np.random.default_rng(0)
    x = pd.DataFrame(rng.normal(size=(200, 3)) @ rng.normal(size=(3, 6)), columns=list("abcdef"))
    plots = describe_linear(PCA(latent_dim="auto").fit(x))
    scree, choice, loadings = plots
    assert scree["panels"][0]["marked"] == choice["panels"][0]["mark"] == 3
    assert sum(scree["panels"][0]["values"]) == pytest.approx(1, abs=1e-3)
    assert {*loadings["panels"][0]["rows"]} == set("abcdef")
    assert describe_linear(HessianICA(latent_dim=2).fit(x)) == []


def test_the_page_of_a_study_of_forty_runs_is_small(tmp_path):
    """Images of 64 x 64 pixels, two methods, ten codes."""
    data = SquaresXY(points=300, size=64, side=16)
    runs = [Run(data, BetaVAE(latent_dim=10, steps=2, batch_size=8)), *sweep(data, PCA(latent_dim=10), seed=range(39))]
    execute(runs, tmp_path / "runs", metrics=["mcc"])
    page = write_report([tmp_path / "runs"], tmp_path / "report.html", explorers=False)
    assert page.read_text().count('class="pick"') == 40
    assert page.stat().st_size < 2_000_000


# In a browser ---------------------------------------------------------------------------------------------------------


def place_of(browser, selector, index=0):
    """Scroll to the element with an index among those that match; return its center."""
    code = f"document.querySelectorAll({json.dumps(selector)})[{index}]"
    browser.evaluate(f"{code}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
    x, y, width, height = browser.evaluate(
        f"(({{x, y, width, height}}) => [x, y, width, height])({code}.getBoundingClientRect())"
    )
    return x + width / 2, y + height / 2


@needs_chromium
def test_a_dot_shows_its_run_and_selects_it(page, tmp_path):
    with Browser(page, tmp_path) as browser:
        browser.evaluate("document.querySelector('.filter input').scrollIntoView()")
        run = browser.evaluate("Number(document.querySelector('circle.run').dataset.run)")
        facts = browser.evaluate(f"JSON.parse(document.getElementById('report-data').textContent).groups.g1[{run}]")
        browser.move(*place_of(browser, "circle.run"))
        browser.wait_for("!document.querySelector('.tip').hidden")
        text = browser.evaluate("document.querySelector('.tip').innerText")
        assert facts["label"] in text and f"seed {facts['seed']}" in text
        assert float(re.search(r"mcc ([\d.]+)", text)[1]) == pytest.approx(facts["scores"]["mcc"], rel=1e-3)
        browser.click(*place_of(browser, "circle.run"))
        browser.wait_for("document.querySelector('aside.card') !== null")
        assert facts["key"] in browser.evaluate("document.querySelector('tr.selected').textContent")
        assert facts["folder"] in browser.evaluate("document.querySelector('aside.card').textContent")
        marked = browser.evaluate("document.querySelectorAll('circle.selected').length")
        assert marked > 1, "the same run in every panel"
        browser.call("Input.dispatchKeyEvent", type="keyDown", key="Escape")
        browser.wait_for("document.querySelector('aside.card') === null")
        assert not browser.problems()


@needs_chromium
def test_a_run_that_a_filter_hides_can_be_selected(page, tmp_path):
    with Browser(page, tmp_path) as browser:
        run = browser.evaluate("Number(document.querySelector('circle.run').dataset.run)")
        label = browser.evaluate(f"document.querySelectorAll('table.runs tbody tr')[{run}].cells[0].textContent")
        other = {"beta-vae": "hessian-ica", "hessian-ica": "beta-vae"}[label.strip()]
        browser.evaluate(f"document.querySelector('.filter input').value = 'METHOD={other.upper()}'")
        browser.evaluate("document.querySelector('.filter input').dispatchEvent(new Event('input'))")
        count = "document.querySelector('.count').textContent"
        assert browser.evaluate(count) != "7 of 7 runs" and not browser.evaluate(count).startswith("0 of")
        browser.click(*place_of(browser, "circle.run"))
        browser.wait_for("document.querySelector('tr.selected') !== null")
        assert browser.evaluate(count) == "7 of 7 runs", "the filter is removed"


@needs_chromium
def test_colors_are_those_of_the_legend_and_long_labels_differ(page, tmp_path):
    series = [
        {"name": name, "x": [1, 2], "mean": [0, 1], "min": [0, 1], "max": [0, 1], "runs": [], "at": []} for name in "ab"
    ]
    panels = [{"score": "mcc", "series": series}, {"score": "mig", "series": series[1:]}]
    plot = {"parameter": "beta", "log": False, "ticks": [1, 2], "panels": panels}
    names = [f"beta-vae (beta=1, latent_dim={d}, lr=0.{'0' * d}1)" for d in (2, 3)]
    spread = {"panels": [{"score": "mcc", "rows": [{"name": n, "runs": [], "quartiles": None} for n in names]}]}
    with Browser(page, tmp_path) as browser:
        code = f"UnweaveCharts.drawEffect({json.dumps(plot)}, {{runs: []}})"
        assert browser.evaluate(f"{code}[1].querySelector('polyline').getAttribute('class')") == "line series-1"
        assert browser.evaluate(f"{code}.at(-1).textContent") == "ab"
        code = f"[...UnweaveCharts.drawSpread({json.dumps(spread)}, {{runs: []}})[0].querySelectorAll('text.label')]"
        labels = browser.evaluate(f"{code}.map((label) => label.firstChild.textContent)")
        assert labels == ["beta=1, latent_dim=2, lr=0.001", "beta=1, latent_dim=3, lr=0.0001"]
        assert browser.evaluate(f"{code}.map((label) => label.querySelector('title').textContent)") == names


@needs_chromium
@pytest.mark.parametrize("width", [380, 1300])
def test_long_names_do_not_widen_the_page(tmp_path, width):
    rng = np.random.default_rng(0)
    columns = [f"{'a-very-long-name' * 4}{i}" for i in range(5)]
    pd.DataFrame(rng.normal(size=(100, 5)), columns=columns).to_csv(tmp_path / "own.csv", index=False)
    own = unweave.data.own_data.OwnData(path=tmp_path / "own.csv")
    execute([Run(own, PCA(latent_dim=2))], tmp_path / "runs", metrics=["local-isometry"])
    path = write_report([tmp_path / "runs"], tmp_path / "page.html")
    with Browser(path, tmp_path / "profile") as browser:
        browser.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
        browser.wait_for(f"document.documentElement.clientWidth <= {width}")
        assert browser.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0


@needs_chromium
def test_plots_are_reached_by_keyboard(page, tmp_path):
    with Browser(page, tmp_path) as browser:
        browser.evaluate("document.querySelector('.panels svg[tabindex]').focus()")
        for key in ("ArrowRight", "ArrowRight", "Enter"):
            browser.call("Input.dispatchKeyEvent", type="keyDown", key=key)
        browser.wait_for("document.querySelector('aside.card') !== null")
        assert browser.evaluate("document.querySelectorAll('tr.selected').length") == 1
        assert not browser.problems()


@needs_chromium
def test_the_explorer_of_a_run_opens_in_the_page(page, tmp_path):
    inside = "document.querySelector('iframe').contentWindow.document"
    with Browser(page, tmp_path) as browser:
        browser.click(*place_of(browser, "button.explore"))
        browser.wait_for(f"document.querySelector('iframe') && {inside}.body?.dataset.ready === 'done'")
        assert browser.evaluate(f"{inside}.querySelectorAll('.code input[type=range]').length") == 2
        before = browser.evaluate(f"{inside}.querySelector('.code input[type=range]').value")
        place_of(browser, "iframe")
        left, top, width = browser.evaluate(
            "(() => { const frame = document.querySelector('iframe').getBoundingClientRect();"
            f"const box = {inside}.querySelector('.code input[type=range]').getBoundingClientRect();"
            "return [frame.x + box.x, frame.y + box.y + box.height / 2, box.width]; })()"
        )
        browser.click(left + width * 0.2, top)
        browser.wait_for(f"{inside}.querySelector('.code input[type=range]').value !== '{before}'")
        browser.wait_for(f"{inside}.body.dataset.ready === 'done'")
        assert not browser.problems()
        browser.click(*place_of(browser, "button.explore"))
        browser.wait_for("document.querySelector('iframe').hidden")


@needs_chromium
def test_factors_color_the_codes_and_hostile_names_are_text(tmp_path):
    rng = np.random.default_rng(0)
    factors = pd.DataFrame({HOSTILE: rng.choice([f"{HOSTILE}a", "b"], 200), "size": rng.uniform(size=200)})
    table = pd.concat(
        [pd.DataFrame(rng.uniform(size=(200, 4)), columns=[f"{HOSTILE}{i}" for i in range(4)]), factors], axis=1
    )
    table.to_csv(tmp_path / "own.csv", index=False)
    own = unweave.data.own_data.OwnData(path=tmp_path / "own.csv", factors=(HOSTILE, "size"))
    execute([Run(own, PCA(latent_dim=3))], tmp_path / "runs", metrics=[])
    path = write_report([tmp_path / "runs"], tmp_path / "page.html")
    with Browser(path, tmp_path / "profile") as browser:
        assert browser.evaluate("document.querySelectorAll('img[src=x]').length") == 0
        options = browser.evaluate("[...document.querySelectorAll('.tools select option')].map((o) => o.textContent)")
        assert options == [HOSTILE, "size"]
        shown = "document.querySelector('canvas.points').toDataURL()"
        before = browser.evaluate(shown)
        browser.evaluate("document.querySelector('.tools select').focus()")
        browser.press("s")  # selects "size"
        browser.wait_for("document.querySelector('.tools select').value === '1'")
        browser.wait_for(f"{shown} !== {json.dumps(before)}")
        assert not browser.problems()


def test_a_mixture_with_classes_has_a_page(tmp_path):
    execute([Run(GaussianMixture(points=200), PCA(latent_dim=10))], tmp_path / "runs", metrics=["mcc"])
    text = write_report([tmp_path / "runs"], tmp_path / "page.html").read_text()
    plots = json.loads(re.search(r'id="report-data">(.*?)</script>', text, re.DOTALL)[1])["plots"]
    kinds = [plot["kind"] for plot in plots.values()]
    assert kinds.count("scatter") == 3, "codes by factors, codes over factors, distances"
    assert kinds.count("matrix") == 3, "columns along codes, correlations, loadings"
