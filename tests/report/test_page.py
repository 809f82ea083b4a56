"""The HTML page: content, independence of other files, sorting and filtering in a browser."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.helpers import remove_manifest
from unweave import InputError, Run, catalog, write_report
from unweave.cli.study import study
from unweave.data.own_data import OwnData
from unweave.datasets import GaussianMixture, SquaresXY
from unweave.experiments.grouping import best_value, primary_score
from unweave.experiments.run import find_runs, read_run
from unweave.experiments.runner import execute_run
from unweave.methods import PCA, HessianICA, LinearICA
from unweave.metrics import mcc
from unweave.metrics.uncertainty import plus_minus
from unweave.report.explorer.page import content_hash
from unweave.report.summary import summarize

SCORERS = {name: catalog.find(catalog.metrics, name) for name in ("mcc", "local-isometry")}
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DATA = SquaresXY(points=300, size=16, side=6)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    methods = [PCA(), LinearICA(), LinearICA(seed=1), HessianICA()]
    for i, method in enumerate(methods):
        execute_run(Run(DATA, method), folder / str(i), SCORERS)
    return folder


@pytest.fixture(scope="module")
def text(runs, tmp_path_factory):
    return write_report([runs], tmp_path_factory.mktemp("page") / "report.html").read_text()


def test_the_page_loads_no_other_file(text):
    assert not re.findall(r'(?:src|href)="(?!data:|#)', text)
    assert "http" not in re.sub(r"data:image[^\"]*|http-equiv|http://www.w3.org/2000/svg", "", text)
    assert "default-src 'none'" in text, "a browser would refuse to load anything else"


def admitted(policy: str, tag: str) -> list[str]:
    """Return what the policy of a page admits as scripts or styles."""
    return re.findall(rf"{tag}-src ([^;]+)", policy)[0].split()


def test_pages_admit_their_own_scripts_and_styles_by_hashes_and_nothing_else(text):
    published = [path.read_text() for path in sorted((Path(__file__).parents[2] / "docs" / "_static").rglob("*.html"))]
    assert published
    for page in (text, *published):
        policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)[1]
        assert "default-src 'none'" in policy and "base-uri 'none'; form-action 'none'" in policy
        for tag in ("script", "style"):
            assert all(source.startswith("'sha256-") for source in admitted(policy, tag)), policy
            for content in re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL):
                assert f"'{content_hash(content)}'" in admitted(policy, tag)
        assert not re.search(r"<[^>]+\s(style|on\w+)=", page), "a browser would ignore it"


def test_the_page_has_tables_figures_and_provenance(runs, text):
    done = [read_run(runs / str(i)) for i in range(4)]
    for run in done:
        assert f"{run.scores['mcc']:.3f}" in text
        assert run.recipe["key"] in text
        assert run.env["data"]["sha256"][:12] in text
    # Three methods with four figures each, what two of them decode, the scores; four runs are too few for more.
    assert text.count("<figure") == 15
    assert text.count("<figcaption>Real observations along each code") == 3
    assert re.search(r'<h3 id="[^"]+">linear-ica</h3>', text)
    assert "Best run of linear-ica, seed" in text
    pair = [run.scores["mcc"] for run in done[1:3]]
    assert plus_minus(pair).replace("+-", "±") in text, "runs that differ in their seed alone are one setting"
    rows = [text.index(f"<tr><td>{name}</td><td>") for name in ("hessian-ica", "linear-ica", "pca")]
    assert rows == sorted(rows), "the best comes first"


def test_a_run_of_an_earlier_version_has_a_page_without_observations(runs, tmp_path):
    shutil.copytree(runs / "3", tmp_path / "run")
    remove_manifest(tmp_path / "run")
    (tmp_path / "run" / "ordered.npz").unlink()
    env = json.loads((tmp_path / "run" / "env.json").read_text())
    del env["code_periods"]
    (tmp_path / "run" / "env.json").write_text(json.dumps(env))
    page = write_report([tmp_path / "run"], tmp_path / "p.html").read_text()
    assert page.count("<figure") == 3 and "Real observations" not in page


def test_the_chance_level_is_the_score_of_shuffled_codes(runs, text):
    chance = float(re.search(r'class="chance"><td>chance level</td><td></td><td>([0-9.]+)</td>', text)[1])
    best = max((read_run(runs / str(i)) for i in range(4)), key=lambda run: run.scores["mcc"])
    rng = np.random.default_rng(0)
    shuffled = [mcc(best.truth, best.codes[rng.permutation(len(best.codes))]) for _ in range(3)]
    assert chance == pytest.approx(np.mean(shuffled), abs=0.0005)


def test_the_best_value_depends_on_the_metric():
    assert best_value("translation-difficulty.relative", [0.9, 0.2]) == 0.2
    assert best_value("mcc", [0.9, 0.2]) == 0.9
    assert best_value("mine", [0.9, 0.2]) is None, "the best value of an own metric is unknown"
    assert best_value("factor-vae-score.active", [3.0, 5.0]) is None, "a count is neither good nor bad"
    assert primary_score(["local-isometry", "mig", "sap[r2]"]) == "mig"
    assert primary_score(["sap[r2]", "mcc"]) == "mcc"
    assert primary_score([]) is None


def test_the_same_runs_give_the_same_page(runs, text, tmp_path):
    assert write_report([runs], tmp_path / "again.html").read_text() == text


def test_the_summary_names_the_best_method_and_its_score(runs):
    text = summarize([read_run(runs / str(i)) for i in range(4)])
    best = read_run(runs / "3").scores["mcc"]
    assert text.startswith(
        f"hessian-ica recovers the factors x and y (MCC {best:.3f}; 1 is perfect). Others: linear-ica 0."
    )
    assert "does not recover" in summarize([read_run(runs / "0")])


def test_data_without_factors_data_with_classes_and_a_single_code(tmp_path):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).uniform(size=(50, 3)))
    execute_run(Run(OwnData(path=tmp_path / "x.npy"), PCA(latent_dim=1)), tmp_path / "r" / "1", SCORERS)
    execute_run(Run(GaussianMixture(points=100), PCA(latent_dim=3)), tmp_path / "r" / "2", SCORERS)
    page = write_report([tmp_path / "r"], tmp_path / "p.html").read_text()
    assert "The data have no known factors. pca preserves distances between neighbors best" in page
    assert "known factors: cluster, z1, z2" in page


def test_names_from_files_cannot_inject_markup(tmp_path):
    path = tmp_path / "<b>x<script>.csv"
    path.write_text("a,b,<i>f\n" + "\n".join(f"{i},{i * i},{i % 3}" for i in range(20)))
    execute_run(Run(OwnData(path=path, factors=("<i>f",)), PCA(latent_dim=1)), tmp_path / "r", SCORERS)
    page = write_report([tmp_path / "r"], tmp_path / "p.html").read_text()
    assert page.count("<script>") == 1 and page.count("<script") == 2, "ours, and its data"
    assert "<i>f" not in page


def test_a_page_that_cannot_be_written_is_refused(runs, tmp_path):
    with pytest.raises(InputError, match="is a folder"):
        write_report([runs], tmp_path)


def test_a_copy_of_a_run_counts_once(runs, text, tmp_path):
    shutil.copytree(runs, tmp_path / "copy")
    assert write_report([runs, tmp_path / "copy"], tmp_path / "p.html").read_text() == text


# A study --------------------------------------------------------------------------------------------------------


STUDY = """
'''Is it beta?

It may <b>well</b> be.'''
import unweave
from unweave.datasets import SquaresXY
from unweave.methods import PCA, BetaVAE

