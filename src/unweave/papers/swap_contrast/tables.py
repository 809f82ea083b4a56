"""Swap and contrast (2022), Tables 1, 2 and 5: classifiers on nuisances that were not in the training set.

unweave paper run swap-contrast/table-1 --data colored-mnist        # for a GPU; needs the files of MNIST
unweave paper run swap-contrast/table-2
unweave paper run swap-contrast/distant-colors                      # colors far from those of training
unweave paper run swap-contrast/batch-128                           # as many images a step as our pairs have
unweave paper run swap-contrast/tuning                              # compare settings of every method on other seeds
unweave paper run swap-contrast/ablation                            # each loss of ours left out in turn
unweave paper run swap-contrast/table-1 --scale small --only swap CNN    # minutes on two cores
unweave paper run swap-contrast/table-2 --converged --seeds 5       # the protocol that can be compared with the paper
unweave paper run swap-contrast/table-2 --converged --seeds 5 --palette alternating-100-45    # other colors

Accuracy on average, and in the worst group: one combination of nuisances. The paper does not define its groups; the
table also has the worst combination of class and nuisances. The probe is a new classifier that predicts the nuisances
from the codes that a method predicts from; chance is the share of the most frequent value. "explained" is the share of
the images' variance in reconstructions; near 0, the decoder has collapsed. Finished runs are not repeated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from sklearn.base import clone
from sklearn.utils.parallel import Parallel, delayed

from unweave.datasets import Unseen
from unweave.datasets.colored import BACKGROUNDS
from unweave.experiments.failures import no_finished_runs
from unweave.experiments.run import Run
from unweave.experiments.study import execute, packs
from unweave.methods import CAI, CVIB, UAI, VFAE, CNNClassifier, SwapContrast, VAEClassifier
from unweave.methods.neural import Neural
from unweave.papers.curves import save_curves
from unweave.papers.folders import Folders
from unweave.papers.output import SILENT, Output, TextTable
from unweave.papers.swap_contrast.claims import judge_table, make_tables
from unweave.papers.swap_contrast.palettes import chosen_palette
from unweave.papers.swap_contrast.scoring import LABEL, Scoring, score_run
from unweave.papers.swap_contrast.selection import Setting, describe_selection, row_name, select_setting
from unweave.papers.swap_contrast.settings import (
    ABLATIONS,
    CNN_IMPROVED,
    CONVERGED,
    CONVERGED_OURS,
    CONVERGED_STEPS,
    CONVERGED_TUNING_STEPS,
    IMPROVED,
    OURS,
    PRINTED,
    REFITTED,
    SEARCHED,
    SEARCHED_CONVERGED,
    TUNED,
)
from unweave.papers.verdicts import Findings, describe_effort, folder_name, merge_rows, select_methods
from unweave.utils.errors import InputError, plural

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
    that falls along a cosine, clockwise angles, all test digits. --tune then leaves out nuisances of training, another
    background for each of three seeds, takes 10,000 steps, and its stored results decide the settings."""
    palette: str = ""
    """Colors of --converged; by default those that the CNN has chosen. Others have their own folders and settings."""


def usual_steps(options: Options) -> int:
    """Return the steps of the stored tables."""
    if options.converged and options.scale == "full":
        return CONVERGED_TUNING_STEPS if options.tune else CONVERGED_STEPS["mnist" if "mnist" in options.data else ""]
    return 600 if options.scale == "small" else 6_000 if "mnist" in options.data and not options.tune else 4_000


def make_data(options: Options, hues: int = 1, seed: int = 0) -> Unseen:
    """Return the recipe of the training set, of digits augmented by some rotations of the hue.

    To choose settings, seeds leave out one background of the training set after the other.
    """
    if options.converged and "mnist" in options.data:
        rotated = options.data == "rotation-colored-mnist"
        place: Any = {"palette": options.palette or chosen_palette(), "clockwise": rotated}
        place |= {"validation": True, "left_out": seed % len(BACKGROUNDS["train"])} if options.tune else {}
        return Unseen(of=options.data, hues=hues, **place)
    return Unseen(of=options.data, distant=options.distant)


def settings(options: Options) -> dict[str, Setting]:
    """Return the settings beyond the common ones by row of the table: all that --tune compares, else the chosen one."""
    digits = "mnist" in options.data
    if options.tune:
        searched = SEARCHED_CONVERGED if options.converged else SEARCHED
        every = ((name, setting) for name, many in searched.items() for setting in many)
        return {row_name(name, s): s for name, s in every if digits or "hues" not in s}
    if options.tuned:
        return TUNED[""] | TUNED.get(options.data, {})
    if not options.converged:
        return {}
    chosen = {name: select_setting(name, options.palette) for name in SEARCHED_CONVERGED if digits or name != IMPROVED}
    return chosen | ({CNN_IMPROVED: chosen[IMPROVED]} if digits else {})


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
    chosen = settings(options)
    ours |= (CONVERGED_OURS | chosen.get(OURS, {})) if options.converged else {}
    if options.ablate:
        changed: dict[str, Neural] = {f"{OURS}: {name}": SwapContrast(**ours | c) for name, c in ABLATIONS.items()}
        return select_methods(changed, options.only)
    every = make_methods(shared, with_nuisances, ours)
    if options.converged:  # Table 5 in the paper's words; the refitted classifier is a row of its own
        del every[PRINTED]
        every |= {IMPROVED: SwapContrast(**ours), CNN_IMPROVED: CNNClassifier(**shared)} if digits else {}
    if options.tune or options.tuned:  # only the methods that have settings
        every = {name: clone(every[name.partition(":")[0]]) for name in chosen}
    every = {name: apply_setting(method, chosen.get(name, {})) for name, method in every.items()}
    return select_methods(every, options.only)


