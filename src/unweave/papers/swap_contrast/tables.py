"""Swap and contrast (2022), Tables 1, 2 and 5: classifiers on nuisances that they have never seen.

python -m unweave.papers.swap_contrast.tables --data colored-mnist  # Tables 1 and 5; for a GPU; wants MNIST's files
python -m unweave.papers.swap_contrast.tables --data rotation-colored-mnist   # Tables 2 and 5
python -m unweave.papers.swap_contrast.tables --data shapes3d                 # Table 1
python -m unweave.papers.swap_contrast.tables --data shapes3d --apart  # colors far from those of training
python -m unweave.papers.swap_contrast.tables --data mpi3d                    # Table 1, where the file is found
python -m unweave.papers.swap_contrast.tables --data colored-mnist --batch 128 --only CNN  # as many images as our pairs
python -m unweave.papers.swap_contrast.tables --data colored-mnist --tune  # tune every method on other seeds
python -m unweave.papers.swap_contrast.tables --data colored-mnist --best  # with the tuned hyperparameters
python -m unweave.papers.swap_contrast.tables --data colored-mnist --ablate   # each loss of ours left out in turn
python -m unweave.papers.swap_contrast.tables --data colored-mnist --scale small --only swap CNN  # minutes on two cores

Accuracy on average, and in the worst group: one combination of nuisances. The paper does not say what its groups are;
the worst combination of class and nuisances is shown too. The probe is a fresh classifier of the nuisances from what
each method predicts from, with the share of the commonest value as chance. Explained is the share of the variance of
images that reconstructions have: near 0, a decoder does nothing, and losses through it neither. The paper's numbers
stand beside ours. Runs are kept under OUT/runs.
"""

from __future__ import annotations

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
from unweave.cli.terminal import launch, print_table, print_text, progress
from unweave.data.core import Factor, split_rows
from unweave.datasets import Unseen
from unweave.datasets.colored import Painted
from unweave.experiments.failures import no_finished_runs
from unweave.experiments.run import Run, read_run
from unweave.experiments.study import execute
from unweave.methods import CAI, CVIB, UAI, VFAE, CNNClassifier, SwapContrast, VAEClassifier
from unweave.methods.neural import Neural
from unweave.metrics import average_accuracy, nuisance_probe, worst_group_accuracy
from unweave.metrics.uncertainty import plus_minus
from unweave.papers.verdicts import Claim, Findings, Number, ahead, contestants, kept
from unweave.utils.errors import InputError

