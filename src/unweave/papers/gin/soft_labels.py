"""GIN on digits with finer conditions than classes: do crossbars of the 7 and loops of the 2 appear?

unweave paper run gin/soft-labels                             # MNIST, three seeds of each; on a GPU
unweave paper run gin/soft-labels --steps 20 --seeds 1        # to see it run

Sorrenson, Rother and Köthe (2020), Sec. 4.4.3: with ten classes, samples never show a 7 with a crossbar, and soft
labels might. Three kinds of conditions: the classes themselves; clusters within each class, by k-means on 30 principal
components; and class probabilities distilled from a CNN, at a temperature (Hinton et al., 2015). Statistics of the
conditions are learned, since a batch has few observations of each cluster.

Nats given the class, log p(x | class) of test digits with noise, compare classes and clusters: a class is the mixture
of its clusters. Distilled probabilities are computed from the digit, so the likelihood given them is no such density.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from unweave.data.conversion import as_data
from unweave.methods import GIN, CNNClassifier
from unweave.methods.flows.class_statistics import joint_log_prob
from unweave.methods.flows.family import Coefficients
from unweave.methods.flows.labels import to_probabilities
from unweave.papers.flow_digits import (
    DIVERGED,
    MODEL,
    DigitData,
    Digits,
    Precision,
    digits_folders,
    load_digits,
    read_numbers,
    train_together,
    update_numbers,
)
from unweave.papers.folders import Folders, fit_or_load
from unweave.papers.gin.conditions import cluster_classes, soften
from unweave.papers.gin.digits import DECAY_AFTER, STEPS
from unweave.papers.gin.strokes import FEATURES, Feature
from unweave.papers.output import SILENT, Output, TextTable
from unweave.papers.verdicts import Claim, Findings
from unweave.report.figures.flows import draw_variable
from unweave.report.figures.traversal import draw_grid
from unweave.utils.errors import plural
from unweave.utils.storage import read_json, write_json

Kind = Literal["classes", "clusters", "distilled"]
KINDS: tuple[Kind, ...] = ("classes", "clusters", "distilled")
MAX_DIGITS = 1_000_000  # of the training split
N_SAMPLES = 500  # digits of a class that are drawn to see how many have a feature
N_SHOWN = 16  # of these in a figure
MAX_VARIABLES = 40  # whose effect is measured
RANGE = 2.0  # deviations of a variable whose effect on a feature is measured
NATS, SHARES, EFFECTS = "nats given the class", "shares", "effects"
TEST_SHARES = "test-digits.json"
COLUMNS = ("conditions", "seed", "informative", NATS)


@dataclass(kw_only=True)
class Options:
    """GIN on handwritten digits, with classes, clusters and soft labels as conditions."""

    out: Path = Path("papers/gin")
    """Folder of the paper: results and figures go below it."""
    data: Digits = "mnist"
    """Dataset of digits."""
    steps: int = STEPS
    """Gradient steps of 240 images."""
    seeds: int = 3
    """Number of models of each kind, trained together."""
    clusters: int = 4
    """Number of clusters within each class."""
    temperature: float = 4.0
    """Divisor of the classifier's logits."""
    classifier_steps: int = 6_000
    """Gradient steps of the classifier."""
    precision: Precision = "single"
    """Precision of matrix products on a GPU."""


def folders(options: Options, kind: str = "") -> Folders:
    """Return where everything goes, or everything of one kind."""
    extra_steps = 0 if options.steps == STEPS else options.steps
    place = digits_folders(options.out, options.data, options.precision, extra_steps)
    return place._replace(name=str(Path(f"{place.name}-soft-labels", kind)))


def make_method(options: Options, seed: int) -> GIN:
    """Create the method with the paper's settings, and learned statistics."""
    return GIN(
        steps=options.steps, batch_size=240, lr=3e-4, lr_decay_after=DECAY_AFTER, seed=seed,
        precision=options.precision, statistics="learned",
    )  # fmt: skip


def make_classifier(options: Options) -> CNNClassifier:
    """Create the classifier whose probabilities are soft labels."""
    return CNNClassifier(steps=options.classifier_steps)


# Conditions -------------------------------------------------------------------------------------------------------


def make_conditions(kind: Kind, x: np.ndarray, labels: np.ndarray, options: Options) -> np.ndarray:
    """Return the conditions of digits x (n, 1, h, w): names of classes or clusters (n,), or probabilities (n, 10)."""
    if kind == "classes":
        return labels.astype(str)
    if kind == "clusters":
        return cluster_classes(x.reshape(len(x), -1), labels, options.clusters)
    classifier = fit_or_load(
        make_classifier(options), as_data(x, labels.astype(str)), folders(options).results / "classifier"
    )
    return soften(classifier.predict_proba(x), options.temperature)