def apply_setting(method: Neural, setting: Setting) -> Neural:
    """Set the parameters of a method; hues belong to its data, and are a nuisance that is known."""
    own = {name: value for name, value in setting.items() if name != "hues"}
    if setting.get("hues", 1) > 1 and isinstance(method, SwapContrast):
        own["nuisances"] = (*method.nuisances, "hue")
    return method.set_params(**own)


def list_runs(options: Options) -> dict[tuple[str, int], Run]:
    """Return every run by method and seed; settings are compared on other seeds than those of the tables."""
    chosen, first = settings(options), TUNING_SEED if options.tune else 0
    return {
        (name, seed): Run(make_data(options, chosen.get(name, {}).get("hues", 1), seed), method)
        for seed in range(first, first + options.seeds)
        for name, method in methods(options, seed).items()
    }


def make_methods(shared: Any, with_nuisances: Any, ours: Any) -> dict[str, Neural]:
    """Create the baselines, and ours with its training schemes."""
    return {
        "CNN": CNNClassifier(**shared), "beta-VAE": VAEClassifier(**shared), "VFAE": VFAE(**with_nuisances),
        "CAI": CAI(**with_nuisances), "CVIB": CVIB(**with_nuisances), "UAI": UAI(**shared), OURS: SwapContrast(**ours),
        f"{OURS}, joint": SwapContrast(**ours, scheme="joint"),
        f"{OURS}, cross-entropy": SwapContrast(**ours, scheme="ce"),
        PRINTED: SwapContrast(**ours | {"scheme": "joint", "prediction": 1.0, "refit_classifier": False}),
    }  # fmt: skip


def folders(options: Options) -> Folders:
    """Return where everything goes; other settings than the usual ones have folders of their own."""
    parts = {"distant": options.distant, "tuning": options.tune, "tuned": options.tuned, "ablation": options.ablate}
    parts |= {"converged": options.converged, options.palette: options.palette != ""}
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
    if not part.startswith("table-") and not options.palette:
        return Findings(effort=effort)
    note = describe_selection([*rows["method"].unique()], options.palette) if options.converged else ""
    conclusions = judge_table(rows, options.data, part, ", tuned" if options.tuned else "")
    return conclusions._replace(effort=effort, notes=(note,) if note else ())


def main(options: Options, output: Output = SILENT) -> None:
    """Run what is missing, and report the table; the scores of a pack are stored as soon as it is trained."""
    place = folders(options)
    place.create()
    runs, finished = list_runs(options), 0
    for pack in packs(runs.values()):
        execute(pack, place.runs, metrics=[], notify=output.progress, callback=output.training)
        done = {head: run for head, run in runs.items() if run in pack and (place.runs / run.key).is_dir()}
        if done:  # else warnings have named the runs that failed
            output.progress(
                f"scoring {plural(len(done), 'run')} of {', '.join(dict.fromkeys(name for name, _ in done))}"
            )
            store_scores(done, place, options)
            finished += len(done)
    if not finished:
        raise no_finished_runs(place.runs, runs.values())
    for table in tables(options):
        output.table(table)
    output.text(f"Scores are in {place.results}.")


def store_scores(done: Mapping[tuple[str, int], Run], place: Folders, options: Options) -> None:
    """Score finished runs, and add them to the table; ours also with its classifier refitted."""
    every = {head: (run, False) for head, run in done.items()}
    if options.converged and not options.tune:
        every |= {(REFITTED, seed): (run, True) for (name, seed), run in done.items() if name == OURS}
    jobs = [
        (place.runs / run.key, Scoring(run.data, options.converged, not options.tune, refit))
        for run, refit in every.values()
        if isinstance(run.data, Unseen)
    ]
    scores = Parallel(n_jobs=-1)(delayed(score_run)(folder, scoring) for folder, scoring in jobs)
    rows = [
        dict(zip(KEYS, head, strict=True)) | each for head, part in zip(every, scores, strict=True) for each in part
    ]
    merge_rows(pd.DataFrame(rows), place.scores, KEYS)
    save_curves({head: place.runs / run.key for head, run in done.items()}, KEYS, place)
