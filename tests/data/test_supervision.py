"""What methods may see: the plans have exactly the statistics that the papers say."""

import numpy as np
import pytest
import torch

from tests.helpers import generator
from unweave import Factor, Grid, InputError, Mixing, Table, as_data
from unweave.data.core import Subset
from unweave.data.splits import correlate, correlated_split
from unweave.data.supervision import augmented, labeled, pairs, single
from unweave.datasets import GaussianMixture

SIZES = (3, 4, 5)


@pytest.fixture(scope="module")
def grid():
    return Grid(torch.arange(60.0)[:, None], [Factor(f"f{s}", s, "ordinal") for s in SIZES])


@pytest.fixture(scope="module")
def table(grid):
    """The same combinations as rows, each twice."""
    c = grid.all_points(60).repeat(2, 1)
    return as_data(torch.arange(120.0)[:, None].numpy(), c.numpy())


def changed(data, plan):
    return data.labels(plan.views["x"]) != data.labels(plan.views["x2"])


@pytest.mark.parametrize("k", [1, 2, 3])
def test_pairs_differ_in_exactly_k_factors_on_grids_and_tables(grid, table, k):
    for data in (grid, table):
        plan = pairs(data, 2000, generator(), k=k)
        assert (changed(data, plan).sum(1) == k).all()
        assert (plan.extras["k"] == k).all()
        share = changed(data, plan).float().mean(0)
        assert torch.allclose(share, torch.full((3,), k / 3), atol=0.05), "each factor is as likely to change"


def test_a_changed_value_is_uniform_over_the_other_values(grid):
    plan = pairs(grid, 30_000, generator(), k=1)
    a, b = plan.views["x"][:, 2], plan.views["x2"][:, 2]
    step = ((b - a) % 5)[a != b]
    assert torch.allclose(step.bincount(minlength=5)[1:] / len(step), torch.full((4,), 0.25), atol=0.02)


def test_redrawing_from_the_marginal_hits_the_old_value_as_often_as_it_must(grid):
    """Locatello et al. (2020) redraw from the factor's distribution: unchanged with probability 1/size."""
    plan = pairs(grid, 60_000, generator(), k=3, redraw="any")
    stayed = 1 - changed(grid, plan).float().mean(0)
    assert torch.allclose(stayed, torch.tensor([1 / 3, 1 / 4, 1 / 5]), atol=0.01)


def test_k_uniform_runs_from_one_to_all_but_one(grid):
    plan = pairs(grid, 10_000, generator(), k="uniform")
    assert torch.equal(changed(grid, plan).sum(1), plan.extras["k"])
    share = plan.extras["k"].bincount(minlength=4) / 10_000
    assert torch.allclose(share, torch.tensor([0, 0.5, 0.5, 0]), atol=0.02)


def test_pairs_on_continuous_factors():
    data = Mixing(
        [Factor("a"), Factor("b")], (2,), lambda n, g: torch.rand(n, 2, generator=g), lambda c: c, points=50, seed=0
    )
    assert (changed(data, pairs(data, 500, generator(), k=1)).sum(1) <= 1).all()


def test_pairs_that_cannot_be_had_are_refused(grid):
    with pytest.raises(InputError, match="k must be 0 to 3"):
        pairs(grid, 5, generator(), k=4)
    with pytest.raises(InputError, match="one value only"):
        pairs(Grid(torch.zeros(2, 1), [Factor("a", 2, "nominal"), Factor("b", 1, "nominal")]), 5, generator(), k=1)
    with pytest.raises(InputError, match="at least two factors that can change"):
        pairs(grid, 5, generator(), k="uniform", among=("f3",))


def test_pairs_on_a_table_with_holes_follow_the_rows_there_are():
    holes = as_data(np.zeros((3, 1)), np.array([[0, 0], [0, 1], [1, 0]]))
    plan = pairs(holes, 300, generator(), k=1)
    assert (changed(holes, plan).sum(1) == 1).all()
    # The row (0, 0) has partners by either factor; each of the others by one only.
    from_corner = holes.labels(plan.views["x2"])[plan.views["x"][:, 0] == 0]
    assert {tuple(c) for c in from_corner.tolist()} == {(0, 1), (1, 0)}
    with pytest.raises(InputError, match=r"no row differs from the one with y1=0, y2=0 in exactly k=2 factors"):
        pairs(holes, 300, generator(), k=2)


def test_pairs_by_label_change_anything_but_the_label(table):
    names = [f.name for f in table.factors]
    plan = pairs(table, 500, generator(), k=2, among=names[1:])
    assert changed(table, plan).sum(0).tolist() == [0, 500, 500]
    same = pairs(table, 500, generator(), k=0)
    assert not changed(table, same).any()
    assert (same.views["x"] != same.views["x2"]).any(), "another row with the same factors"


def test_labels_come_with_their_observations():
    data = GaussianMixture(points=100).load()
    plan = labeled(data, 20, generator())
    assert torch.equal(plan.extras["u"], plan.views["x"][:, 0].long())
    with pytest.raises(InputError, match="no factor is discrete"):
        labeled(as_data(np.zeros((3, 1)), [0.5, 1.0, 2.0]), 5, generator())


