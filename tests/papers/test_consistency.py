"""Consistency of seeds: informative variables of flows, matched between each pair."""

import numpy as np
import pandas as pd
import pytest
import torch

from unweave.data.containers import Table
from unweave.data.core import Factor
from unweave.methods import GIN
from unweave.papers import consistency, flow_digits
from unweave.papers.flow_digits import DigitData


def test_a_permuted_code_is_consistent_and_noise_is_not():
    rng = np.random.default_rng(0)
    z, labels = rng.standard_normal((5_000, 3)), rng.integers(2, size=5_000)
    codes = {0: z, 3: -z[:, [2, 0, 1]], 4: np.c_[z[:, :1], rng.standard_normal(5_000)]}
    table = consistency.compare_seeds(codes, labels).set_index(["seed", "other seed"])
    assert table.loc[(0, 3), "MCC"] == pytest.approx(1) and table.loc[(0, 3), "variables"] == 3
    assert table.loc[(0, 4), "variables"] == 2 and table.loc[(0, 4), "of"] == 3
    assert table.loc[(0, 4), "MCC"] == pytest.approx(0.5, abs=0.03), "one of the two variables is found"


def test_means_of_classes_alone_are_no_consistency_within_classes():
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=5_000)
    codes = {seed: 10 * labels[:, None] + rng.standard_normal((5_000, 2)) for seed in (0, 1)}
    (row,) = consistency.compare_seeds(codes, labels).to_dict("records")
    assert row["MCC"] > 0.95 and row["MCC within classes"] < 0.05


def test_the_table_has_a_row_for_each_seed_and_one_for_all_pairs(tmp_path):
    pairs = pd.DataFrame({"seed": [0, 0, 1], "other seed": [1, 2, 2], "MCC": [0.9, 0.7, 0.5]})
    pairs.assign(**{"MCC within classes": pairs["MCC"] / 2}).to_csv(tmp_path / consistency.FILE_NAME)
    (table,) = consistency.read_consistency(tmp_path, "")
    assert table.rows[1] == ["1", "0.700", "0.500", "0.350", "0.250"]
    assert table.rows[-1] == ["all pairs", "0.700", "0.500", "0.350", "0.250"] and len(table.rows) == 4


def test_models_of_all_seeds_are_compared_by_their_informative_variables(tmp_path):
    x = torch.rand(80, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(80) % 2
    data = Table(x, labels[:, None].float(), (Factor("label", 2, "nominal"),))
    digits = DigitData(data, data, x.numpy(), labels.numpy())
    consistency.write_consistency(tmp_path, digits)
    assert consistency.read_consistency(tmp_path, "") == []
    tiny = {"steps": 2, "batch_size": 8, "conv_blocks": 1, "conv_widths": (4,), "width": 4, "blocks": 1}
    methods = {seed: GIN(seed=seed, **tiny).fit(data) for seed in (0, 2)}
    for seed, method in methods.items():
        method.n_informative_ = 3 + seed
        method.save(tmp_path / f"seed-{seed}" / flow_digits.MODEL)
    consistency.write_consistency(tmp_path, digits)
    (row,) = pd.read_csv(tmp_path / consistency.FILE_NAME).to_dict("records")
    assert [row["seed"], row["other seed"], row["variables"], row["of"]] == [0, 2, 3, 5]