LABEL = {"shapes3d": "shape", "mpi3d": "shape"}  # of digits it is the first factor
NEW = {"colored-mnist": "background", "rotation-colored-mnist": "angle", "shapes3d": "object", "mpi3d": "color"}
OURS = "swap and contrast"
PRINTED = f"{OURS}, as printed"  # Eq. 10, all of it at once
SCHEMES = 4  # of ours: this one, joint, cross-entropy, and apart
PAINTED = 90_000  # images that digits are tested on
PROBED = 20_000  # of them, or of others, that the probe has: half to learn from
# Average and worst accuracy.
PAPER: dict[str, dict[str, tuple[float, float]]] = {
    "colored-mnist": {
        "CNN": (0.9512, 0.6617), "beta-VAE": (0.9265, 0.5879), "VFAE": (0.9312, 0.6554), "CAI": (0.9356, 0.6317),
        "CVIB": (0.9331, 0.7012), "UAI": (0.9474, 0.7425), OURS: (0.9796, 0.9043),
        f"{OURS}, joint": (0.935, 0.732), f"{OURS}, cross-entropy": (0.932, 0.680),
    },
    "shapes3d": {
        "CNN": (0.9887, 0.9689), "beta-VAE": (0.9866, 0.9577), "VFAE": (0.9772, 0.9334), "CAI": (0.9762, 0.9432),
        "CVIB": (0.9711, 0.9446), "UAI": (0.9713, 0.9521), OURS: (0.9852, 0.9763),
    },
    "mpi3d": {
        "CNN": (0.9012, 0.8789), "beta-VAE": (0.8698, 0.8489), "VFAE": (0.8669, 0.8243), "CAI": (0.8663, 0.8216),
        "CVIB": (0.8704, 0.8561), "UAI": (0.8789, 0.8301), OURS: (0.9132, 0.8917),
    },
}  # fmt: skip
# Table 2: the same at each angle.
TURNED: dict[str, dict[float, tuple[float, float]]] = {
    "CNN": {-75: (0.770, 0.623), -65: (0.897, 0.775), 65: (0.858, 0.658), 75: (0.683, 0.499)},
    "beta-VAE": {-75: (0.771, 0.612), -65: (0.852, 0.750), 65: (0.834, 0.630), 75: (0.687, 0.472)},
    "VFAE": {-75: (0.722, 0.589), -65: (0.858, 0.744), 65: (0.841, 0.646), 75: (0.717, 0.480)},
    "CAI": {-75: (0.749, 0.593), -65: (0.865, 0.773), 65: (0.842, 0.678), 75: (0.647, 0.429)},
    "CVIB": {-75: (0.761, 0.592), -65: (0.886, 0.791), 65: (0.856, 0.688), 75: (0.722, 0.534)},
    "UAI": {-75: (0.780, 0.611), -65: (0.888, 0.800), 65: (0.854, 0.682), 75: (0.702, 0.511)},
    OURS: {-75: (0.810, 0.753), -65: (0.908, 0.857), 65: (0.873, 0.823), 75: (0.732, 0.633)},
    f"{OURS}, joint": {65: (0.842, 0.678)},
    f"{OURS}, cross-entropy": {65: (0.821, 0.653)},
}
# Strengths that --tune goes through: at the common learning rate, and some of the better ones at a higher, six of ours
# and one of each other method.
STRENGTHS: dict[str, list[dict[str, float]]] = {
    "CNN": [{"lr": lr} for lr in (1e-4, 5e-4, 2e-3)],
    "beta-VAE": [
        *({"generative": g, "beta": b} for g in (0.001, 0.01, 0.1) for b in (1.0, 4.0)),
        {"generative": 0.001, "beta": 4.0, "lr": 2e-3},
    ],
    "VFAE": [
        *({"generative": g, "mmd": m} for g in (0.01, 0.1) for m in (1.0, 10.0, 100.0)),
        {"generative": 0.01, "mmd": 100.0, "lr": 2e-3},
    ],
    "CAI": [*({"strength": s} for s in (0.01, 0.03, 0.1, 0.3)), {"strength": 0.01, "lr": 2e-3}],
    "CVIB": [
        *({"beta": b, "strength": s} for b in (1e-3, 1e-2) for s in (0.01, 0.1, 1.0)),
        {"beta": 1e-3, "strength": 0.01, "lr": 2e-3},
    ],
    "UAI": [
        *({"beta": b, "gamma": g} for b in (0.1, 1.0) for g in (0.1, 1.0, 3.0)),
        {"beta": 0.1, "gamma": 3.0, "lr": 2e-3},
    ],
    OURS: [
        *({"beta": b, "alpha": a, "gamma": a} for b in (300.0, 1e3, 3e3) for a in (1.0, 3.0, 10.0)),
        *({"beta": b, "generative": 4.0} for b in (300.0, 1e3)), {"beta": 1e3, "temperature": 0.5},
        *({"beta": b, "alpha": a, "gamma": a, "lr": 2e-3} for b in (300.0, 3e3) for a in (1.0, 3.0, 10.0)),
    ],
}  # fmt: skip
# What --tune found best in the worst group, for --best: the same for all images where it was, else by their name.
BEST: dict[str, dict[str, dict[str, float]]] = {
    "": {
        "CNN": {"lr": 2e-3}, "beta-VAE": {"generative": 0.001, "beta": 4.0},
        "VFAE": {"generative": 0.01, "mmd": 100.0, "lr": 2e-3}, "CAI": {"strength": 0.01, "lr": 2e-3},
        "CVIB": {"beta": 1e-3, "strength": 0.01, "lr": 2e-3}, "UAI": {"beta": 0.1, "gamma": 3.0, "lr": 2e-3},
        OURS: {"beta": 300.0, "alpha": 10.0, "gamma": 10.0},  # 3e3, 3, 3 had 0.002 more, and a decoder that is dead
    },
    "rotation-colored-mnist": {
        "beta-VAE": {"generative": 0.001, "beta": 4.0, "lr": 2e-3},
        OURS: {"beta": 3e3, "alpha": 1.0, "gamma": 1.0, "lr": 2e-3},
    },
}  # fmt: skip