squares = SquaresXY(points=200, size=16, side=6)
small = BetaVAE(steps=20, layers=(8,), network="mlp", latent_dim=3)
runs = [
    *unweave.sweep(squares, small, beta=[1, 4, 16], seed=range(2)),
    unweave.Run(squares, PCA(latent_dim=2)),
    unweave.Run(squares, PCA(latent_dim=1000)),
]
metrics = ["mcc", "sap[r2]"]
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    (folder / "beta.py").write_text(STUDY)
    with pytest.warns(RuntimeWarning, match="failed"), pytest.raises(SystemExit):
        study(["run", str(folder / "beta.py"), "--out", str(folder / "runs")])
    return write_report([folder / "runs"], folder / "page.html")


def test_a_study_shows_its_question_and_its_failures(page):
    text = page.read_text()
    assert "<h1>Is it beta?</h1>" in text and "It may &lt;b&gt;well" in text
    assert "7 of 8 runs done, 1 failed" in text and "Metrics: mcc, sap[r2]" in text
    assert "<strong>pca on squares-xy (latent_dim=1000, data.points=200" in text
    assert 'id="failures"' in text and "latent_dim=1000 is more than the data allow" in text
    for caption in (
        "one dot per run",
        "Effect of beta",
        "Do the scores agree?",
        "Loss curves of beta-vae",
        "changes one code",
    ):
        assert caption in text, caption


def test_an_unfinished_study_shows_how_many_runs_are_missing(page, tmp_path):
    place = shutil.copytree(page.parent / "runs", tmp_path / "runs")
    shutil.rmtree(next(run for run in sorted(place.iterdir()) if (run / "history.parquet").is_file()))
    assert "6 of 8 runs done, 1 failed, 1 not run yet" in write_report([place], tmp_path / "p.html").read_text()


