"""Choosing a palette with a plain CNN."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from unweave import InputError
from unweave.datasets import Unseen
from unweave.datasets.colored import PALETTES
from unweave.papers.swap_contrast import disentangled, palettes
from unweave.papers.swap_contrast import tables as swap_tables
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
    half = names[len(names) // 2 :]
    assert {*palettes.candidates()} == {*half} == {*palettes.select_palettes(Options())}
    assert palettes.select_palettes(Options(screen=True)) == names
    store(tmp_path, "palettes", [rows_of(name, 0.05) for name in half[1:]])
    with pytest.raises(InputError, match="run `unweave paper run swap-contrast/palettes` first"):
        palettes.chosen_palette()
    finals = [rows_of(name, 0.15 - 0.01 * k) for k, name in enumerate(half)]
    store(tmp_path, "palettes", [rows_of(names[0], 0.0), *finals])  # the nearest was dropped
    assert palettes.chosen_palette() == half[-1]


def test_screening_takes_a_narrow_network_and_few_steps(digits):
    (screen, *_), (final, *_) = (
        palettes.list_runs(Options(palettes=("adjacent-60-45",), screen=s)).values() for s in (True, False)
    )
    assert (screen.method.steps, final.method.steps) == (1_000, 6_000)
    assert screen.method.widths < final.method.widths
    assert palettes.folders(Options(screen=True)).name == "palette-screening"
    data = Unseen(part="test").load()
    assert len(all_test_points(data, limit=len(data.gray) // 3)) == 3 * -(-len(data.gray) // 3)


def test_converged_tables_use_the_chosen_palette_and_the_words_of_the_paper(monkeypatch):
    monkeypatch.setattr(swap_tables, "chosen_palette", lambda: "adjacent-60-45")
    options = swap_tables.Options(data="rotation-colored-mnist", converged=True)
    data = swap_tables.make_data(options)
    assert (data.palette, data.clockwise, data.validation) == ("adjacent-60-45", True, False)
    assert swap_tables.make_data(replace(options, tune=True)).validation
    every = swap_tables.methods(options, 0)
    assert {method.lr_schedule for method in every.values()} == {"cosine"}
    assert {method.steps for method in every.values()} == {40_000}
    ours = {name: method for name, method in every.items() if name.startswith("swap and contrast")}
    assert [name for name, method in ours.items() if method.refit_classifier] == ["swap and contrast, refitted"]
    assert all(method.prediction == 1 and method.per_number for method in ours.values())
    assert swap_tables.folders(options).name == "rotation-colored-mnist-converged"
    assert swap_tables.folders(replace(options, converged=False)).name == "rotation-colored-mnist"
    searched = swap_tables.methods(replace(options, tune=True), 100)
    assert sum(name.startswith("swap and contrast: ") for name in searched) == 6


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