LEFT_OUT: dict[str, dict[str, float]] = {
    "all losses": {}, "without L_dis": {"alpha": 0.0}, "without L_zp": {"gamma": 0.0}, "without L_sup": {"beta": 0.0},
    "without the KL term": {"generative": 0.0},
}  # fmt: skip


@dataclass(kw_only=True)
class Options:
    """Tables 1, 2 and 5 of swap and contrast."""

    data: Literal["colored-mnist", "rotation-colored-mnist", "shapes3d", "mpi3d"] = "colored-mnist"
    """which images"""
    scale: Literal["small", "full"] = "full"
    """full: the networks of the other studies; small: narrow ones, and few steps"""
    out: Path = Path("papers/swap_contrast/results")
    """where a folder for the data goes"""
    seeds: int = 3
    """repetitions"""
    steps: int = 0
    """gradient steps; 0: 6,000 for digits, 4,000 for others and for --tune, or 600 at small scale"""
    batch: int = 64
    """observations a step; ours takes a pair for each, and so sees twice as many"""
    only: tuple[str, ...] = ()
    """methods of these names, or whose names contain one of these"""
    tune: bool = False
    """every method with several strengths, on other seeds than the tables have"""
    apart: bool = False
    """3DShapes and MPI3D: the colors for the test lie side by side, instead of between those learned from"""
    best: bool = False
    """every method with the strengths and the learning rate that --tune found best, instead of its defaults"""
    ablate: bool = False
    """ours with each of its losses left out in turn, and nothing else"""


def usual_steps(options: Options) -> int:
    """Those of the stored tables."""
    return 600 if options.scale == "small" else 6_000 if "mnist" in options.data and not options.tune else 4_000


def methods(options: Options, seed: int) -> dict[str, Neural]:
    """The contestants by their names in the tables."""
    if options.tune + options.best + options.ablate > 1:
        raise InputError("--tune looks for settings, --best takes those found, --ablate leaves losses out: say one")
    small, digits = options.scale == "small", "mnist" in options.data
    shared: Any = {"seed": seed, "steps": options.steps or usual_steps(options), "batch_size": options.batch}
    shared |= {"label": LABEL.get(options.data, "")}
    if small or digits:
        shared["widths"] = ((16, 32, 32) if digits else (8, 8, 16, 16)) if small else (32, 64, 128)
    told: Any = shared | {"known": ("color", "background") if digits else ()}  # no one knows of angles
    # What it is weighed against is a sum over pixels, of which images of 64 x 64 have five times as many as digits.
    ours: Any = told | ({} if digits else {"beta": 1_500.0, "prediction": 1_500.0})
    found: dict[str, Neural] = {
        "CNN": CNNClassifier(**shared), "beta-VAE": VAEClassifier(**shared), "VFAE": VFAE(**told),
        "CAI": CAI(**told), "CVIB": CVIB(**told), "UAI": UAI(**shared), OURS: SwapContrast(**ours),
        f"{OURS}, joint": SwapContrast(**ours, scheme="joint"),
        f"{OURS}, cross-entropy": SwapContrast(**ours, scheme="ce"),
        PRINTED: SwapContrast(**ours | {"scheme": "joint", "prediction": 1.0, "settle": False}),
    }  # fmt: skip
    if options.tune:
        found = {
            f"{name}: {', '.join(f'{k} {v:g}' for k, v in each.items())}": clone(found[name]).set_params(**each)
            for name, several in STRENGTHS.items()
            for each in several
        }
    if options.ablate:
        found = {f"{OURS}: {name}": SwapContrast(**ours | change) for name, change in LEFT_OUT.items()}
    if options.best:
        if not digits:
            raise InputError("--best has settings that were found on digits, and none for these images: leave it out")
        best = BEST[""] | BEST.get(options.data, {})
        found = {name: m.set_params(**best[name]) for name, m in found.items() if name in best}
    return contestants(found, options.only)


