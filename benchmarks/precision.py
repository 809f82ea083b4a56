"""Does the precision of matrix products change results? The same seeds in float32 and in bf16, five methods.

python -m benchmarks.precision                                        # all methods, for a GPU; resumes
python -m benchmarks.precision --methods beta-vae factor-vae          # some of them
python -m benchmarks.precision --ways single bf16 control             # also float32 by other kernels
python -m benchmarks.precision --tables                               # only prints tables and writes the page
python -m benchmarks.precision --device cpu --steps 20 --seeds 2 --methods beta-vae   # only shows that it runs

Scores on 10,000 observations: MIG and DCI of the codes; the reconstruction loss over the last tenth of the steps; for
swap+contrast accuracies on test digits with new backgrounds at +-65 degrees; for intervention the translation
difficulty, which needs no labels. Tables have means with 95 % intervals, then differences from float32 seed by seed.
The control is float32 by other kernels, which sum in another order: what rounding alone does to a seed. Runs are stored
under OUT, scores in TABLE; several calls may work side by side on different methods. What the table has of other
methods, precisions and seeds stays.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal, NamedTuple
from unittest import mock

import numpy as np
import pandas as pd
import torch
from scipy.stats import ttest_1samp
from sklearn.base import clone

from benchmarks.gpu import the_device
from unweave.catalog import load
from unweave.cli.progress import show_progress
from unweave.cli.terminal import print_table
from unweave.data.dataset import Dataset
from unweave.datasets import DSprites, Resampled, Shapes3D, Unseen
from unweave.datasets.colored import Painted
from unweave.experiments.run import Run
from unweave.experiments.study import execute
from unweave.methods import AdaGVAE, BetaVAE, FactorVAE, InterventionAutoencoder, SwapContrast
from unweave.methods.neural import Neural
from unweave.metrics import average_accuracy, worst_group_accuracy
from unweave.metrics.uncertainty import plus_minus
from unweave.papers.verdicts import merge_rows
from unweave.training.loop import train
from unweave.training.pack import StepRunner

Name = Literal["beta-vae", "factor-vae", "ada-gvae", "swap-contrast", "intervention"]
WayName = Literal["single", "bf16", "tf32", "control"]
REFERENCE: WayName = "single"
TEST_ANGLES = (-65.0, 65.0)  # degrees, of digits that swap+contrast has not seen at such angles


class Way(NamedTuple):
    """How a pack is trained on a GPU."""

    precision: Literal["single", "tf32", "bf16"]
    strategy: Literal["stack", "fork"]
    compiling: Literal["always", "never"]


WAYS: dict[WayName, Way] = {
    "single": Way("single", "stack", "always"),
    "bf16": Way("bf16", "stack", "always"),
    "tf32": Way("tf32", "stack", "always"),
    "control": Way("single", "fork", "never"),
}


class Case(NamedTuple):
    """A method with all settings that decide its results, its data, and what it is scored by."""

    data: Dataset
    method: Neural
    scores: dict[str, str]
    """Headings by column; columns are those of `execute`, or of `score_digits`."""


SCORES = {"mig": "MIG", "dci[trees].disentanglement": "DCI", "rec": "reconstruction"}
ACCURACIES = {"accuracy": "accuracy", "worst": "worst group"}
TRANSLATION = {"translation-difficulty[linear].relative": "translation"}


@cache
def cases() -> dict[Name, Case]:
    """Return the methods of the study with the settings of the papers' tables."""
    intervention: Any = {"lr": 5e-4, "weight_lr": 5e-5, "lambda_in": 0.25, "lambda_adv": 10.0, "diff_mode": "data"}
    contrast: Any = {"alpha": 1.0, "beta": 300.0, "gamma": 1.0, "generative": 1.0, "temperature": 0.1, "lr": 5e-4}
    return {
        "beta-vae": Case(DSprites(), BetaVAE(beta=4.0, steps=10_000), SCORES),
        "factor-vae": Case(DSprites(), FactorVAE(gamma=10.0, steps=10_000), SCORES),
        "ada-gvae": Case(Shapes3D(), AdaGVAE(beta=1.0, steps=6_000), SCORES),
        "swap-contrast": Case(
            Unseen(of="rotation-colored-mnist"),
            SwapContrast(widths=(32, 64, 128), nuisances=("color", "background"), steps=6_000, **contrast),
            SCORES | ACCURACIES,
        ),
        "intervention": Case(
            Resampled(of="dsprites", part="independent"),
            InterventionAutoencoder(latent_dim=10, steps=2_500, **intervention),
            SCORES | TRANSLATION,
        ),
    }


