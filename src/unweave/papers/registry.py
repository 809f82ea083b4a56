"""Every table and figure of the five papers: which study makes it, on which data, and what was found."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from unweave.cli.terminal import plausible
from unweave.metrics.uncertainty import plus_minus
from unweave.papers.verdicts import Findings, together
from unweave.utils.errors import InputError, unknown

Scale = Literal["small", "full"]
PAPERS = {
    "gin": "Disentanglement by nonlinear ICA with GIN (Sorrenson, Rother and Koethe, 2020)",
    "self-supervised-gin": "Self-supervised GIN (2021)",
    "hlle-ica": "When is unsupervised disentanglement possible? (Horan, Richardson and Weiss, 2021)",
    "intervention": "Unsupervised disentanglement learning by intervention (2021)",
    "swap-contrast": "Reconstruction for disentanglement, contrast for invariance (2022)",
}


class Item(NamedTuple):
    """A table or figure."""

    name: str
    """paper/table-1"""
    what: str
    """what it shows"""
    study: str = ""
    """the module below `unweave.papers` that makes it; none where there is nothing to run"""
    runs: tuple[dict[str, Any], ...] = ({},)
    """options of the study at full scale, one for each time that it is run"""
    small: Mapping[str, Any] = MappingProxyType({})
    """what differs at small scale"""
    data: str = ""
    """what stands in for data of the paper that cannot be had"""


FACES = "faces of a small StyleGAN and sprites, in the place of eight manifolds of StyleGAN2"
DIGITS = "MNIST, where the paper has EMNIST"
SHAPES = "3DShapes, made again"
OWN = "colors of our own choice; 3DShapes, made again"
GIN_SMALL = {"datasets": 2, "seeds": 2, "steps": 400}
DRAWING = "a drawing of the idea: nothing to run"


def _gin() -> Iterator[Item]:
    study: dict[str, Any] = {"study": "gin.artificial", "small": GIN_SMALL}
    first, few, three = (({"only": (name,)},) for name in ("5 clusters, 100,000", "10,000 points", "3 clusters"))
    yield Item("figure-1", DRAWING)
    yield Item("figure-2", "two informative variables of ten, found", runs=first, **study)
    digits: dict[str, Any] = {"study": "gin.digits", "data": DIGITS, "small": {"steps": 60}}
    yield Item("figure-3", "the spectrum of digits, and PCA's", **digits)
    yield Item("figure-4", "variables that act on all digits alike", **digits)
    yield Item("figure-5", "variables that act on some digits", **digits)
    yield Item(
        "table-1", "exponential families of two parameters: `methods/flows/families.py`, tested against autograd"
    )
    yield Item("table-2", "the network for artificial data: the default of `GIN` on tables")
    yield Item("table-3", "the network for digits: the default of `GIN` on images of 28 x 28")
    yield Item("figure-6", "five clusters, 100,000 points", runs=first, **study)
    yield Item("figure-7", "five clusters, 10,000 points: too few", runs=few, **study)
    yield Item("figure-8", "three clusters", runs=three, **study)
    yield Item("figure-9", "samples, at full and at reduced temperature", **digits)
    for k in range(6):
        yield Item(f"figure-{10 + k}", f"variables {4 * k + 1} to {4 * k + 4}", **digits)


def _self_supervised() -> Iterator[Item]:
    small = {"trials": 2, "steps": 200}
    yield Item(
        "figure-1",
        "sources found by augmenting along two, and along one",
        "self_supervised_gin.artificial",
        small=small,
    )
    digits: dict[str, Any] = {"study": "gin.digits", "data": DIGITS, "runs": ({"method": "self-supervised"},)}
    digits |= {"small": {"steps": 60}}
    yield Item("figure-2", "some variables of digits", **digits)
    yield Item("table-1", "ranges of the augmentations: the defaults of `unweave.data.augment.draw_affine`")
    yield Item("figure-3", "augmented digits: `unweave.data.augment.draw_affine` and `warp` of your own images")
    yield Item("figure-4", "the spectrum of digits", **digits)
    for k, (low, high) in enumerate(((1, 2), (3, 6), (7, 10), (11, 14), (15, 18), (19, 20))):
        yield Item(f"figure-{5 + k}", f"variables {low} to {high}", **digits)


def _hlle() -> Iterator[Item]:
    small = {"quick": True, "seeds": 1, "steps": 60, "only": ("squares",)}
    spectral: dict[str, Any] = {"study": "hlle_ica.figures", "small": small, "data": FACES}
    taught: dict[str, Any] = {"part": "networks"}
    networks, both = spectral | {"runs": (taught,)}, spectral | {"runs": ({}, taught)}
    yield Item("figure-1", "two factors of photographs, found", **spectral)
    yield Item("figure-2", DRAWING)
    yield Item("figure-3", "HLLE gives the factors up to a linear map, ICA undoes it", **spectral)
    yield Item("figure-4", "the manifolds: `unweave data show faces`", data=FACES)
    yield Item("figure-5", "embeddings of one manifold by every method", **both)
    yield Item("figure-6", "MCC of every method over all manifolds", **both)
    yield Item("figure-7", "images around a code of the Hessian autoencoder and of others", **networks)
    yield Item("figure-8", "straight lines between two codes, decoded", **networks)


def _intervention() -> Iterator[Item]:
    small = {"scale": "small"}
    few = {"only": ("FactorVAE", "intervention"), "seeds": 1}
    yield Item("figure-1", DRAWING)
    yield Item("figure-2", DRAWING)
    sprites = "dSprites, rendered again"
    ranks = "rank correlation of metrics over FactorVAE runs"
    both = {"data": "dsprites"}, {"data": "shapes3d"}
    once = small | {"data": "dsprites"}  # to see it run
    yield Item("figure-3", ranks, "intervention.metric", both, small=once, data=f"{sprites}; {SHAPES}")
    small_table = small | few | {"lambda_adv": 10.0}
    tables: dict[str, Any] = {"study": "intervention.tables", "small": small_table}
    yield Item(
        "table-1",
        "dSprites, independent and correlated factors; also with lambda_adv 30",
        runs=({"table": "dsprites"}, {"table": "dsprites", "lambda_adv": 30.0}),
        data=sprites,
        **tables,
    )
    yield Item("table-2", "3DShapes, likewise", runs=({"table": "shapes3d"},), data=SHAPES, **tables)
    yield Item("table-3", "colored MNIST, likewise", runs=({"table": "cmnist"},), **tables)
    yield Item("figure-4", "importance matrices and traversals", runs=({"table": "shapes3d"},), data=SHAPES, **tables)
    yield Item("figure-5", "nearest flowers, feature by feature", "intervention.flowers", small=small)
    yield Item("figure-6", "the joint distributions of correlated factors: `unweave.datasets.Resampled`")
    for number, of in ((4, "dSprites and 3DShapes"), (6, "colored MNIST"), (8, "flowers")):
        yield Item(f"table-{number}", f"encoder and decoder for {of}: set in the study")
        yield Item(f"table-{number + 1}", f"discriminator and weight network for {of}: set in the study")


def _swap_contrast() -> Iterator[Item]:
    small = {"scale": "small"}
    for k in range(4):
        yield Item(f"figure-{k + 1}", DRAWING)
    digits = {"data": "colored-mnist"}, {"data": "rotation-colored-mnist"}
    few = small | {"only": ("CNN", "swap and contrast"), "seeds": 1, "steps": 300}
    tables: dict[str, Any] = {
        "study": "swap_contrast.tables",
        "small": few,
        "data": "colors of our own choice; 3DShapes, made again",
    }
    tuned = [run | {"best": True} for run in digits]
    every = (digits[0], tuned[0], {"data": "shapes3d"})
    yield Item("table-1", "accuracy on unseen nuisances (MPI3D where its file is: study by hand)", runs=every, **tables)
    yield Item("table-2", "the same on turned digits", runs=(digits[1], tuned[1]), **tables)
    taken: dict[str, Any] = {"study": "swap_contrast.disentangled", "data": SHAPES}
    yield Item(
        "table-3",
        "how well 3DShapes is taken apart",
        small=small | {"only": ("swap and contrast", "Ada-GVAE"), "seeds": 1},
        **taken,
    )
    yield Item("table-4", "what the warm-ups do", runs=({"warm_ups": True},), small=small | {"seeds": 1}, **taken)
    schemes = {"small": few | {"only": ("swap and contrast", "joint", "cross-entropy")}}
    yield Item("table-5", "training schemes", runs=digits, **tables | schemes)
    for k, what in enumerate(("t-SNE of both parts", "which codes move, colored", "turned", "what the decoder makes")):
        yield Item(f"figure-{5 + k}", what, "swap_contrast.figures", small=small)


def items() -> dict[str, Item]:
    """All of them by name."""
    makers = (_gin, _self_supervised, _hlle, _intervention, _swap_contrast)
    found = {}
    for paper, make in zip(PAPERS, makers, strict=True):
        for item in make():
            found[f"{paper}/{item.name}"] = item._replace(name=f"{paper}/{item.name}")
    return found


def find(name: str) -> Item:
    """An item by its name, or an error that says which are near."""
    every = items()
    if name not in every:
        raise unknown("table or figure", name, every)
    return every[name]


# Studies --------------------------------------------------------------------------------------------------------


def module(item: Item) -> Any:
    """Import the script of an item."""
    if not item.study:
        raise InputError(f"{item.name} has nothing to run: {item.what}")
    return import_module(f"unweave.papers.{item.study}")


def options(item: Item, scale: Scale, out: Path | None = None) -> list[Any]:
    """The options of every run of an item's study; results go below `out`."""
    kind = module(item).Options
    found = []
    for run in item.runs:
        chosen = kind(**run | (dict(item.small) if scale == "small" else {}))
        where = Path(*chosen.out.parts[1:])  # without the leading papers/
        if out is not None:
            chosen = replace(chosen, out=out / where)
        if chosen not in found:  # at small scale several may be the same
            found.append(chosen)
    return found


