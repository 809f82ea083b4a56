"""Jobs of the queue on a GPU: the papers' tables as commands, each of which trains few packs; estimates of their time.

python -m benchmarks.gpu_jobs                          # every job with its commands and its estimate in minutes

A command is the name of a script below `unweave.papers` and its flags. Different data make different packs, so most
commands have one training set. Commands of a job run side by side: while one trains, others compile or score.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any
from unittest import mock

import numpy as np
import tyro

from unweave.cli.terminal import print_text
from unweave.datasets.colored import DEFAULT_PALETTE
from unweave.experiments.run import Run
from unweave.experiments.study import packs
from unweave.papers.swap_contrast.palettes import chosen_palette
from unweave.utils.errors import InputError

# Model-steps per second of ten lanes: benchmarks/results/profile.md. Those in the second line were not measured.
RATES = {
    "CNNClassifier": 13_700, "SwapContrast": 4_000, "FactorVAE": 4_770, "AdaGVAE": 3_880, "AdaMLVAE": 3_880,
    "InterventionAutoencoder": 1_190, "InfoGANCR": 1_860, "BetaVAE": 9_970,
    "VAEClassifier": 5_000, "VFAE": 4_000, "CAI": 6_000, "CVIB": 6_000, "UAI": 4_000, "AnnealedVAE": 9_000,
    "DIPVAE": 9_000, "BetaTCVAE": 8_000,
}  # fmt: skip
RIDGE_RATE = 1_650
LANES, SHARES = (1, 3, 10, 32), (0.32, 0.62, 1.0, 1.3)  # of the rate of ten lanes, for beta-VAEs
COLOR_SHARE = {"SwapContrast": 0.4, "CNNClassifier": 0.4}  # of the rate, for three channels of 64 x 64; others: 0.75
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
            words = ("--data", data, "--converged", "--tune", "--seeds", "2", "--only", f"{name}:")
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


DIGITS = ("rotation-colored-mnist", "colored-mnist")
CLASSIFIERS = ("CNN", "beta-VAE", "VFAE", "CAI", "CVIB", "UAI")
SCHEMES = ("swap and contrast, joint", "swap and contrast, cross-entropy")
IMPROVED = ("swap and contrast, improved", "CNN, improved")
BASELINES = ("beta-VAE", "annealed VAE", "DIP-VAE-I", "DIP-VAE-II", "beta-TCVAE", "FactorVAE", "Ada-ML-VAE", "Ada-GVAE")
OURS = ("intervention, ridge", "intervention")
WARM_UPS = "swap and contrast, no warm-up", "swap and contrast, amount"  # with both it is a row of Table 3
SWAP = ("swap and contrast", "swap and contrast, JS")

JOBS: dict[str, tuple[str, ...]] = {
    # Swap and contrast
    "palettes": tuple(palette_commands()),
    "sweep": tuple(sweep_commands("swap and contrast")),
    "sweep-improved": tuple(sweep_commands("swap and contrast, improved")),
    "sweep-baselines": tuple(sweep_commands(*CLASSIFIERS)),
    "digits": tuple(
        command
        for names in (("swap and contrast", "CNN"), CLASSIFIERS[1:], SCHEMES)  # by value: the claim first
        for data in DIGITS
        for command in classifier_commands(data, *names)
    ),
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
    "cmnist": tuple(table_commands("cmnist", *OURS, "intervention, no L_diff", "FactorVAE", seeds=10)),
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
}  # fmt: skip


MEASUREMENT = "measure: "  # before a command that must have the GPU to itself
MEASUREMENTS: dict[str, float] = {}
SWEEPS = ("sweep", "sweep-improved", "sweep-baselines")
AFTER = {  # jobs by those whose results their commands read, if these are in the same queue
    **dict.fromkeys(SWEEPS, ("palettes",)),
    **dict.fromkeys(("digits", "improved", "ablation", "classification"), ("palettes", *SWEEPS)),
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
    return COMMAND_SECONDS + sum(map(estimate_seconds, list_packs(command)))


def list_packs(command: str, *more: str) -> list[list[Run]]:
    """Return the packs that a command trains."""
    script, options = parse_command(command, *more)
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
    if getattr(method, "diff_mode", "") == "ridge":
        rate = RIDGE_RATE
    if "shapes3d" in str(pack[0].recipe()["data"]):
        rate *= COLOR_SHARE.get(type(method).__name__, 0.75)
    batches = 1 + (method.batch_size - 64) / 192 if method.batch_size > 64 else 1  # a large batch is less than its size
    rate *= float(np.interp(len(pack), LANES, SHARES))
    return PACK_SECONDS + batches * method.steps * len(pack) / rate


def estimate_minutes(job: str) -> float:
    """Return the estimate of a job in minutes."""
    return sum(map(estimate_command, JOBS[job])) / 60


def main() -> None:
    """Print every job."""
    for job, commands in JOBS.items():
        print_text(f"{job}: {len(commands)} commands, about {estimate_minutes(job):.0f} minutes")
        for command in commands:
            print_text(f"    {command}")


if __name__ == "__main__":
    main()
