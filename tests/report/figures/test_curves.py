"""Loss curves."""

import pandas as pd

from unweave.report.figures.curves import draw_loss_curves


def test_every_loss_term_has_a_panel():
    histories = {
        "a": pd.DataFrame({"step": [1, 2], "loss": [3.0, 2.0], "kl": [0.0, 1.0]}),
        "b": pd.DataFrame({"step": [1, 2], "loss": [2.0, 1.0]}),
    }
    axes = draw_loss_curves(histories).axes
    assert [axis.get_title() for axis in axes] == ["loss", "kl"]
    assert [len(axis.lines) for axis in axes] == [2, 1]
