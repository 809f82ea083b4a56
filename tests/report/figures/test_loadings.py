"""Scree plots and loading charts."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from unweave.methods import PCA, LinearICA
from unweave.report.figures.loadings import MAX_ROWS, draw_loadings, draw_scree
from unweave.report.figures.style import BLUE


def table(columns, n=200):
    """Three factors, each in a third of the columns."""
    rng = np.random.default_rng(0)
    z = rng.uniform(-1, 1, (n, 3))
    x = z[:, np.arange(columns) % 3] * (1 - 2 * (np.arange(columns) % 2)) + 0.1 * rng.normal(size=(n, columns))
    return pd.DataFrame(x, columns=[f"name {i}" for i in range(columns)])


@pytest.mark.parametrize("cls", [PCA, LinearICA])
def test_the_scree_plot_marks_the_codes_and_the_choice(cls):
    method = cls(latent_dim="auto").fit(table(12))
    variances, errors = draw_scree(method).axes
    heights = [bar.get_height() for bar in variances.patches]
    assert heights == sorted(heights, reverse=True) and sum(heights) == pytest.approx(1)
    assert [to_hex(bar.get_facecolor()) == BLUE for bar in variances.patches] == [True] * 3 + [False] * 9
    assert variances.get_title().startswith("3 codes explain 9")
    assert errors.get_title() == "cross-validation chooses 3"
    (chosen,) = errors.lines[1].get_xdata()
    assert chosen == np.argmin(errors.lines[0].get_ydata()) == 3
    assert len(draw_scree(cls(latent_dim=2).fit(table(12))).axes) == 1


def test_columns_are_grouped_by_code():
    method = LinearICA(latent_dim=3).fit(table(9))
    axis = draw_loadings(method).axes[0]
    shown = np.asarray(axis.images[0].get_array())
    assert np.abs(shown).argmax(1).tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    names = [label.get_text() for label in axis.get_yticklabels()]
    for name, row in zip(names, shown, strict=True):
        np.testing.assert_allclose(row, method.loadings_[:, int(name.split()[1])])
    assert [label.get_text() for label in axis.get_xticklabels()] == ["1\n33 %", "2\n33 %", "3\n33 %"]


def test_of_many_columns_the_strongest_are_shown():
    x = table(90).assign(noise=np.random.default_rng(1).normal(size=200), **{"a" * 80: np.arange(200) % 7})
    axis = draw_loadings(PCA(latent_dim=3).fit(x)).axes[0]
    names = [label.get_text() for label in axis.get_yticklabels()]
    assert len(names) == MAX_ROWS
    assert axis.get_title() == "loadings (60 of 92 columns)"
    assert not {"noise"} & set(names) and max(map(len, names)) < 50


def test_weak_columns_come_last():
    x = table(6).assign(noise=np.random.default_rng(1).normal(size=200))[["noise", *table(6).columns]]
    axis = draw_loadings(PCA(latent_dim=3).fit(x)).axes[0]
    assert axis.get_yticklabels()[-1].get_text() == "noise"