def conditions_of_class(conditions: np.ndarray, labels: np.ndarray, k: int) -> np.ndarray:
    """Return the conditions of N_SAMPLES random training digits of class k: what its samples are drawn with."""
    return np.random.default_rng(0).choice(conditions[labels == k], N_SAMPLES)


# Scores -----------------------------------------------------------------------------------------------------------


@torch.no_grad()
def nats_given_class(model: GIN, digits: DigitData) -> float:
    """Compute the mean of log p(x | class) of test digits with noise, a class being the mixture of its conditions."""
    x = model.to_tensor(digits.images)
    noisy = x + model.noise * torch.randn(x.shape, generator=torch.Generator().manual_seed(0))
    c = Coefficients(model.first_, model.second_)
    joint = joint_log_prob(model.latent_family(), c, model.class_shares_, model.outputs_and_log_det(noisy))
    owner = np.array([int(name.partition(".")[0]) for name in model.class_names_])  # class of each condition
    own = torch.from_numpy(owner[None] == digits.labels[:, None])  # (n, conditions)
    shares = (own * model.class_shares_).sum(1)
    return float((torch.where(own, joint, -torch.inf).logsumexp(1) - shares.log()).mean())


def draw_class(model: GIN, conditions: np.ndarray) -> np.ndarray:
    """Draw one digit for each condition, (n, 1, h, w)."""
    e = torch.randn(len(conditions), len(model.order_), generator=torch.Generator().manual_seed(0))
    e[:, model.order_[model.n_informative_ :]] = 0
    return move(model, conditions, e)


@torch.no_grad()
def move(model: GIN, conditions: np.ndarray, e: torch.Tensor) -> np.ndarray:
    """Return digits at whitened variables e (n, features) of the conditions, (n, 1, h, w)."""
    r = to_probabilities(conditions, model.class_names_, len(e))
    return model.to_observations(model.latent_family().color(e, model.coefficients(r))).numpy()


def strongest_variable(model: GIN, conditions: np.ndarray, has_feature: Feature) -> tuple[int, float]:
    """Return the variable whose change between -2 and 2 deviations changes the share of a feature most, and how much.

    All other variables are at their means. The share is taken over conditions; variables are counted from 0.
    """
    shares = np.zeros((min(model.n_informative_, MAX_VARIABLES), 2))
    for j in range(len(shares)):
        for side in range(2):
            e = torch.zeros(len(conditions), len(model.order_))
            e[:, model.order_[j]] = RANGE * (2 * side - 1)
            shares[j, side] = np.mean(has_feature(move(model, conditions, e)))
    change = np.abs(shares[:, 1] - shares[:, 0])
    return int(change.argmax()), float(change.max())


# Results ----------------------------------------------------------------------------------------------------------


def score_model(model: GIN, conditions: np.ndarray, labels: np.ndarray, digits: DigitData) -> dict[str, Any]:
    """Return the share of drawn digits with each feature, the variable that changes it most, and the likelihood.

    Args:
        model: A fitted model.
        conditions: Conditions of the training digits: names (n,), or probabilities (n, classes).
        labels: Classes of the training digits, (n,).
        digits: Test digits.
    """
    shares, effects = {}, {}
    for name, (k, has_feature) in FEATURES.items():
        own = conditions_of_class(conditions, labels, k)
        shares[name] = float(np.mean(has_feature(draw_class(model, own))))
        variable, change = strongest_variable(model, own[:N_SHOWN], has_feature)
        effects[name] = {"variable": variable + 1, "change": round(change, 4)}
    scores: dict[str, Any] = {SHARES: shares, EFFECTS: effects}
    return scores if conditions.ndim == 2 else scores | {NATS: round(nats_given_class(model, digits), 3)}


def draw_model(
    model: GIN, place: Folders, conditions: np.ndarray, labels: np.ndarray, effects: dict[str, dict[str, int]]
) -> None:
    """Draw digits that may have each feature, a row for each condition, and the variable that changes it most."""
    for name, (k, _) in FEATURES.items():
        file_name = name.replace(" ", "-")
        own = conditions_of_class(conditions, labels, k)
        groups = {str(c): np.repeat(c, N_SHOWN) for c in np.unique(own)} if own.ndim == 1 else {"soft": own[:N_SHOWN]}
        rows = [(c, np.clip(draw_class(model, group), 0, 1)) for c, group in groups.items()]
        place.save(draw_grid(rows, name), f"{file_name}-samples.png")
        if own.ndim == 1:
            statistics = {c: model.class_statistics()[c] for c in groups}
            place.save(draw_variable(model, effects[name]["variable"] - 1, statistics), f"{file_name}-variable.png")