@dataclass(kw_only=True)
class Options:
    """The same seeds in every precision."""

    methods: tuple[Name, ...] = ("beta-vae", "factor-vae", "ada-gvae", "swap-contrast", "intervention")
    """Methods to train."""
    ways: tuple[WayName, ...] = ("single", "bf16")
    """Precisions to compare; control: float32 by other kernels."""
    steps: int = 0
    """Gradient steps; 0: 10,000 for beta-VAE and FactorVAE, 6,000 for pairs, 2,500 for intervention."""
    seeds: int = 10
    """Seeds, which are trained together."""
    device: str = "cuda"
    """Device to train on."""
    out: Path = Path("runs/precision")
    """Folder of the runs."""
    table: Path = Path("benchmarks/results/precision.csv")
    """Path of the table; the page is written beside it."""
    tables: bool = False
    """Train nothing; print the tables and write the page."""


# Training -------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def fixed_strategy(way: Way, device: str) -> Iterator[None]:
    """Train all packs in one way; on a CPU in the usual one."""
    if device == "cpu":
        yield
        return
    in_this_way = partial(train, strategy=way.strategy, compiling=way.compiling)
    taking_turns = mock.patch.object(StepRunner, "run", run_alone)  # with calls of gpu.py that measure
    with mock.patch("unweave.methods.neural.train", in_this_way), taking_turns:
        yield


def run_alone(runner: StepRunner, count: int, *args: Any, run: Any = StepRunner.run) -> None:
    """Take a chunk of steps while no other benchmark measures."""
    with the_device(alone=True, patience=0):
        run(runner, count, *args)
        torch.cuda.synchronize()


def run_pack(name: Name, way: WayName, options: Options) -> pd.DataFrame:
    """Train and score what is missing of one pack; return a row for each seed."""
    case = cases()[name]
    settings: dict[str, Any] = {"precision": WAYS[way].precision, "device": options.device}
    settings |= {"steps": options.steps} if options.steps else {}
    runs = [Run(case.data, clone(case.method).set_params(seed=seed, **settings)) for seed in range(options.seeds)]
    out = options.out / way  # the same precision in another way is the same run
    columns = [column for column in case.scores if column != "rec" and column not in ACCURACIES]
    metrics = [column.partition(".")[0] for column in columns]
    with show_progress() as line, fixed_strategy(WAYS[way], options.device):
        scores = execute(runs, out, metrics=metrics, retry=True, notify=line.message, callback=line.training)
    if scores.empty:
        return scores
    folders = [out / key for key in scores["key"]]
    rows = pd.DataFrame({"method": name, "steps": scores["steps"], "way": way, "seed": scores["seed"]})
    rows["trained"] = [load(folder).trained_ for folder in folders]
    rows = pd.concat([rows, scores.reindex(columns=columns)], axis=1)  # a collapsed run may have no score
    rows["rec"] = [final_reconstruction(folder) for folder in folders]
    if ACCURACIES.keys() <= case.scores.keys():
        accuracies = pd.DataFrame([score_digits(folder) for folder in folders])
        rows = pd.concat([rows, accuracies], axis=1)
    return rows


# Scores ---------------------------------------------------------------------------------------------------------------


