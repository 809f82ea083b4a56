"""Choosing a palette with a plain CNN."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config

from unweave import InputError
from unweave.datasets import Unseen
from unweave.datasets.colored import PALETTES
from unweave.metrics.nuisance_probe import Probe
from unweave.papers.swap_contrast import disentangled, palettes, scoring, selection
from unweave.papers.swap_contrast import tables as swap_tables
from unweave.papers.swap_contrast.claims import judge_table, make_tables
from unweave.papers.swap_contrast.palettes import (
    Options,
    all_test_points,
    compare_palettes,
    main,
    number_name,
    paper_numbers,
    score_rows,
    tables,
)
from unweave.papers.swap_contrast.settings import IMPROVED, IMPROVED_DEFAULT, SEARCHED_CONVERGED


def rows_of(palette, shift):
    """Return the scores of a CNN that is off by `shift` everywhere."""
    rows = []
    for angle in (np.nan, -75.0, -65.0, 65.0, 75.0):
        scores = {name: paper_numbers()[number_name(name, angle)] + shift for name in ("average", "worst")}
        rows.append({"palette": palette, "data": "", "seed": 0, "angle": angle} | scores)
    return pd.DataFrame(rows)


def test_the_nearest_palette_comes_first():
    table = compare_palettes(pd.concat([rows_of("far", 0.1), rows_of("near", -0.02)]))
    assert table.index.tolist() == ["near", "far"]
    assert table["distance"].tolist() == pytest.approx([0.02, 0.1])
    assert len(paper_numbers()) == 10 and paper_numbers()["worst -75"] == 0.623
    incomplete = rows_of("near", 0).iloc[:3]
    assert compare_palettes(incomplete)["distance"].isna().all(), "a palette without all numbers is not compared"


def test_the_worst_group_is_a_color_on_a_background():
    c = np.array([[0, 0, 3, 8], [1, 0, 3, 7], [0, 1, 3, 8], [1, 1, 3, 7.0]])  # digit, color, background, angle
    scores = score_rows(np.array([0, 1, 0, 0.0]), c, 65.0)
    assert scores == {"angle": 65.0, "average": 0.75, "worst": 0.5}


def test_all_test_digits_are_scored(digits):
    data = Unseen(of="rotation-colored-mnist", part="test").load()
    points = all_test_points(data)
    assert len(points) == len(data.gray) * 3 * 5 == len(points.unique(dim=0))
    assert set(points[:, 1].tolist()) == set(range(6)) and set(points[:, 2].tolist()) == {3, 4, 5}


def test_a_small_calibration_runs(digits, tmp_path):
    options = Options(palettes=("adjacent-100-45",), seeds=1, steps=2, out=tmp_path)
    main(options)
    (table,) = tables(options)
    assert [row[0] for row in table.rows] == ["paper", "adjacent-100-45"]
    assert all(0 <= float(value) <= 1 for value in table.rows[1][1:])


def test_shared_work_trains_the_palettes_of_each_part(digits, tmp_path, monkeypatch):
    options = Options(palettes=("adjacent-100-45", "adjacent-60-45"), first=1, every=2, seeds=1, steps=2, out=tmp_path)
    main(options)
    (table,) = tables(options)
    assert [row[0] for row in table.rows] == ["paper", "adjacent-60-45"]
    monkeypatch.setattr(palettes, "execute", lambda *args, **settings: None)
    with pytest.raises(InputError, match="no run is done"):
        main(replace(options, out=tmp_path / "other"))


def test_settings_that_are_compared_have_no_probe():
    rows = pd.DataFrame({"method": ["CNN: lr 1"] * 2, "seed": [0, 1], "angle": np.nan, "average": 0.9, "worst": 0.5})
    for data in ("colored-mnist", "rotation-colored-mnist"):
        every = pd.concat([rows, rows.assign(angle=45.0)]) if data.startswith("rotation") else rows
        *_, table = make_tables(every.assign(**{"worst of class": 0.4, "explained": np.nan}), data, "title")
        assert dict(zip(table.columns, table.rows[0], strict=True))["probe (chance)"] == "-"


def store(folder, name, rows):
    """Write stored scores of a stage."""
    path = folder / "swap_contrast" / "results" / name
    path.mkdir(parents=True, exist_ok=True)
    pd.concat(rows).to_csv(path / "scores.csv", index=False)


def test_the_palette_is_chosen_in_two_stages(tmp_path, monkeypatch):
    monkeypatch.setattr(palettes, "stored_results", lambda: tmp_path)
    names = tuple(PALETTES)
    assert palettes.candidates() == names, "without a screening all of them"
    assert palettes.select_palettes(Options(first=3, every=4)) == names[3::4]
    screened = [rows_of(name, 0.01 * k) for k, name in enumerate(reversed(names))]
    store(tmp_path, "palette-screening", screened[1:])
    assert palettes.candidates() == names, "half a screening drops none"
    store(tmp_path, "palette-screening", screened)
    nearest = names[len(names) - palettes.FINALISTS :]
    assert {*palettes.candidates()} == {*nearest} == {*palettes.select_palettes(Options())}
    assert palettes.select_palettes(Options(screen=True)) == names
    store(tmp_path, "palettes", [rows_of(name, 0.05) for name in nearest[1:]])
    with pytest.raises(InputError, match="run `unweave paper run swap-contrast/palettes` first"):
        palettes.chosen_palette()
    finals = [rows_of(name, 0.15 - 0.01 * k) for k, name in enumerate(nearest)]
    store(tmp_path, "palettes", [rows_of(names[0], 0.0), *finals])  # the nearest was dropped
    assert palettes.chosen_palette() == nearest[-1]


def test_screening_takes_fewer_steps_and_the_choice_those_of_the_tables():
    (screen, *_), (final, *_) = (
        palettes.list_runs(Options(palettes=("adjacent-60-45",), screen=s)).values() for s in (True, False)
    )
    table = swap_tables.methods(swap_tables.Options(data="colored-mnist", converged=True, palette="adjacent-60-45"), 0)
    assert final.method.get_params() == table["CNN"].get_params() | {"label": final.method.label}
    assert screen.method.get_params() == final.method.get_params() | {"steps": 6_000}
    assert palettes.folders(Options(screen=True)).name == "palette-screening"


def test_colors_that_were_not_chosen_have_folders_and_settings_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setattr(selection, "stored_results", lambda: tmp_path)
    options = swap_tables.Options(data="colored-mnist", converged=True, palette="adjacent-60-45")
    assert swap_tables.folders(options).name == "colored-mnist-converged-adjacent-60-45"
    assert swap_tables.make_data(options).palette == "adjacent-60-45"
    rate = {"CNN: lr 0.0001": 0.6, "CNN: lr 0.0005": 0.5, "CNN: lr 0.002": 0.4}
    for data in selection.SETS:
        place = swap_tables.folders(replace(options, data=data, tune=True))
        store_tuning(tmp_path, {data: rate}, place.name)
    assert swap_tables.methods(options, 0)["CNN"].lr == 1e-4
    assert swap_tables.methods(replace(options, palette="adjacent-60-35"), 0)["CNN"].lr == 1e-3


def test_converged_tables_use_the_chosen_palette_and_the_words_of_the_paper(monkeypatch):
    monkeypatch.setattr(swap_tables, "chosen_palette", lambda: "adjacent-60-45")
    options = swap_tables.Options(data="rotation-colored-mnist", converged=True)
    data = swap_tables.make_data(options)
    assert (data.palette, data.clockwise, data.validation) == ("adjacent-60-45", True, False)
    runs = swap_tables.list_runs(replace(options, tune=True))
    assert all(run.data.validation for run in runs.values())
    assert {run.data.left_out for (name, _), run in runs.items() if name == "CNN: lr 0.002"} == {0, 1, 2}
    every = swap_tables.methods(options, 0)
    assert {method.lr_schedule for method in every.values()} == {"cosine"}
    assert {method.steps for method in every.values()} == {40_000}
    ours = {name: method for name, method in every.items() if name.startswith("swap and contrast")}
    assert not any(method.refit_classifier for method in ours.values())
    assert all(method.prediction == 1 and method.per_number for method in ours.values())
    assert swap_tables.folders(options).name == "rotation-colored-mnist-converged"
    assert swap_tables.folders(replace(options, converged=False)).name == "rotation-colored-mnist"
    searched = swap_tables.methods(replace(options, tune=True), 100)
    assert sum(name.startswith("swap and contrast: ") for name in searched) == 18
    assert {method.steps for method in searched.values()} == {10_000}


def test_converged_baselines_are_those_of_the_reference_library():
    options = disentangled.Options(converged=True)
    every = disentangled.methods(options, 0)
    assert {(method.lr, method.steps) for method in every.values()} == {(1e-4, 300_000)}
    assert every["DIP-VAE-I"].diagonal == 100 and every["DIP-VAE-I"].off_diagonal == 10
    assert every["FactorVAE"].critic_lr == 1e-4
    assert disentangled.columns(options)[1] == "sap[svm-raw]"
    assert disentangled.folders(options).name == "disentangled-shapes3d-converged"
    before = disentangled.methods(disentangled.Options(), 0)
    assert before["DIP-VAE-I"].diagonal == 10 and before["FactorVAE"].critic_lr == 5e-4


def store_tuning(folder, worst, name=""):
    """Write stored scores of --tune, of two seeds on both sets: the worst groups by set and method."""
    for data, scores in worst.items():
        rows = [
            {"method": name, "seed": seed, "angle": angle, "worst": value + noise}
            for name, value in scores.items()
            for seed, noise in ((100, 0.02), (101, -0.02))
            for angle in (np.nan, 45.0)
        ]
        path = folder / "swap_contrast" / "results" / (name or f"{data}-tuning-converged")
        path.mkdir(parents=True, exist_ok=True)
        pd.DataFrame(rows).to_csv(path / "scores.csv", index=False)


def test_tables_take_the_setting_that_the_sweep_has_chosen(tmp_path, monkeypatch):
    monkeypatch.setattr(selection, "stored_results", lambda: tmp_path)
    monkeypatch.setattr(swap_tables, "chosen_palette", lambda: "adjacent-60-45")
    options = swap_tables.Options(data="colored-mnist", converged=True)
    ours, improved = "swap and contrast", "swap and contrast, improved"
    assert selection.select_setting(ours) == {} and selection.select_setting(improved) == IMPROVED_DEFAULT
    names = {name: [selection.row_name(name, s) for s in SEARCHED_CONVERGED[name]] for name in (ours, improved)}
    flat = {row: 0.5 for rows in names.values() for row in rows}
    first, second, wide = names[ours][0], names[ours][3], names[improved][2]
    # The first is best on one set, the second in the mean over both:
    store_tuning(tmp_path, {"colored-mnist": flat | {first: 0.8, second: 0.7, wide: 0.6}})
    assert selection.select_setting(ours) == {}, "one set is not enough"
    store_tuning(tmp_path, {"rotation-colored-mnist": flat | {first: 0.2, second: 0.7, wide: 0.6}})
    assert selection.select_setting(ours) == SEARCHED_CONVERGED[ours][3]
    every = swap_tables.methods(options, 0)
    for name in (ours, f"{ours}, joint", f"{ours}, cross-entropy", improved):
        assert (every[name].beta, every[name].alpha, every[name].gamma) == (0.3, 10.0, 10.0)
    assert every[improved].widths == every["CNN, improved"].widths == (64, 128, 256)
    assert every[improved].nuisances == ("color", "background", "hue")
    runs = swap_tables.list_runs(options)
    assert {name for (name, _), run in runs.items() if run.data.hues == 12} == {improved, "CNN, improved"}
    assert "swap and contrast: beta 0.3, alpha 10, gamma 10" in selection.describe_selection([ours])
    store_tuning(tmp_path, {"colored-mnist": {first: 0.8}})
    assert selection.select_setting(ours) == SEARCHED_CONVERGED[ours][0], "the only one with scores on both sets"


def test_a_converged_table_has_the_refitted_classifier_as_a_row(digits, tmp_path, monkeypatch):
    monkeypatch.setattr(swap_tables, "chosen_palette", lambda: "adjacent-60-45")
    monkeypatch.setattr(scoring, "nuisance_probe", lambda c, z: Probe(0.5, 0.25))
    options = swap_tables.Options(
        converged=True, scale="small", steps=2, seeds=1, only=("swap and contrast",), out=tmp_path
    )
    with parallel_config(backend="threading"):
        swap_tables.main(options)
    rows = pd.read_csv(swap_tables.folders(options).scores)
    assert rows["method"].tolist() == ["swap and contrast", "swap and contrast, refitted"]
    own, refitted = rows.drop(columns=["method", "seed"]).to_dict("records")
    assert own["explained"] == refitted["explained"] and own["average"] != refitted["average"]


def test_claims_about_the_improved_row_are_our_own():
    rng, rows = np.random.default_rng(0), []
    for name, worst in (("CNN", 0.5), ("CNN, improved", 0.6), ("swap and contrast", 0.7), (IMPROVED, 0.9)):
        for seed in range(3):
            scores = {"average": worst, "worst": worst + 0.01 * rng.normal()}
            rows.append({"method": name, "seed": seed, "angle": np.nan} | scores)
    claims = judge_table(pd.DataFrame(rows), "colored-mnist", "table-1", "").claims
    assert [claim.subject for claim in claims if not claim.own] == ["CNN"]
    assert {claim.subject for claim in claims if claim.own} == {"CNN", "CNN, improved", "swap and contrast"}
    assert all(claim.holds and claim.p < 0.05 for claim in claims)
    schemes = judge_table(pd.DataFrame(rows), "colored-mnist", "table-5", "")
    assert not schemes.claims, "the improved row is no training scheme"


def test_settings_that_lack_seeds_of_others_do_not_take_part(tmp_path, monkeypatch):
    monkeypatch.setattr(selection, "stored_results", lambda: tmp_path)
    names = [selection.row_name("CNN", setting) for setting in SEARCHED_CONVERGED["CNN"]]
    store_tuning(tmp_path, {data: dict(zip(names, (0.4, 0.5, 0.9), strict=True)) for data in selection.SETS})
    assert selection.select_setting("CNN") == SEARCHED_CONVERGED["CNN"][2]
    path = selection.tuning_scores("colored-mnist")
    rows = pd.read_csv(path)
    rows[(rows["method"] != names[2]) | (rows["seed"] == 100)].to_csv(path, index=False)
    assert selection.select_setting("CNN") == SEARCHED_CONVERGED["CNN"][1], "the best one has a single seed"