def run_kind(kind: Kind, options: Options, digits: DigitData, output: Output) -> None:
    """Train all seeds of a kind of conditions, score them, and draw the first."""
    place = folders(options, kind)
    place.create()
    sample = digits.train.collect(MAX_DIGITS, torch.Generator().manual_seed(0))
    x, labels = sample.x.float().numpy(), sample.c[:, 0].long().numpy()
    conditions = make_conditions(kind, x, labels, options)
    places = [place.results / f"seed-{seed}" for seed in range(options.seeds)]
    output.progress(f"GIN on {options.data}, {kind}")
    methods = [make_method(options, seed) for seed in range(options.seeds)]
    train_together(methods, places, as_data(x, conditions), output.training)
    for folder in places:
        if DIVERGED in update_numbers(folder):
            continue
        model = GIN.load(folder / MODEL)
        scores = score_model(model, conditions, labels, digits)
        update_numbers(folder, **scores)
        if folder == places[0]:
            draw_model(model, place, conditions, labels, scores[EFFECTS])


def read_kinds(options: Options) -> dict[str, list[dict[str, Any]]]:
    """Return the numbers of the models of each kind that did not diverge, where some are stored."""
    every = {kind: read_numbers(folders(options, kind).results) for kind in KINDS}
    trained = {kind: [entry for entry in numbers if SHARES in entry] for kind, numbers in every.items()}
    return {kind: numbers for kind, numbers in trained.items() if numbers}


def feature_shares(digits: DigitData) -> dict[str, float]:
    """Return the share of test digits with each feature, in their class."""
    return {name: float(np.mean(has(digits.images[digits.labels == k]))) for name, (k, has) in FEATURES.items()}


def tables(options: Options) -> list[TextTable]:
    """Return a row for each model: likelihood, features of drawn digits, and variables that change them."""
    path = folders(options).results / TEST_SHARES
    kinds = read_kinds(options)
    if not kinds or not path.is_file():
        return []
    rows = [["test digits", "", "", "", *(f"{read_json(path)[name]:.1%}" for name in FEATURES)]]
    effects = []
    for kind, numbers in kinds.items():
        for entry in numbers:
            seed, nats = str(entry["settings"]["seed"]), entry.get(NATS)
            cells = [str(entry["informative"]), "" if nats is None else f"{nats:.1f}"]
            rows.append([kind, seed, *cells, *(f"{entry[SHARES][name]:.1%}" for name in FEATURES)])
            strongest = [entry[EFFECTS][name] for name in FEATURES]
            effects.append([kind, seed, *(f"{e['change']:.0%} (variable {e['variable']})" for e in strongest)])
    shares = TextTable(f"Drawn digits of {options.data} with a feature", (*COLUMNS, *FEATURES), rows, key_columns=2)
    title = "Largest change of the share of digits with a feature by one variable"
    return [shares, TextTable(title, ("conditions", "seed", *FEATURES), effects, key_columns=2)]


def findings(options: Options, part: str) -> Findings:
    """Return our claims: finer conditions gain likelihood, and draw features that classes do not."""
    kinds, path = read_kinds(options), folders(options).results / TEST_SHARES
    if set(kinds) != set(KINDS) or not path.is_file():
        return Findings()
    gain = mean_of(kinds["clusters"], NATS) - mean_of(kinds["classes"], NATS)
    claims = [Claim(f"clusters within classes gain likelihood on test digits ({gain:+.1f} nats)", gain > 0, own=True)]
    for name, share in read_json(path).items():
        by_kind = {kind: float(np.mean([entry[SHARES][name] for entry in kinds[kind]])) for kind in KINDS}
        for kind in KINDS[1:]:
            nearer = abs(by_kind[kind] - share) < abs(by_kind["classes"] - share)
            claims.append(Claim(f"{kind}: the {name} is drawn nearer to its share of test digits", nearer, own=True))
    figures = tuple(path for kind in KINDS for path in folders(options, kind).drawn("*.png"))
    effort = f"{plural(min(map(len, kinds.values())), 'seed')}, {options.steps:,} steps"
    return Findings(claims=tuple(claims), figures=figures, effort=effort)


def mean_of(numbers: list[dict[str, Any]], name: str) -> float:
    """Return the mean of a number over models."""
    return float(np.mean([entry[name] for entry in numbers]))


def main(options: Options, output: Output = SILENT) -> None:
    """Train and score models with every kind of conditions, and report the tables."""
    digits = load_digits(options.data)
    for kind in KINDS:
        run_kind(kind, options, digits, output)
    write_json(folders(options).results / TEST_SHARES, feature_shares(digits))
    for table in tables(options):
        output.table(table)
    output.text(f"Numbers are in {folders(options).results}, figures in {folders(options).figures}.")