def scores(folder: Path, options: Options) -> list[dict[str, float]]:
    """Accuracies and the probe of one run: over all of the test set, and at each of its angles."""
    method = load(folder)
    c, factors, z = tested(folder, method, options)
    names = [f.name for f in factors]
    label = names.index(LABEL.get(options.data, names[0]))
    others = [j for j, f in enumerate(factors) if j != label and not f.noise]
    guess, y = guessed(method, z), c[:, label]
    # All nuisances of 3DShapes and MPI3D make more groups than there are observations: there, the new one alone.
    group = c[:, others if "mnist" in options.data else [names.index(NEW[options.data])]]
    angle = c[:, names.index("angle")].astype(int) if "angle" in names else np.zeros(len(y), int)
    some = np.random.default_rng(0).permutation(len(y))[:PROBED]
    probe = nuisance_probe(c[some][:, others], method.predictive(torch.from_numpy(z)).numpy()[some])
    more = {"probe": probe.accuracy, "chance": probe.chance, "explained": shown(method, options)}
    found = []
    for at in [-1, *(np.unique(angle) if "angle" in names else ())]:
        rows = (angle == at) | (at < 0)
        each = {
            "angle": np.nan if at < 0 else float(factors[names.index("angle")].values[at]),
            "average": average_accuracy(y[rows], guess[rows]),
            "worst": worst_group_accuracy(y[rows], guess[rows], group[rows]),
            "worst of class": worst_group_accuracy(y[rows], guess[rows], np.c_[y, group][rows]),
        }
        found.append(each | (more if at < 0 else {}))
    return found


