"""Options, data and methods of Tables 1 to 3 of the paper on disentanglement by intervention."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from unweave.datasets import Resampled
from unweave.methods import BetaTCVAE, FactorVAE, InfoGANCR, InterventionAutoencoder
from unweave.methods.neural import Neural
from unweave.papers.folders import Folders
from unweave.papers.intervention.claims import OURS, PAPER_LAMBDA_ADV, RIDGE, WITHOUT_DIFF
from unweave.papers.verdicts import folder_name, select_methods
from unweave.utils.errors import InputError

Part = Literal["correlated", "independent", "test"]
RATES = {"small": 2e-3, "full": 5e-4}
CONVERGED_RATE = 1e-4  # of the paper; its weight network has a tenth
STEPS = {"dsprites": 11_000, "shapes3d": 4_000, "cmnist": 2_500}  # of the stored tables; the paper does not say
CONVERGED_STEPS = {"dsprites": 100_000, "shapes3d": 100_000, "cmnist": 25_000}
CONVERGED_TC_STEPS = 20_000  # of beta-TCVAE with 2,048 images; its authors have 50 epochs, which are 18,000 on dSprites
STRENGTHS = (0.1, 0.2, 0.4)  # of the correlation: a small s is a strong one
USUAL_STRENGTH = Resampled.strength


@dataclass(kw_only=True)
class Options:
    """Tables 1, 2 and 3 of disentanglement by intervention."""

    table: Literal["dsprites", "shapes3d", "cmnist"] = "dsprites"
    """Table of the paper."""
    scale: Literal["small", "full"] = "full"
    """full: the paper's sizes; small: few images, small networks, few steps, FactorVAE as the only baseline."""
    out: Path = Path("papers/intervention")
    """Folder of the paper: results and figures go below it."""
    seeds: int = 3
    """Number of repetitions; the paper has ten."""
    first_seed: int = 0
    """First seed: further seeds may be added to a stored table."""
    steps: int = 0
    """Gradient steps; 0: 11,000 for dSprites, 4,000 for 3DShapes, 2,500 for CMNIST, or 500 at small scale."""
    lr: float = 0.0
    """Learning rate of ours and FactorVAE; 0: 5e-4, or 2e-3 at small scale. The paper's 1e-4 needs many more steps."""
    lambda_adv: float = PAPER_LAMBDA_ADV
    """Weight of L_adv of our method."""
    only: tuple[str, ...] = ()
    """Methods with these names, or whose names contain one of these."""
    part: Literal["both", "independent", "correlated"] = "both"
    """Training sets: a set of its own is a pack of its own, so that two processes may take one each."""
    strength: float = USUAL_STRENGTH
    """Strength s of the correlation, see `Resampled`; other than 0.2: on correlated factors only."""
    converged: bool = False
    """Train at the paper's rates, 1e-4 and 1e-5 for the weight network: 100,000 steps, 25,000 for CMNIST, 20,000 for
    beta-TCVAE, whose batches are larger. SAP is then `sap[mixed]`, as in the work that the paper follows."""
    ablate: bool = False
    """Run only our method, with each of its losses left out in turn, on correlated factors."""


def usual_steps(options: Options) -> int:
    """Return the steps of the stored tables, or enough to see it run."""
    if options.scale == "small":
        return 500
    return CONVERGED_STEPS[options.table] if options.converged else STEPS[options.table]


def make_data(options: Options, part: Part) -> Resampled:
    """Return the recipe of a training set; the paper has 200,000 images of dSprites and 100,000 of 3DShapes."""
    if options.scale == "small":
        points, held_out = 2_000, 1_000
    else:
        points, held_out = 100_000 if options.table == "shapes3d" else 200_000, 50_000
    source: Literal["dsprites", "shapes3d", "colored-mnist"] = (
        "colored-mnist" if options.table == "cmnist" else options.table
    )
    return Resampled(of=source, part=part, points=points, held_out=held_out, strength=options.strength)


def training_sets(options: Options) -> list[Part]:
    """Return the training sets of a table; strength has no effect on independent factors."""
    if options.ablate or options.strength != USUAL_STRENGTH:
        if options.part == "independent":
            raise InputError("--part independent: ablations and other strengths are for correlated factors")
        return ["correlated"]
    return ["independent", "correlated"] if options.part == "both" else [options.part]