def state(item: Item, out: Path) -> str:
    """A verdict, from full scale where that was run, else from the small one."""
    if not item.study:
        return "nothing to run"
    full = findings(item, out).verdict()
    small = findings(item, out, "small").verdict() if full == "not run" else full
    return full if small in (full, "not run") else f"small scale alone: {small}"


def findings(item: Item, out: Path, scale: Scale = "full") -> Findings:
    """What the stored results of an item say; nothing where there are none."""
    if not item.study:
        return Findings()
    study, part = module(item), item.name.partition("/")[2]
    return together(study.findings(each, part) for each in options(item, scale, out))


def perform(item: Item, chosen: list[Any], *, quiet: bool = False) -> Findings:
    """Run the study of an item; what is done already is not repeated. Quiet: what it prints goes with the progress."""
    study, part = module(item), item.name.partition("/")[2]
    with contextlib.redirect_stdout(sys.stderr) if quiet else contextlib.nullcontext():
        for each in chosen:
            study.main(plausible(each))
    return together(study.findings(each, part) for each in chosen)


def stored() -> Path:
    """Return the folder of the results that come with the package."""
    return Path(__file__).parent


# The page -------------------------------------------------------------------------------------------------------


HEAD = """# The papers

Every table and figure of the five papers, and what became of it here. This page is written by `unweave paper docs` from
the results under `src/unweave/papers`; what was run and how long it took is in [studies.md](studies.md). A verdict is
by the claims of the paper; its numbers stand beside ours, mean and 95 % interval over the runs. That one method is
ahead of another holds where so large a lead has a chance below one in twenty (Welch's test over the runs, one-sided).
Nothing is corrected for the number of claims: of twenty leads that are none, one will hold.
"""


def page(out: Path) -> str:
    """All that is stored, as Markdown."""
    parts = [HEAD]
    every = items()
    for paper, title in PAPERS.items():
        parts += [
            f"\n## {title}\n",
            "| name | shows | verdict | data in the place of the paper's |",
            "|---|---|---|---|",
        ]
        details = []
        for name, item in every.items():
            if not name.startswith(f"{paper}/"):
                continue
            found = findings(item, out)
            parts.append(f"| {name} | {item.what} | {state(item, out)} | {item.data} |")
            details += _details(name, found)
        parts += details
    return "\n".join(parts) + "\n"


def _details(name: str, found: Findings) -> list[str]:
    """Claims and numbers of one item."""
    if not found.claims:
        return []
    lines = [f"\n### {name}\n", *(f"- {c.told()}" for c in found.claims), *(f"- note: {text}" for text in found.notes)]
    if found.missing:
        lines.append(f"- not run: {', '.join(found.missing)}")
    if found.numbers:
        lines += [f"\n{found.distance()}.\n", "| | runs | ours | paper |", "|---|---|---|---|"]
        lines += [f"| {n.name} | {len(n.ours)} | {plus_minus(n.ours)} | {n.paper:g} |" for n in found.numbers]
    return lines
