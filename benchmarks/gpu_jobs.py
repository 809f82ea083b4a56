"""Jobs of the queue on a GPU: the papers' tables as commands, each of which trains few packs; estimates of their time.

python -m benchmarks.gpu_jobs                          # every job with its commands and its estimate in minutes
python -m benchmarks.gpu_jobs --plan 3                 # what three leases of a machine can take, by value

A command is the name of a script below `unweave.papers` and its flags. Different data make different packs, so most
commands have one training set. Commands of a job run side by side: while one trains, others compile or score.

The plan is for leases of 30 minutes, of which 26 are left for jobs: the start of the machine, the data, and the copy of
the results take the rest. All leases have the same line, whose order is by value, and the results of the one before:

    python -m benchmarks.gpu_queue ORDER --limit 1560 --wait 500 --collect OUT --resume results.tar.gz \
        --cache cache.tar.gz

1. Colors, settings on nuisances that are left out, ours and a CNN on digits: the claim of swap and contrast.
2. The other baselines on digits, and translators of L_diff at equal compute. A winner becomes the default.
3. Colored digits by ours and FactorVAE at convergence, and FactorVAE on dSprites: the claim of intervention.

A fresh machine compiles everything again, about a minute for each class, unless the cache of the lease before comes
along. It is valid for the same versions and the same kind of device.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any
from unittest import mock

import numpy as np
import tyro

from unweave.cli.terminal import print_text
from unweave.datasets import Flowers102
from unweave.datasets.colored import DEFAULT_PALETTE
from unweave.experiments.run import Run
from unweave.experiments.study import packs
from unweave.papers.intervention.translators import STABILITY, TRANSLATORS
from unweave.papers.swap_contrast.palettes import chosen_palette
from unweave.utils.errors import InputError

# Model-steps per second of ten lanes: benchmarks/results/profile.md. Those in the second line were not measured.
RATES = {
    "CNNClassifier": 13_700, "SwapContrast": 4_000, "FactorVAE": 4_770, "AdaGVAE": 3_880, "AdaMLVAE": 3_880,
    "InterventionAutoencoder": 1_190, "InfoGANCR": 1_860, "BetaVAE": 9_970,
    "VAEClassifier": 5_000, "VFAE": 4_000, "CAI": 6_000, "CVIB": 6_000, "UAI": 4_000, "AnnealedVAE": 9_000,
    "DIPVAE": 9_000, "BetaTCVAE": 8_000,
}  # fmt: skip
DIFF_RATES = {"ridge": 1_650, "off": 2_200, "random-features": 1_500, "persistent": 1_350}  # measured: the first one
WIDE_RATE = 110  # of two models with the networks for flowers; not measured
LANES, SHARES = (1, 3, 10, 32), (0.32, 0.62, 1.0, 1.3)  # of the rate of ten lanes, for beta-VAEs
COLOR_SHARE = {"SwapContrast": 0.4, "CNNClassifier": 0.4}  # of the rate, for three channels of 64 x 64; others: 0.75
# Seconds of a run by a part of its command: translators that are networks; depths of forests by cross-validation.
SCORE_SECONDS = {"intervention.metric": 5.0, "--table shapes3d": 10.0}
COMMAND_SECONDS, PACK_SECONDS = 15.0, 5.0  # of starting one beside others: imports, data, a part of compiling
SETS = "independent", "correlated"


def join(*words: str) -> str:
    """Return words as a command, quoted where they have spaces."""
    return shlex.join(words)


def palette_commands() -> Iterator[str]:
    """Yield the calibration of the colors in four parts."""
    for first in range(4):
        yield join("swap_contrast.palettes", "--first", f"{first}", "--every", "4")


def classifier_commands(data: str, *names: str) -> Iterator[str]:
    """Yield methods of Tables 1, 2 and 5 of swap and contrast."""
    for name in names:
        yield join("swap_contrast.tables", "--data", data, "--converged", "--seeds", "5", "--only", name)


def sweep_commands(*names: str) -> Iterator[str]:
    """Yield the settings of methods, compared on nuisances of the training set that are left out."""
    for name in names:
        for data in DIGITS:
            words = ("--data", data, "--converged", "--tune", "--seeds", "3", "--only", f"{name}:")
            yield join("swap_contrast.tables", *words)


def disentangled_commands(*names: str, flags: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield methods of Tables 3 and 4; ours in two packs, since a pack must end within a lease of half an hour."""
    for name in names:
        for first, seeds in ((0, 3), (3, 2)) if name.startswith("swap") else ((0, 5),):
            words = ("--converged", "--first-seed", f"{first}", "--seeds", f"{seeds}", *flags, "--only", name)
            yield join("swap_contrast.disentangled", *words)