def test_augmentation_moves_only_the_chosen_latents_by_standard_noise():
    data = GaussianMixture(points=1000).load()
    plan = augmented(data, 500, generator(), along=("z1",), copies=10)
    points = plan.views["x"].reshape(500, 10, -1)
    assert torch.equal(plan.extras["origin"].reshape(500, 10), torch.arange(500)[:, None].expand(500, 10))
    spread = (points - points.mean(1, keepdim=True)).pow(2).sum(1).div(9).mean(0).sqrt()
    assert spread[1] == pytest.approx(1, abs=0.03)
    assert spread[[0, *range(2, 11)]].max() < 1e-6


def test_augmentation_needs_data_that_can_be_rendered_anywhere(grid):
    with pytest.raises(InputError, match="any real value"):
        augmented(grid, 5, generator(), along=("f3",))


@pytest.mark.parametrize("kind", ["grid", "table"])
def test_correlated_factors_follow_the_joint_and_leave_the_others_alone(kind, request):
    data = request.getfixturevalue(kind)
    names = (data.factors[0].name, data.factors[1].name)
    joint = torch.arange(12.0).reshape(3, 4)
    c = (dependent := correlate(data, names, joint=joint)).labels(dependent.sample(60_000, generator())).long()
    found = (c[:, 0] * 4 + c[:, 1]).bincount(minlength=12).reshape(3, 4) / 60_000
    assert torch.allclose(found, joint / joint.sum(), atol=0.01)
    assert torch.allclose(c[:, 2].bincount(minlength=5) / 60_000, torch.full((5,), 0.2), atol=0.01)
    assert torch.equal(
        dependent.render(dependent.sample(5, generator())), data.render(dependent.sample(5, generator()))
    )


def test_a_small_strength_ties_factors_together(grid):
    def correlation(strength):
        c = correlate(grid, ("f3", "f5"), strength=strength).sample(20_000, generator()).double()
        return float(torch.corrcoef(c[:, [0, 2]].T)[0, 1])

    assert correlation(0.1) > 0.95 > 0.6 > correlation(0.5) > 0.2 > correlation(100) > -0.05


def test_a_wrong_joint_is_refused(grid):
    with pytest.raises(InputError, match="expected the same"):
        correlate(grid, ("f3", "f4"), joint=torch.ones(4, 3))
    with pytest.raises(InputError, match="not negative"):
        correlate(grid, ("f3", "f4"), joint=-torch.ones(3, 4))
    with pytest.raises(InputError, match="either joint"):
        correlate(grid, ("f3", "f4"))
    with pytest.raises(InputError, match="no factor named 'q'"):
        correlate(grid, ("f3", "q"), strength=1.0)


def test_single_views_are_samples(grid):
    assert torch.equal(single(grid, 9, generator(4)).views["x"], grid.sample(9, generator(4)))


def test_pairs_on_a_split_of_a_table(table):
    names = (table.factors[0].name, table.factors[1].name)
    split = correlated_split(table, names, strength=0.5, train=50, test=30)
    assert (changed(table, pairs(split.correlated, 200, generator(), k=1)).sum(1) == 1).all()


def test_mistakes_in_a_plan_are_named(grid):
    with pytest.raises(InputError, match="redraw='foo'"):
        pairs(grid, 5, generator(), redraw="foo")
    with pytest.raises(InputError, match="not with itself"):
        correlate(grid, ("f3", "f3"), strength=1.0)
    with pytest.raises(InputError, match="'z1' is real-valued"):
        labeled(GaussianMixture(points=10).load(), 5, generator(), factor="z1")


def test_pairs_never_reach_what_was_held_out(grid):
    split = correlated_split(grid, ("f3", "f4"), strength=0.3, train=400, test=20)
    held = {tuple(c) for c in split.test.points.tolist()}
    plan = pairs(split.correlated, 2000, generator(), k=1)
    assert (changed(grid, plan).sum(1) == 1).all()
    for view in ("x", "x2"):
        assert held.isdisjoint({tuple(c) for c in plan.views[view].tolist()})


def test_pairs_in_a_sparse_table_are_found_if_there_are_any():
    """Two thousand rows of a million combinations: guessing values would never meet a row."""
    sizes = (6, 6, 2, 3, 3, 40, 40)
    c = np.random.default_rng(0).integers(0, sizes, (2000, 7))
    sparse = Table(
        torch.zeros(2000, 1), torch.from_numpy(c).double(), [Factor(f"f{i}", s, "ordinal") for i, s in enumerate(sizes)]
    )
    plan = pairs(sparse, 30, generator(), k=5)
    assert (changed(sparse, plan).sum(1) == 5).all()
    plan = pairs(sparse, 30, generator(), k="uniform")
    assert torch.equal(changed(sparse, plan).sum(1), plan.extras["k"])


def test_real_valued_tables_and_views_of_them_say_why_they_have_no_pairs():
    faces = as_data(np.zeros((9, 1)), np.random.default_rng(0).uniform(size=(9, 2)))
    with pytest.raises(InputError, match=r"'y1' is real-valued.*--data\.nominal y1"):
        pairs(faces, 5, generator(), k=1)
    with pytest.raises(InputError, match="any real value"):
        augmented(Subset(faces, torch.arange(4)[:, None]), 5, generator(), along=("y1",))


def test_a_joint_with_weight_where_there_are_no_rows_is_refused():
    holes = as_data(np.zeros((3, 1)), np.array([[0, 0], [0, 1], [1, 0]]))
    with pytest.raises(InputError, match=r"no observation has y1=1, y2=1, .* \(25% of it would be lost\)"):
        correlate(holes, ("y1", "y2"), joint=torch.ones(2, 2))
