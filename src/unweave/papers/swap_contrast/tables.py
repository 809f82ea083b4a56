"""Swap and contrast (2022), Tables 1, 2 and 5: classifiers on nuisances that were not in the training set.

unweave paper run swap-contrast/table-1 --data colored-mnist        # for a GPU; needs the files of MNIST
unweave paper run swap-contrast/table-2
unweave paper run swap-contrast/distant-colors                      # colors far from those of training
unweave paper run swap-contrast/batch-128                           # as many images a step as our pairs have
unweave paper run swap-contrast/tuning                              # compare settings of every method on other seeds
unweave paper run swap-contrast/ablation                            # each loss of ours left out in turn
unweave paper run swap-contrast/table-1 --scale small --only swap CNN    # minutes on two cores
unweave paper run swap-contrast/table-2 --converged --seeds 5       # the protocol that can be compared with the paper

Accuracy on average, and in the worst group: one combination of nuisances. The paper does not define its groups; the
table also has the worst combination of class and nuisances. The probe is a new classifier that predicts the nuisances
from the codes that a method predicts from; chance is the share of the most frequent value. "explained" is the share of
the images' variance in reconstructions; near 0, the decoder has collapsed. Finished runs are not repeated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from sklearn.base import clone
from sklearn.metrics import r2_score
from sklearn.utils.parallel import Parallel, delayed

from unweave.catalog import load
from unweave.data.core import Factor, split_rows
from unweave.datasets import Unseen
from unweave.datasets.colored import Painted
from unweave.experiments.failures import no_finished_runs
from unweave.experiments.run import Run, read_run
from unweave.experiments.study import execute
from unweave.methods import CAI, CVIB, UAI, VFAE, CNNClassifier, SwapContrast, VAEClassifier
from unweave.methods.neural import Neural
from unweave.metrics import average_accuracy, nuisance_probe, worst_group_accuracy
from unweave.papers.curves import save_curves
from unweave.papers.folders import Folders
from unweave.papers.output import SILENT, Output, TextTable
from unweave.papers.swap_contrast.claims import judge_table, make_tables
from unweave.papers.swap_contrast.palettes import all_test_points, chosen_palette
from unweave.papers.swap_contrast.settings import (
    ABLATIONS,
    CONVERGED,
    CONVERGED_OURS,
    OURS,
    PRINTED,
    SEARCHED,
    SEARCHED_CONVERGED,
    TUNED,
)
from unweave.papers.verdicts import Findings, describe_effort, folder_name, merge_rows, select_methods
from unweave.utils.errors import InputError

LABEL = {"shapes3d": "shape", "mpi3d": "shape"}  # of digits it is the first factor
NEW_FACTOR = {"shapes3d": "object", "mpi3d": "color"}  # has values in the test set that training lacks
MAX_TEST_IMAGES = 90_000  # of digits
MAX_PROBE_IMAGES = 20_000  # of the test set, half to train the probe
TUNING_SEED = 100  # the first one of --tune
KEYS = ["method", "seed"]


@dataclass(kw_only=True)
class Options:
    """Tables 1, 2 and 5 of swap and contrast."""

    data: Literal["colored-mnist", "rotation-colored-mnist", "shapes3d", "mpi3d"] = "colored-mnist"
    """Dataset of images."""
    scale: Literal["small", "full"] = "full"
    """full: the networks of the other experiments; small: narrow ones, and few steps."""
    out: Path = Path("papers/swap_contrast")
    """Folder of the paper: results go below it."""
    seeds: int = 3
    """Number of repetitions."""
    steps: int = 0
    """Gradient steps; 0: 6,000 for digits, 4,000 for others and for --tune, or 600 at small scale."""
    batch: int = 64
    """Observations in a step; ours takes a pair for each, and so sees twice as many."""
    only: tuple[str, ...] = ()
    """Methods with these names, or whose names contain one of these."""
    tune: bool = False
    """Compare several settings of every method, on other seeds than those of the tables."""
    tuned: bool = False
    """Use the hyperparameters selected by --tune."""
    distant: bool = False
    """3DShapes and MPI3D: hold out neighboring colors, far from those of training, instead of every other one."""
    ablate: bool = False
    """Run only our method, with each of its losses left out in turn."""
    converged: bool = False
    """Train until convergence on colors that a plain CNN has chosen: 40,000 steps on digits, 20,000 on others, a rate
    that falls along a cosine, clockwise angles, all test digits. --tune then leaves out nuisances of training."""


def usual_steps(options: Options) -> int:
    """Return the steps of the stored tables."""
    if options.converged and options.scale == "full":
        return 40_000 if "mnist" in options.data else 20_000
    return 600 if options.scale == "small" else 6_000 if "mnist" in options.data and not options.tune else 4_000


def make_data(options: Options) -> Unseen:
    """Return the recipe of the training set."""
    if options.converged and "mnist" in options.data:
        rotated = options.data == "rotation-colored-mnist"
        return Unseen(of=options.data, palette=chosen_palette(), clockwise=rotated, validation=options.tune)
    return Unseen(of=options.data, distant=options.distant)


def methods(options: Options, seed: int) -> dict[str, Neural]:
    """Return the methods by their names in the tables."""
    if options.tune + options.tuned + options.ablate > 1:
        raise InputError("--tune, --tuned and --ablate exclude each other: pass one of them")
    digits = "mnist" in options.data
    if options.tuned and not digits:
        raise InputError("--tuned has settings for digits only: leave it out for other images")
    shared: Any = {"seed": seed, "steps": options.steps or usual_steps(options), "batch_size": options.batch}
    shared |= {"label": LABEL.get(options.data, "")} | (CONVERGED if options.converged else {})
    if options.scale == "small":
        shared["widths"] = (16, 32, 32) if digits else (8, 8, 16, 16)
    elif digits:
        shared["widths"] = (32, 64, 128)
    with_nuisances: Any = shared | {"nuisances": ("color", "background") if digits else ()}  # angles have no labels
    # The contrast is weighed against a sum over pixels; images of 64 x 64 have five times as many as digits.
    ours: Any = with_nuisances | ({} if digits else {"beta": 1_500.0, "prediction": 1_500.0})
    ours |= CONVERGED_OURS if options.converged else {}
    if options.ablate:
        changed: dict[str, Neural] = {f"{OURS}: {name}": SwapContrast(**ours | c) for name, c in ABLATIONS.items()}
        return select_methods(changed, options.only)
    every = make_methods(shared, with_nuisances, ours)
    if options.converged:  # Table 5 in the paper's words; the refitted classifier is a row of its own
        del every[PRINTED]
        every[f"{OURS}, refitted"] = SwapContrast(**ours | {"refit_classifier": True})
    if options.tune:
        every = vary_settings(every, SEARCHED | (SEARCHED_CONVERGED if options.converged else {}))
    if options.tuned:
        best = TUNED[""] | TUNED.get(options.data, {})
        every = {name: method.set_params(**best[name]) for name, method in every.items() if name in best}
    return select_methods(every, options.only)


def list_runs(options: Options) -> dict[tuple[str, int], Run]:
    """Return every run by method and seed; settings are compared on other seeds than those of the tables."""
    data, first = make_data(options), TUNING_SEED if options.tune else 0
    seeds = range(first, first + options.seeds)
    return {(name, seed): Run(data, method) for seed in seeds for name, method in methods(options, seed).items()}


def make_methods(shared: Any, with_nuisances: Any, ours: Any) -> dict[str, Neural]:
    """Create the baselines, and ours with its training schemes."""
    return {
        "CNN": CNNClassifier(**shared), "beta-VAE": VAEClassifier(**shared), "VFAE": VFAE(**with_nuisances),
        "CAI": CAI(**with_nuisances), "CVIB": CVIB(**with_nuisances), "UAI": UAI(**shared), OURS: SwapContrast(**ours),
        f"{OURS}, joint": SwapContrast(**ours, scheme="joint"),
        f"{OURS}, cross-entropy": SwapContrast(**ours, scheme="ce"),
        PRINTED: SwapContrast(**ours | {"scheme": "joint", "prediction": 1.0, "refit_classifier": False}),
    }  # fmt: skip


def vary_settings(every: dict[str, Neural], searched: Mapping[str, Any]) -> dict[str, Neural]:
    """Return a copy of each method for each setting that --tune compares."""
    return {
        f"{name}: {', '.join(f'{key} {value:g}' for key, value in setting.items())}": clone(every[name]).set_params(
            **setting
        )
        for name, settings in searched.items()
        for setting in settings
    }


def score_run(folder: Path, options: Options) -> list[dict[str, float]]:
    """Compute accuracies and the probe of a run: over all of the test set, and at each of its angles."""
    method = load(folder)
    c, factors, z = encode_test_set(folder, method, options)
    names = [f.name for f in factors]
    label = names.index(LABEL.get(options.data, names[0]))
    nuisances = [j for j, f in enumerate(factors) if j != label and not f.noise]
    predicted, y = predict_from_codes(method, z), c[:, label]
    # All nuisances of 3DShapes and MPI3D make more groups than there are observations: there, only the new one.
    group = c[:, nuisances if "mnist" in options.data else [names.index(NEW_FACTOR[options.data])]]
    angle = c[:, names.index("angle")].astype(int) if "angle" in names else np.zeros(len(y), int)
    sample = np.random.default_rng(0).permutation(len(y))[:MAX_PROBE_IMAGES]
    probe = nuisance_probe(c[sample][:, nuisances], method.select_predictive(torch.from_numpy(z)).numpy()[sample])
    overall = {"probe": probe.accuracy, "chance": probe.chance, "explained": explained_variance(method, options)}
    scores = []
    for at in [-1, *(np.unique(angle) if "angle" in names else ())]:
        rows = (angle == at) | (at < 0)
        each = {
            "angle": np.nan if at < 0 else float(factors[names.index("angle")].values[at]),
            "average": average_accuracy(y[rows], predicted[rows]),
            "worst": worst_group_accuracy(y[rows], predicted[rows], group[rows]),
            "worst of class": worst_group_accuracy(y[rows], predicted[rows], np.c_[y, group][rows]),
        }
        scores.append(each | (overall if at < 0 else {}))
    return scores


def encode_test_set(folder: Path, method: Any, options: Options) -> tuple[np.ndarray, tuple[Factor, ...], np.ndarray]:
    """Return factors and codes of the test set; digits in every color, or all digits in random ones."""
    if "mnist" not in options.data:
        done = read_run(folder)
        return done.truth, done.factors, done.codes
    data = replace(make_data(options), part="test").load()
    assert isinstance(data, Painted)
    step = max(1, len(data.gray) * prod(map(len, data.allowed)) // MAX_TEST_IMAGES)
    points = torch.cartesian_prod(torch.arange(0, len(data.gray), step), *data.allowed)
    points = all_test_points(data) if options.converged else points
    z = [method.transform(data.render(part)) for part in split_rows(points, 10_000)]
    return data.labels(points).numpy(), data.factors, np.concatenate(z)


def explained_variance(method: Any, options: Options) -> float:
    """Compute the share of the variance of training images in reconstructions; NaN without a decoder."""
    if not isinstance(method, SwapContrast | VAEClassifier):
        return np.nan
    x = make_data(options).load().draw(1_000, torch.Generator().manual_seed(0)).x
    reconstructed = method.inverse_transform(method.transform(x))
    return float(r2_score(x.flatten(1), reconstructed.reshape(len(x), -1), multioutput="variance_weighted"))


def predict_from_codes(method: Any, codes: np.ndarray) -> np.ndarray:
    """Return the predicted level of the label, (n,)."""
    with torch.no_grad():
        logits = method.net_.classifier(method.select_predictive(torch.from_numpy(codes).float()))
    return np.asarray(method.levels_)[logits.argmax(1).numpy()].astype(float)


def folders(options: Options) -> Folders:
    """Return where everything goes; other settings than the usual ones have folders of their own."""
    parts = {"distant": options.distant, "tuning": options.tune, "tuned": options.tuned, "ablation": options.ablate}
    parts |= {"converged": options.converged}
    parts |= {f"batch-{options.batch}": options.batch != 64, "small": options.scale == "small"}
    parts |= {f"{options.steps}-steps": options.steps not in (0, usual_steps(options))}
    return Folders(options.out, folder_name(options.data, parts))


def tables(options: Options) -> list[TextTable]:
    """Return the stored table, the paper's numbers in brackets."""
    path = folders(options).scores
    if not path.is_file():
        return []
    place, data = folders(options), replace(make_data(options), part="test")
    title = f"{place.name} ({data.title()}); {options.steps or usual_steps(options):,} steps"
    return make_tables(pd.read_csv(path), options.data, f"{title}; mean and 95 % interval")


