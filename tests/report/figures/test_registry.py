"""Figures of a method by name, and the observations that they show."""

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from unweave import Factor, InputError, Method, Table
from unweave.methods import PCA
from unweave.report.figures.registry import FIGURES, draw_figures, resolve_figure, sample_observations


def test_observations_of_finite_data_are_drawn_once_with_their_names():
    data = Table(torch.arange(50.0)[:, None], torch.arange(50.0)[:, None], [Factor("number")])
    data.row_names, data.feature_names = tuple(f"row {i}" for i in range(50)), ("x",)
    drawn = sample_observations(data, seed=1)
    assert sorted(drawn.x[:, 0]) == sorted(drawn.truth[:, 0]) == list(range(50))
    assert list(drawn.row_names) == [f"row {x:.0f}" for x in drawn.x[:, 0]]
    assert drawn.feature_names == ("x",) and drawn.labels is None
    assert (drawn.x[:5] != sample_observations(data, seed=2).x[:5]).any(), "the seed chooses the first ones"


class Shifted(Method):
    """A method with a figure of its own, or with constant codes."""

    constant: bool = False

    def learn(self, data):
        self.shift_ = 1.0

    def encode(self, x):
        return x[:, :2] * (0.0 if self.constant else 1.0) + self.shift_

    def figures(self):
        return (*super().figures(), own_figure)


def own_figure(method, x, labels):
    figure = Figure()
    figure.text(0, 0, f"{type(method).__name__} {x.shape} {labels.sum():g}")
    return figure


def test_a_function_of_a_user_gets_arrays():
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(30, 3)))
    c = torch.stack([x[:, 0], (torch.arange(30) % 2).double()], 1)
    data = Table(x, c, [Factor("size"), Factor("kind", 2, "nominal")])
    figures = draw_figures(Shifted(latent_dim=2).fit(data), sample_observations(data))
    assert list(figures) == ["along-codes", "codes", "own_figure"]
    assert figures["own_figure"].texts[0].get_text() == "Shifted (30, 3) 15"
    constant = Shifted(latent_dim=2, constant=True).fit(data)
    assert list(draw_figures(constant, sample_observations(data))) == ["own_figure"]


def test_unknown_figures_are_refused_and_tables_have_no_traversals():
    with pytest.raises(InputError, match="no figure named 'spectra'"):
        resolve_figure("spectra")
    assert resolve_figure("kl") == ("kl", FIGURES["kl"])
    x = np.random.default_rng(0).normal(size=(30, 3))
    assert list(PCA(latent_dim=2).fit(x).figures()) == ["along-codes", "codes", "scree", "loadings"]