def test_the_question_is_read_from_subfolders_and_other_runs_are_counted(page, tmp_path):
    place = shutil.copytree(page.parent / "runs", tmp_path / "all" / "runs")
    execute_run(Run(DATA, PCA()), place / "another", SCORERS)
    text = write_report([tmp_path / "all"], tmp_path / "p.html").read_text()
    assert "<h1>Is it beta?</h1>" in text and "Failed runs" in text
    assert "1 run in the folder that the study file no longer defines" in text
    assert "<h2>squares-xy (points=200" in text  # two datasets of this name


def test_a_study_whose_runs_all_failed_has_a_page(page, tmp_path):
    place = shutil.copytree(page.parent / "runs", tmp_path / "runs")
    for run in find_runs([place]):
        shutil.rmtree(run)
    text = write_report([place], tmp_path / "p.html").read_text()
    assert "0 of 8 runs done, 1 failed, 7 not run yet" in text and "latent_dim=1000" in text
    with pytest.raises(InputError, match="holds no runs"):
        (tmp_path / "empty").mkdir()
        write_report([tmp_path / "empty"], tmp_path / "p.html")


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
class TestInABrowser:
    """Interaction with the page, by a script in a copy of it."""

    def run_script(self, page, tmp_path, script, *flags):
        """Return what the script returns, as JSON, and the lines of the console."""
        ending = "<script>const result = (() => {" + script + "})(); document.body.innerHTML = ''; "
        ending += "document.body.textContent = JSON.stringify(result);</script></body>"
        copy = tmp_path / "copy.html"
        text = re.sub(r"script-src [^;]+", "script-src 'unsafe-inline'", page.read_text())  # for the script of the test
        copy.write_text(text.replace("</body>", ending))
        command = [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", *flags]
        command += [
            "--virtual-time-budget=5000",
            f"--user-data-dir={tmp_path / 'profile'}",
            "--dump-dom",
            copy.as_uri(),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        body = re.search(r"<body[^>]*>(.*)</body>", done.stdout, re.DOTALL)
        assert body, done.stderr
        return json.loads(html.unescape(body[1])), [line for line in done.stderr.splitlines() if "CONSOLE" in line]

    def test_the_table_sorts_numbers_in_both_directions(self, page, tmp_path):
        script = """
        const table = document.querySelector("table.runs");
        const column = name => [...table.tHead.rows[0].cells].findIndex(cell => cell.textContent.trim() === name);
        const values = j => [...table.tBodies[0].rows].map(row => row.cells[j].textContent.trim());
        const click = j => table.tHead.rows[0].cells[j].querySelector("button").click();
        const state = {};
        for (const name of ["beta", "mcc"]) {
          click(column(name)); state[name + " up"] = values(column(name));
          click(column(name)); state[name + " down"] = values(column(name));
        }
        state.sort = table.tHead.rows[0].cells[column("mcc")].ariaSort;
        state.loaded = performance.getEntriesByType("resource").map(entry => entry.name.slice(0, 5));
        return state;"""
        result, console = self.run_script(page, tmp_path, script)
        assert result["beta up"] == ["1", "1", "4", "4", "16", "16", ""], "a run without it comes last"
        assert result["beta down"] == ["16", "16", "4", "4", "1", "1", ""]
        assert result["mcc up"] == sorted(result["mcc up"], key=float) == result["mcc down"][::-1]
        assert result["sort"] == "descending"
        assert set(result["loaded"]) <= {"data:"}, "nothing comes from elsewhere"
        assert not console

    def test_the_table_filters_by_words_and_columns(self, page, tmp_path):
        script = """
        const input = document.querySelector(".filter input"), table = document.querySelector("table.runs");
        const state = {};
        for (const text of ["", "pca", "beta=4", "beta >= 4 SEED=1", "mcc>2", "BETA-VAE seed=0", "nothing"]) {
          input.value = text; input.dispatchEvent(new Event("input"));
          state[text] = [[...table.tBodies[0].rows].filter(row => !row.hidden).length,
                         document.querySelector(".count").textContent];
        }
        return state;"""
        result, console = self.run_script(page, tmp_path, script)
        shown = {text: count for text, (count, _) in result.items()}
        assert shown == {
            "": 7,
            "pca": 1,
            "beta=4": 2,
            "beta >= 4 SEED=1": 2,
            "mcc>2": 0,
            "BETA-VAE seed=0": 3,
            "nothing": 0,
        }
        assert result["beta=4"][1] == "2 of 7 runs"
        assert not console

    @pytest.mark.parametrize("width", [1300, 500])
    def test_the_page_does_not_scroll_horizontally(self, page, tmp_path, width):
        script = "return [document.documentElement.scrollWidth, document.documentElement.clientWidth];"
        (wide, room), _ = self.run_script(page, tmp_path, script, f"--window-size={width},900")
        assert room > 300
        assert wide <= room