def final_reconstruction(folder: Path) -> float:
    """Return the reconstruction loss over the last tenth of the steps."""
    history = pd.read_parquet(folder / "history.parquet")
    return float(history["rec"].tail(max(1, len(history) // 10)).mean())


@cache
def test_digits() -> tuple[torch.Tensor, np.ndarray, np.ndarray]:
    """Return images, digits and groups: every test digit on every new background at both angles, in a random color."""
    data = Unseen(of="rotation-colored-mnist", part="test").load()
    assert isinstance(data, Painted)
    angles = data.factors[data.column("angle")].values
    used = torch.tensor([angles.index(angle) for angle in TEST_ANGLES])
    rows = torch.cartesian_prod(torch.arange(len(data.gray)), data.allowed[1], used)
    color = torch.randint(6, (len(rows), 1), generator=torch.Generator().manual_seed(0))
    points = torch.cat([rows[:, :1], color, rows[:, 1:]], 1)
    c = data.labels(points).numpy()
    return torch.cat([data.render(part).float() for part in points.split(10_000)]), c[:, 0], c[:, 1:]


def score_digits(folder: Path) -> dict[str, float]:
    """Return accuracy on test digits, and that of the worst color, background and angle."""
    x, y, groups = test_digits()
    method = load(folder)
    predicted = method.predict(x.numpy()).astype(float)
    return {"accuracy": average_accuracy(y, predicted), "worst": worst_group_accuracy(y, predicted, groups)}


def lines_of(rows: pd.DataFrame, scores: dict[str, str]) -> list[list[str]]:
    """Return means of every way, and differences from the reference over seeds."""
    lines = []
    wide = rows.pivot(index="seed", columns="way")
    ways = [way for way in WAYS if way in set(rows["way"])]
    for way in ways:
        cells = [plus_minus(wide[score][way].dropna()) for score in scores]
        lines.append([way, f"{(rows['way'] == way).sum()}", *cells])
    for way in ways:
        if way != REFERENCE and REFERENCE in ways:
            cells = [plus_minus((wide[score][way] - wide[score][REFERENCE]).dropna()) for score in scores]
            lines.append([f"{way} - {REFERENCE}", "", *cells])
    return lines


# Page -----------------------------------------------------------------------------------------------------------------

PAGE = """# Does bf16 change results? The same seeds in float32 and in bf16

{conclusion} A
difference smaller than its interval in the table is not excluded.

Difference: bf16 minus float32, seed by seed. Values are means with 95 % intervals (Student's t).

{table}

## What was run

`python -m benchmarks.precision` on one NVIDIA H200 with torch 2.11: {seeds} seeds of every method in
each precision, all as compiled stacks. bf16 is `torch.autocast`: matrix products and their results
are bf16, weights and Adam are float32. float32 is `single`, without TF32. Scores of every seed:
[precision.csv](precision.csv). `--tables` writes this page from it.

| method | data | steps |
|---|---|---|
{runs}

- Reconstruction: loss over the last tenth of the steps. MIG and DCI: codes of 10,000 observations.
- Accuracy, worst group: test digits on new backgrounds at angles of +-65 degrees.
- Translation: linear translation difficulty, relative; smaller is better.

## Limitations

- Trainings are short: papers train ten to a hundred times as long.
- Not compared: {missing}.
- With {count} differences, about one interval in twenty misses zero by chance alone.
- Two trainings of one seed on a GPU also differ in float32, so seeds are hardly paired.
"""


def write_page(table: pd.DataFrame) -> str:
    """Return the page with one line for each score of each method that has both precisions."""
    lines, runs, clear, missing, seeds = [], [], [], [], set()
    for name, case in cases().items():
        rows = table[(table["method"] == name) & table["way"].isin([REFERENCE, "bf16"])]
        if rows["way"].nunique() < 2:
            missing.append(f"{name} (the table has {', '.join(rows['way'].unique()) or 'nothing'} only)")
            continue
        wide = rows.pivot(index="seed", columns="way")
        seeds |= {rows[rows["way"] == way]["seed"].nunique() for way in (REFERENCE, "bf16")}
        runs.append(f"| {name} | {case.data.title()} | {rows['steps'].iloc[0]:,} |")
        for score, heading in case.scores.items():
            difference = (wide[score]["bf16"] - wide[score][REFERENCE]).dropna()
            cells = [plus_minus(wide[score][way].dropna()) for way in (REFERENCE, "bf16")]
            lines.append(f"| {name} | {heading} | {' | '.join(cells)} | {plus_minus(difference)} |")
            if excludes_zero(difference):
                clear.append(f"{heading} of {name}")
    head = "| method | score | float32 | bf16 | difference |\n|---|---|---|---|---|\n"
    text = f"**{len(clear) or 'None'} of {len(lines)} differences is significant at the 95 % level"
    conclusion = f"{text}{': ' + ', '.join(clear) if clear else ''}.**"
    return PAGE.format(
        conclusion=conclusion,
        table=head + "\n".join(lines),
        seeds=" to ".join(map(str, sorted(seeds))),
        runs="\n".join(runs),
        count=len(lines),
        missing=", ".join(missing) or "nothing of the study",
    )


def excludes_zero(values: pd.Series) -> bool:
    """Return whether the 95 % interval of the mean leaves zero out."""
    return bool(ttest_1samp(values, 0.0).pvalue < 0.05)


def main(options: Options) -> None:
    """Train what is missing, and print a table for each method."""
    options.table.parent.mkdir(parents=True, exist_ok=True)
    for name in () if options.tables else options.methods:
        for way in options.ways:
            rows = run_pack(name, way, options)
            if not rows.empty:
                merge_rows(rows, options.table, ["method", "steps", "way", "seed"])
    if not options.table.is_file():
        return
    table = pd.read_csv(options.table)
    for name in options.methods:
        case = cases()[name]
        for steps, rows in table[table["method"] == name].groupby("steps"):
            title = f"{name} on {case.data.title()}, {steps:,} steps: mean and 95 % interval"
            print_table(["precision", "seeds", *case.scores.values()], lines_of(rows, case.scores), title)
    options.table.with_suffix(".md").write_text(write_page(table))


if __name__ == "__main__":
    import tyro

    main(tyro.cli(Options))