def findings(options: Options, part: str) -> Findings:
    """Return the numbers of Tables 1, 2 and 5, and who is best in the worst group."""
    path = folders(options).scores
    if not path.is_file():
        return Findings(missing=(options.data,))
    rows = pd.read_csv(path)
    effort = describe_effort(rows, ["method"], options.steps or usual_steps(options))
    if not part.startswith("table-"):
        return Findings(effort=effort)
    return judge_table(rows, options.data, part, ", tuned" if options.tuned else "")._replace(effort=effort)


def main(options: Options, output: Output = SILENT) -> None:
    """Run what is missing, and report the table."""
    place = folders(options)
    place.create()
    runs = list_runs(options)
    execute(runs.values(), place.runs, metrics=[], notify=output.progress, callback=output.training)
    done = {head: place.runs / run.key for head, run in runs.items() if (place.runs / run.key).is_dir()}
    if not done:  # warnings have named the runs that failed
        raise no_finished_runs(place.runs, runs.values())
    output.progress(f"scoring {len(done)} runs")
    scores = Parallel(n_jobs=-1)(delayed(score_run)(folder, options) for folder in done.values())
    rows = [dict(zip(KEYS, head, strict=True)) | each for head, part in zip(done, scores, strict=True) for each in part]
    merge_rows(pd.DataFrame(rows), place.scores, KEYS)
    save_curves(done, KEYS, place)
    for table in tables(options):
        output.table(table)
    output.text(f"Scores are in {place.results}.")