def tested(folder: Path, method: Any, options: Options) -> tuple[np.ndarray, tuple[Factor, ...], np.ndarray]:
    """Factors and codes of the test set: of digits, the same ones in every painting, so that all groups are large."""
    if "mnist" not in options.data:
        done = read_run(folder)
        return done.truth, done.factors, done.codes
    data = Unseen(of=options.data, part="test").load()
    assert isinstance(data, Painted)
    digits = torch.arange(0, len(data.gray), max(1, len(data.gray) * prod(map(len, data.allowed)) // PAINTED))
    points = torch.cartesian_prod(digits, *data.allowed)
    z = [method.transform(data.render(part)) for part in split_rows(points, 10_000)]
    return data.labels(points).numpy(), data.factors, np.concatenate(z)


def shown(method: Any, options: Options) -> float:
    """The share of the variance of training images that reconstructions have, where there are any."""
    if not isinstance(method, SwapContrast | VAEClassifier):
        return np.nan
    x = Unseen(of=options.data, apart=options.apart).load().draw(1_000, torch.Generator().manual_seed(0)).x
    seen = method.inverse_transform(method.transform(x))
    return float(r2_score(x.flatten(1), seen.reshape(len(x), -1), multioutput="variance_weighted"))


def guessed(method: Any, codes: np.ndarray) -> np.ndarray:
    """The level of the label that is predicted from codes, (n,)."""
    with torch.no_grad():
        logits = method.net_.classifier(method.predictive(torch.from_numpy(codes).float()))
    return np.asarray(method.levels_)[logits.argmax(1).numpy()].astype(float)


def lines_of(rows: pd.DataFrame, options: Options) -> list[list[str]]:
    """Method, angle, ours with intervals and the paper's."""
    lines = []
    for head, group in rows.groupby(["method", "angle"], sort=False, dropna=False):
        name, angle = str(head[0]), float(str(head[1]))
        paper = PAPER.get(options.data, {}).get(name) if np.isnan(angle) else TURNED.get(name, {}).get(angle)
        cells = [
            f"{plus_minus(group[column])}" + (f" ({paper[i]:.3f})" if paper else "")
            for i, column in enumerate(("average", "worst"))
        ]
        probe = f"{group['probe'].mean():.3f} ({group['chance'].mean():.3f})" if np.isnan(angle) else ""
        turn = "all" if np.isnan(angle) else f"{angle:+g}"
        decoded = group["explained"].mean()  # of methods without a decoder, and at one angle, there is none
        cells += [plus_minus(group["worst of class"]), probe, "" if np.isnan(decoded) else f"{decoded:.2f}"]
        lines.append([name, turn, f"{len(group)}", *cells])
    return lines


def place(options: Options) -> Path:
    """Where everything goes."""
    asked = {"apart": options.apart, "tuned": options.tune, "best": options.best, "ablation": options.ablate}
    asked |= {f"batch-{options.batch}": options.batch != 64, "small": options.scale == "small"}
    asked |= {f"{options.steps}-steps": options.steps not in (0, usual_steps(options))}
    return options.out / "-".join([options.data, *(name for name, expected in asked.items() if expected)])


def leads(worst: pd.DataFrame, one: str, other: str, text: str, *, own: bool, tried: int = 1) -> tuple[Claim, ...]:
    """The claim that one method is ahead of another, on the seeds that both have; none where one was not run."""
    if not {one, other} <= set(worst):
        return ()
    both = worst[[one, other]].dropna()
    scored = {str(column): both[column].tolist() for column in both}
    return tuple(claim._replace(own=own) for claim in ahead(text, scored, one, [other], tried=tried))


def findings(options: Options, part: str) -> Findings:
    """The numbers of Tables 1, 2 and 5, and who is best in the worst group."""
    path = place(options) / "scores.csv"
    if not path.is_file():
        return Findings(missing=(options.data,))
    rows, scheme = pd.read_csv(path), part == "table-5"
    schemes = rows["method"].str.startswith(f"{OURS}, ")
    rows = rows[schemes | (rows["method"] == OURS)] if scheme else rows[~schemes | (rows["method"] == PRINTED)]
    turned = "angle" in NEW[options.data]
    rows = rows[rows["angle"].isin([65.0] if scheme else [-75.0, -65.0, 65.0, 75.0])] if turned else rows
    expected = TURNED if turned else PAPER[options.data]
    numbers: list[Number] = []
    claims: tuple[Claim, ...] = ()
    for angle, at in rows.fillna({"angle": 0.0}).groupby("angle", sort=False):
        told = f" at {angle:+g} degrees" if turned else f" on {options.data}"
        told += ", tuned" * options.best
        for name, group in at.groupby("method", sort=False):
            paper = TURNED.get(str(name), {}).get(float(str(angle))) if turned else PAPER[options.data].get(str(name))
            for theirs, column in zip(paper or (), ("average", "worst"), strict=False):
                numbers.append(Number(f"{name}{told}, {column}", group[column].tolist(), theirs))
        worst = at.pivot(index="seed", columns="method", values="worst")
        where = f"in the worst group{told}"
        rivals = [str(name) for name in worst if name != OURS and (scheme or name != PRINTED)]
        for name in rivals:
            claims += leads(worst, OURS, name, f"ours is ahead of {name} {where}", own=name not in expected)
        if not scheme:
            picked = f"Eq. 10 as printed, picked of {SCHEMES} schemes by these runs, is ahead of CNN {where}"
            claims += leads(worst, PRINTED, "CNN", picked, own=True, tried=SCHEMES)
    asked = [name for name in expected if name.startswith(OURS) or not scheme]
    asked = [name for name in asked if scheme or ", " not in name]
    missing = [
        f"{name} on {options.data}{', tuned' * options.best}" for name in asked if name not in set(rows["method"])
    ]
    return Findings(tuple(numbers), tuple(claims), missing=tuple(missing))


def main(options: Options) -> None:
    """Run what is missing, print the table."""
    out = place(options)
    out.mkdir(parents=True, exist_ok=True)
    data = Unseen(of=options.data, apart=options.apart)
    seeds = range(100 * options.tune, 100 * options.tune + options.seeds)
    runs = [(name, seed, Run(data, m)) for seed in seeds for name, m in methods(options, seed).items()]
    with progress() as notify:
        execute([run for *_, run in runs], out / "runs", metrics=[], notify=notify)
        done = [(name, seed, out / "runs" / run.key) for name, seed, run in runs if (out / "runs" / run.key).is_dir()]
        if not done:
            raise no_finished_runs(out / "runs", [run for *_, run in runs])
        notify(f"scoring {len(done)} runs")
        found = Parallel(n_jobs=-1)(delayed(scores)(folder, options) for *_, folder in done)
    rows = pd.DataFrame(
        [{"method": n, "seed": s} | each for (n, s, _), part in zip(done, found, strict=True) for each in part]
    )
    rows = kept(rows, out / "scores.csv", ["method", "seed"])
    head = ["method", "angle", "runs", "average (paper)", "worst group (paper)", "worst with class"]
    head += ["probe (chance)", "explained"]
    steps = next(iter(methods(options, 0).values())).steps
    print_table(head, lines_of(rows, options), f"{replace(data, part='test').title()}; {steps:,} steps")
    print_text(f"scores.csv is in {out}.")


if __name__ == "__main__":
    launch(main, Options)