def methods(options: Options, seed: int) -> dict[str, Neural]:
    """Return the methods by their names in the tables."""
    small = options.scale == "small"
    shared: Any = {"seed": seed, "steps": options.steps or usual_steps(options)}
    net: Any = {"hidden": (128,)}
    if options.table == "cmnist":
        # Tables 6 and 7, but for the decoder, which starts from 7 x 7 x 128 and not 4 x 4 x 64.
        net = {"widths": (64, 128, 128), "hidden": ()}
    if small:
        shared |= {"batch_size": 16}
        net |= {"widths": (8, 8, 16, 16)}
    groups: Any = {"latent_dim": 32, "feature_dim": 16} if options.table == "cmnist" else {"latent_dim": 10}
    lr = options.lr or (CONVERGED_RATE if options.converged else RATES[options.scale])
    ours: Any = {**shared, **net, **groups, "lr": lr, "weight_lr": lr / 10}
    ours |= {"lambda_in": 1.0 if options.table == "cmnist" else 0.25, "lambda_adv": options.lambda_adv}
    if small:
        ours |= {"inner_steps": 2, "translator": 32}
    if options.ablate:
        return select_methods(make_ablations(ours), options.only)
    variants = {OURS: {}, RIDGE: {"diff_mode": "ridge"}, WITHOUT_DIFF: {"diff_mode": "off"}}
    every = make_baselines(options, shared, net, groups | {"lr": lr})
    every |= {name: InterventionAutoencoder(**ours | variant) for name, variant in variants.items()}
    return select_methods(every, options.only)


def make_baselines(options: Options, shared: Any, net: Any, more: Any) -> dict[str, Neural]:
    """Create the paper's baselines; at small scale FactorVAE only."""
    small = options.scale == "small"
    critic = (200,) * 3 if small else (1000,) * 6
    baselines: dict[str, Neural] = {
        f"FactorVAE, gamma = {g}": FactorVAE(
            gamma=float(g), critic=critic, critic_lr=more["lr"], **shared, **net, **more
        )
        for g in (10, 40)
    }
    if options.table != "cmnist" and not small:
        flat: Any = {"network": "mlp", "layers": (1200, 1200)} if options.table == "dsprites" else net
        large: Any = shared | {"batch_size": 2048}
        large |= {"steps": options.steps or CONVERGED_TC_STEPS} if options.converged else {}
        baselines["beta-TCVAE"] = BetaTCVAE(**large, **flat, **more | {"lr": 1e-3})
        baselines["InfoGAN-CR"] = InfoGANCR(**shared, **net, latent_dim=5 if options.table == "dsprites" else 6)
    return baselines


def make_ablations(ours: dict[str, Any]) -> dict[str, Neural]:
    """Create our method with one loss left out or changed at a time."""
    changes: dict[str, Any] = {
        "all": {}, "without L_in": {"lambda_in": 0.0}, "without L_adv": {"lambda_adv": 0.0},
        "L_adv x 3": {"lambda_adv": 3 * ours["lambda_adv"]}, "without L_diff": {"lambda_diff": 0.0},
        "without weights": {"reweight": False}, "minimax": {"adversary": "minimax"},
        "through the steps": {"diff_mode": "steps"}, "L_diff by ridge": {"diff_mode": "ridge"},
    }  # fmt: skip
    return {f"{OURS}: {name}": InterventionAutoencoder(**ours | change) for name, change in changes.items()}


def folders(options: Options) -> Folders:
    """Return where everything goes; other settings than the usual ones have folders of their own."""
    rate = 0 if options.converged else RATES[options.scale]
    parts = {"converged": options.converged, f"strength-{options.strength:g}": options.strength != USUAL_STRENGTH}
    parts |= {f"adv-{options.lambda_adv:g}": options.lambda_adv != PAPER_LAMBDA_ADV, "ablation": options.ablate}
    parts |= {"small": options.scale == "small", f"lr-{options.lr:g}": options.lr not in (0, rate)}
    parts |= {f"{options.steps}-steps": options.steps not in (0, usual_steps(options))}
    return Folders(options.out, folder_name(options.table, parts))


def seed_range(options: Options) -> Iterable[int]:
    """Return the seeds of a run of the script."""
    return range(options.first_seed, options.first_seed + options.seeds)