def table_commands(table: str, *names: str, seeds: int = 5, flags: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield methods of Tables 1 to 3 of the intervention paper, for each training set."""
    parts = SETS if "--strength" not in flags else SETS[1:]
    for name in names:
        for part in parts:
            words = ("--table", table, "--converged", "--seeds", f"{seeds}", "--part", part, *flags, "--only", name)
            yield join("intervention.tables", *words)


def strength_commands() -> Iterator[str]:
    """Yield correlations that are stronger and weaker than that of the tables."""
    for strength in ("0.1", "0.4"):
        for table in ("cmnist", "dsprites"):
            yield from table_commands(table, "FactorVAE", *OURS, flags=("--strength", strength))


def translator_commands(data: str, *names: str, flags: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield translators of L_diff, or what steadies the adversaries, ten seeds each."""
    for name in names:
        yield join("intervention.translators", "--data", data, "--seeds", "10", *flags, "--only", name)


DIGITS = ("rotation-colored-mnist", "colored-mnist")
CLASSIFIERS = ("CNN", "beta-VAE", "VFAE", "CAI", "CVIB", "UAI")
SCHEMES = ("swap and contrast, joint", "swap and contrast, cross-entropy")
IMPROVED = ("swap and contrast, improved", "CNN, improved")
BASELINES = ("beta-VAE", "annealed VAE", "DIP-VAE-I", "DIP-VAE-II", "beta-TCVAE", "FactorVAE", "Ada-ML-VAE", "Ada-GVAE")
OURS = ("intervention, ridge", "intervention")
MEASUREMENT = "measure: "  # before a command that must have the GPU to itself
STAGES = {"packs": 480.0, "wide": 480.0, "gin": 300.0, "starts": 560.0, "precision": 360.0}  # of gpu_packs.sh, seconds
MEASUREMENTS = {f"{MEASUREMENT}bash benchmarks/gpu_packs.sh {stage}": seconds for stage, seconds in STAGES.items()}
WARM_UPS = "swap and contrast, no warm-up", "swap and contrast, amount"  # with both it is a row of Table 3
SWAP = ("swap and contrast", "swap and contrast, JS")

JOBS: dict[str, tuple[str, ...]] = {
    # Swap and contrast
    "palettes": tuple(palette_commands()),
    "sweep": tuple(sweep_commands("swap and contrast", "CNN")),
    "sweep-improved": tuple(sweep_commands("swap and contrast, improved")),
    "sweep-baselines": tuple(sweep_commands(*CLASSIFIERS[1:])),
    "digits": tuple(c for data in DIGITS for c in classifier_commands(data, "swap and contrast", "CNN")),  # the claim
    "digits-baselines": tuple(c for data in DIGITS for c in classifier_commands(data, *CLASSIFIERS[1:])),
    "schemes": tuple(c for data in DIGITS for c in classifier_commands(data, *SCHEMES)),
    "improved": tuple(command for data in DIGITS for command in classifier_commands(data, *IMPROVED)),
    "table-3-baselines": tuple(disentangled_commands(*BASELINES)),
    "table-3-ours": tuple(disentangled_commands(*SWAP)),
    "table-4": tuple(disentangled_commands(*WARM_UPS, flags=("--warm-ups",))),
    "classification": tuple(classifier_commands("shapes3d", "swap and contrast", *CLASSIFIERS)),
    "ablation": (
        join("swap_contrast.tables", "--data", "colored-mnist", "--converged", "--seeds", "5", "--ablate"),
        join("swap_contrast.tables", "--data", "rotation-colored-mnist", "--converged", "--seeds", "5", "--ablate"),
    ),
    # Intervention
    "cmnist": tuple(table_commands("cmnist", OURS[0], "FactorVAE", OURS[1], "intervention, no L_diff", seeds=10)),
    "dsprites-factor-vae": tuple(table_commands("dsprites", "FactorVAE")),
    "dsprites-ours": tuple(table_commands("dsprites", *OURS)),
    "shapes3d-factor-vae": tuple(table_commands("shapes3d", "FactorVAE")),
    "shapes3d-ours": tuple(table_commands("shapes3d", *OURS)),
    "figure-3": tuple(
        join("intervention.metric", "--data", data, "--seeds", "5", "--steps", "30000", "--part", part)
        for data in ("dsprites", "shapes3d")
        for part in SETS
    ),
    "other-baselines": tuple(
        command
        for table in ("dsprites", "shapes3d")
        for command in table_commands(table, "InfoGAN-CR", "beta-TCVAE")
    ),
    "strengths": tuple(strength_commands()),
    "translators": tuple(translator_commands("cmnist", *TRANSLATORS)),
    "translators-dsprites": tuple(translator_commands("dsprites", *TRANSLATORS)),
    "stability": tuple(
        c for data in ("cmnist", "dsprites") for c in translator_commands(data, *STABILITY, flags=("--stability",))
    ),
    "flowers": (join("intervention.flowers", "--steps", "20000", "--lr", "1e-4", "--translator", "ridge"),),
    # Rates of packs
    **{stage: (f"{MEASUREMENT}bash benchmarks/gpu_packs.sh {stage}",) for stage in STAGES},
}  # fmt: skip


AFTER = {  # jobs by those whose results their commands read, if these are in the same queue
    **dict.fromkeys(("sweep", "sweep-improved", "sweep-baselines"), ("palettes",)),
    **dict.fromkeys(("digits", "schemes", "ablation"), ("palettes", "sweep")),
    "digits-baselines": ("palettes", "sweep-baselines"),
    "improved": ("palettes", "sweep", "sweep-improved"),
    "classification": ("sweep", "sweep-baselines"),
}


def parse_command(command: str, *more: str) -> tuple[Any, Any]:
    """Return the script of a command, and its options; `more` are further flags."""
    name, *flags = shlex.split(command)
    script = import_module(f"unweave.papers.{name}")
    return script, tyro.cli(script.Options, prog=name, args=[*flags, *more])


@cache
def estimate_command(command: str) -> float:
    """Return the seconds that a command needs if it has the GPU to itself."""
    if command in MEASUREMENTS:
        return MEASUREMENTS[command]
    scoring = sum(seconds for part, seconds in SCORE_SECONDS.items() if part in command)
    return COMMAND_SECONDS + sum(estimate_seconds(pack) + scoring * len(pack) for pack in list_packs(command))


def list_packs(command: str, *more: str) -> list[list[Run]]:
    """Return the packs that a command trains."""
    script, options = parse_command(command, *more)
    if not hasattr(script, "list_runs"):  # trains one model after the other
        return [[Run(Flowers102(), method)] for method in script.methods(options).values()]
    with mock.patch("unweave.papers.swap_contrast.tables.chosen_palette", palette_or_default):
        return packs(script.list_runs(options).values())


def palette_or_default() -> str:
    """Return the chosen palette; before there is one any other, which has packs of the same sizes."""
    try:
        return chosen_palette()
    except InputError:
        return DEFAULT_PALETTE


def estimate_seconds(pack: list[Run]) -> float:
    """Return how long a pack takes if it has the GPU to itself."""
    method: Any = pack[0].method
    rate = float(RATES[type(method).__name__])
    rate = float(DIFF_RATES.get(getattr(method, "diff_mode", ""), rate))
    if getattr(method, "inner_steps", 3) > 3:
        rate /= 1 + 0.1 * (method.inner_steps - 3)  # 17 steps more cost 1.7 times the operations of a step
    if "flowers" in str(pack[0].recipe()["data"]):
        rate = WIDE_RATE
    if "shapes3d" in str(pack[0].recipe()["data"]):
        rate *= COLOR_SHARE.get(type(method).__name__, 0.75)
    batches = 1 + (method.batch_size - 64) / 192 if method.batch_size > 64 else 1  # a large batch is less than its size
    rate *= float(np.interp(len(pack), LANES, SHARES))
    return PACK_SECONDS + batches * method.steps * len(pack) / rate


def estimate_minutes(job: str) -> float:
    """Return the estimate of a job in minutes."""
    return sum(map(estimate_command, JOBS[job])) / 60


ORDER = (  # by value
    "palettes", "sweep", "digits", "sweep-baselines", "digits-baselines", "translators", "cmnist",
    "dsprites-factor-vae", "dsprites-ours", "schemes", "precision", "gin", "starts", "table-3-baselines",
    "table-3-ours", "sweep-improved", "improved", "translators-dsprites", "figure-3", "shapes3d-factor-vae",
    "shapes3d-ours", "stability", "flowers", "wide", "packs", "classification", "table-4", "ablation", "strengths",
    "other-baselines",
)  # fmt: skip
LEASE_SECONDS = 26 * 60.0  # of a lease of 30 minutes


def plan_leases(leases: int, jobs: Sequence[str] = ORDER, seconds: float = LEASE_SECONDS) -> list[list[str]]:
    """Return the commands that leases of so many seconds take: each the first ones that fit into what is left.

    A command never comes before those whose results it reads.
    """
    left = [(job, command) for job in jobs for command in JOBS[job]]
    plans: list[list[str]] = []
    for _ in range(leases):
        free, plan, waiting = seconds, list[str](), list[tuple[str, str]]()
        for job, command in left:
            is_blocked = any(other in AFTER.get(job, ()) for other, _ in waiting)
            if is_blocked or estimate_command(command) > free:
                waiting.append((job, command))
            else:
                free -= estimate_command(command)
                plan.append(command)
        plans.append(plan)
        left = waiting
    return plans


@dataclass(kw_only=True)
class Options:
    """Jobs of the queue."""

    plan: int = 0
    """Print what so many leases of 30 minutes can take, by value."""


def main(options: Options) -> None:
    """Print every job, or a plan."""
    for k, commands in enumerate(plan_leases(options.plan), 1):
        print_text(f"lease {k}: {sum(map(estimate_command, commands)) / 60:.0f} minutes")
        for command in commands:
            print_text(f"    {estimate_command(command) / 60:4.1f}  {command}")
    for job in () if options.plan else JOBS:
        print_text(f"{job}: {len(JOBS[job])} commands, about {estimate_minutes(job):.0f} minutes")
        for command in JOBS[job]:
            print_text(f"    {command}")


if __name__ == "__main__":
    main(tyro.cli(Options))
