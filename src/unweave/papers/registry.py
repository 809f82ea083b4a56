"""Every table and figure of the five papers: the script that makes it, its options, and substitute data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from unweave.utils.errors import unknown

PAPERS = {
    "gin": "Disentanglement by nonlinear ICA with GIN (Sorrenson, Rother and Köthe, 2020)",
    "self-supervised-gin": "Self-supervised GIN (2021)",
    "hlle-ica": "When is unsupervised disentanglement possible? (Horan, Richardson and Weiss, 2021)",
    "intervention": "Unsupervised disentanglement learning by intervention (2021)",
    "swap-contrast": "Reconstruction for disentanglement, contrast for invariance (2022)",
    "baselines": "Baselines: variational autoencoders on dSprites (no paper)",
}
SHORT_TITLES = {
    "gin": "GIN",
    "self-supervised-gin": "Self-supervised GIN",
    "hlle-ica": "HLLE + ICA",
    "intervention": "Intervention",
    "swap-contrast": "Swap and contrast",
    "baselines": "Baselines",
}


class Item(NamedTuple):
    """A table or figure of a paper, or an experiment of our own beside it."""

    name: str
    """Name on the command line, e.g. gin/figure-2."""
    title: str
    """Content of the table or figure in a few words."""
    script: str = ""
    """Module below `unweave.papers`; empty where there is nothing to run."""
    runs: tuple[dict[str, Any], ...] = ({},)
    """Options of the script at full scale, one entry for each time that it is run."""
    small: Mapping[str, Any] = MappingProxyType({})
    """Options that differ at small scale."""
    data: str = ""
    """Substitutes for data of the paper that are not available."""
    own: bool = False
    """Whether the experiment is ours, with no table or figure in the paper."""
    converged: Mapping[str, Any] = MappingProxyType({})
    """Options that differ in longer runs, whose stored results take the place of the others."""

    @property
    def paper(self) -> str:
        """Name of the paper."""
        return self.name.partition("/")[0]

    @property
    def part(self) -> str:
        """Name without the paper, e.g. figure-2."""
        return self.name.partition("/")[2]

    @property
    def folder(self) -> str:
        """Folder of the paper below `unweave/papers`."""
        return self.paper.replace("-", "_")


FACES = "faces of a small StyleGAN, and sprites, instead of eight StyleGAN2 manifolds"
DIGITS = "MNIST instead of EMNIST"
SHAPES = "a rendered look-alike of 3DShapes"
SPRITES = "dSprites rendered from geometry"
COLORS = "colors of our own choice"
DRAWING = "drawing of the idea"


def _gin() -> Iterator[Item]:
    script: dict[str, Any] = {"script": "gin.artificial", "small": {"datasets": 2, "seeds": 2, "steps": 400}}
    both = ({"only": ("5 clusters, 100,000 points", "5 clusters, steep mixing")},)
    digits: dict[str, Any] = {"script": "gin.digits", "data": DIGITS, "small": {"steps": 20, "seeds": 1}}
    yield Item("figure-1", DRAWING)
    yield Item("figure-2", "two informative variables of ten", runs=both, **script)
    yield Item("figure-3", "spectrum of digits, and PCA's", **digits)
    yield Item("figure-4", "variables that act on all digits alike", **digits)
    yield Item("figure-5", "variables that act on some digits", **digits)
    yield Item("table-1", "exponential families: methods/flows/families.py")
    yield Item("table-2", "network for artificial data: the default of GIN")
    yield Item("table-3", "network for digits: the default of GIN on images")
    yield Item("figure-6", "five clusters, 100,000 points", runs=both, **script)
    few = ({"only": ("5 clusters, 10,000 points", "separated clusters")},)
    yield Item("figure-7", "five clusters, 10,000 points", runs=few, **script)
    three = ({"only": ("3 clusters, 100,000 points", "3 clusters, steep mixing")},)
    yield Item("figure-8", "three clusters", runs=three, **script)
    yield Item("figure-9", "samples at full and reduced temperature", **digits)
    for k in range(6):
        yield Item(f"figure-{10 + k}", f"variables {4 * k + 1} to {4 * k + 4}", **digits)
    yield Item("mixings", "all settings: soft and steep mixing", own=True, **script)
    small = {"datasets": 2, "seeds": 2, "steps": 100}
    tiny = {"steps": 20, "seeds": 1, "clusters": 2, "classifier_steps": 20}
    yield Item("soft-labels", "crossbars and loops", "gin.soft_labels", small=tiny, data=DIGITS, own=True)
    yield Item("steep", "steep mixing, labels in the loss", "gin.steep", small=small, own=True)


def _self_supervised() -> Iterator[Item]:
    script = "self_supervised_gin.artificial"
    yield Item("figure-1", "sources from augmentations along two, or one", script, small={"trials": 2, "steps": 200})
    digits: dict[str, Any] = {"script": "self_supervised_gin.digits", "data": DIGITS}
    digits |= {"small": {"steps": 20, "rates": (3e-4,), "seeds": 1}}
    yield Item("figure-2", "some variables of digits", **digits)
    yield Item("table-1", "ranges of augmentations: data/augment.py")
    yield Item("figure-3", "augmented digits: data/augment.py")
    yield Item("figure-4", "spectrum of digits", **digits)
    for k, (low, high) in enumerate(((1, 2), (3, 6), (7, 10), (11, 14), (15, 18), (19, 20))):
        yield Item(f"figure-{5 + k}", f"variables {low} to {high}", **digits)


def _hlle() -> Iterator[Item]:
    small = {"quick": True, "seeds": 1, "steps": 60, "only": ("squares",)}
    spectral: dict[str, Any] = {"script": "hlle_ica.embeddings", "small": small, "data": FACES}
    network_run: dict[str, Any] = {"part": "networks"}
    networks, both = spectral | {"runs": (network_run,)}, spectral | {"runs": ({}, network_run)}
    yield Item("figure-1", "two factors recovered from photographs", **spectral)
    yield Item("figure-2", DRAWING)
    yield Item("figure-3", "HLLE: factors up to a linear map; ICA undoes it", **spectral)
    yield Item("figure-4", "the manifolds: `unweave data show faces`", data=FACES)
    yield Item("figure-5", "embeddings of one manifold by every method", **both)
    yield Item("figure-6", "MCC of every method over all manifolds", **both)
    yield Item("figure-7", "images around a code, by autoencoder", **networks)
    yield Item("figure-8", "interpolations between two codes", **networks)
    robust: dict[str, Any] = {"script": "hlle_ica.robustness", "own": True}
    few = {"max_points": 300, "manifolds": ("squares-xy",)}
    yield Item("robustness", "points, noise, JPEG, missing regions", **robust, small=few)
    raw: tuple[dict[str, Any], ...] = ({"part": "preprocessing"},)
    yield Item("preprocessing", "raw pixels, projection, and blur", runs=raw, **robust, small=few)
    factors: tuple[dict[str, Any], ...] = ({"part": "factors"},)
    yield Item("factors", "two to four factors of sprites", runs=factors, **robust, small={"max_points": 1_000})
    hues: dict[str, Any] = {"script": "hlle_ica.hues", "small": {"hues": 1}, "data": SHAPES, "own": True}
    yield Item("hues", "parts that hues separate, aligned", **hues)


def _intervention() -> Iterator[Item]:
    small: dict[str, Any] = {"scale": "small"}
    yield Item("figure-1", DRAWING)
    yield Item("figure-2", DRAWING)
    metric: dict[str, Any] = {"script": "intervention.metric", "small": small | {"data": "dsprites"}}
    both_sets = {"data": "dsprites"}, {"data": "shapes3d"}
    ranks = "rank correlation of metrics"
    long: dict[str, Any] = {"steps": 30_000, "seeds": 5}
    yield Item("figure-3", ranks, runs=both_sets, data=f"{SPRITES}; {SHAPES}", converged=long, **metric)
    few = small | {"only": ("FactorVAE", "intervention"), "seeds": 1, "lambda_adv": 10.0}
    tables: dict[str, Any] = {"script": "intervention.tables", "small": few, "converged": {"converged": True}}
    dsprites = ({"table": "dsprites"}, {"table": "dsprites", "lambda_adv": 30.0})
    yield Item("table-1", "dSprites, independent and correlated", runs=dsprites, data=SPRITES, **tables)
    yield Item("table-2", "3DShapes, independent and correlated", runs=({"table": "shapes3d"},), data=SHAPES, **tables)
    yield Item("table-3", "colored MNIST, independent and correlated", runs=({"table": "cmnist"},), **tables)
    yield Item("figure-4", "importance and traversals", runs=({"table": "shapes3d"},), data=SHAPES, **tables)
    long = {"steps": 20_000, "lr": 1e-4, "translator": "ridge"}
    yield Item("figure-5", "nearest flowers by each feature", "intervention.flowers", small=small, converged=long)
    yield Item("figure-6", "correlated factors: datasets/resampled.py")
    for number, images in ((4, "dSprites and 3DShapes"), (6, "colored MNIST"), (8, "flowers")):
        yield Item(f"table-{number}", f"encoder, decoder: {images}")
        yield Item(f"table-{number + 1}", f"discriminator: {images}")
    ablation = tables | {"small": few | {"only": ()}, "own": True}
    for data in ("dsprites", "cmnist"):
        title = f"losses left out one at a time, {data}"
        yield Item(f"ablation-{data}", title, runs=({"table": data, "ablate": True},), **ablation)
    compared: dict[str, Any] = {"script": "intervention.translators", "small": small | {"seeds": 2}, "own": True}
    both = tuple({"data": data} for data in ("cmnist", "dsprites"))
    yield Item("ablation-diff", "translators of L_diff at equal compute", runs=both, data=SPRITES, **compared)
    steadied = tuple({"data": data, "stability": True} for data in ("cmnist", "dsprites"))
    yield Item("ablation-seeds", "what makes seeds agree", runs=steadied, data=SPRITES, **compared)
    shapes = ({"data": "shapes3d", "scale": "small", "seeds": 4, "steps": 4_000},)
    reduced = {"seeds": 1, "steps": 0}
    yield Item("figure-3-small", f"{ranks}, small networks", metric["script"], shapes, reduced, SHAPES, own=True)


def _swap_contrast() -> Iterator[Item]:
    small: dict[str, Any] = {"scale": "small"}
    for k in range(4):
        yield Item(f"figure-{k + 1}", DRAWING)
    colored, rotated = {"data": "colored-mnist"}, {"data": "rotation-colored-mnist"}
    few = small | {"only": ("CNN", "swap and contrast"), "seeds": 1, "steps": 300}
    converged: dict[str, Any] = {"converged": {"converged": True}}
    tables: dict[str, Any] = {"script": "swap_contrast.tables", "small": few, "data": f"{COLORS}; {SHAPES}"} | converged
    digits = tables | {"data": COLORS}
    table_1 = (colored, colored | {"tuned": True}, {"data": "shapes3d"})
    yield Item("table-1", "accuracy on unseen nuisances (MPI3D: --data mpi3d)", runs=table_1, **tables)
    yield Item("table-2", "accuracy on rotated digits", runs=(rotated, rotated | {"tuned": True}), **digits)
    scores: dict[str, Any] = {"script": "swap_contrast.disentangled", "data": SHAPES} | converged
    two = small | {"only": ("swap and contrast", "Ada-GVAE"), "seeds": 1}
    yield Item("table-3", "disentanglement of 3DShapes", small=two, **scores)
    yield Item("table-4", "effect of the warm-ups", runs=({"warm_ups": True},), small=small | {"seeds": 1}, **scores)
    schemes = digits | {"small": few | {"only": ("swap and contrast", "joint", "cross-entropy")}}
    yield Item("table-5", "training schemes", runs=(colored, rotated), **schemes)
    titles = ("t-SNE of both parts", "which codes change, colored digits", "the same, rotated digits", "exchanges")
    for k, title in enumerate(titles):
        yield Item(f"figure-{5 + k}", title, "swap_contrast.code_figures", small=small)
    own: dict[str, Any] = {"own": True}
    ours = digits | own | {"small": few | {"only": ()}}
    yield Item("ablation", "losses left out one at a time", runs=(colored | {"ablate": True},), **ours)
    narrow = ({**colored, "ablate": True, "scale": "small", "steps": 2_500},)
    yield Item("ablation-small", "the same with a narrow network", runs=narrow, **ours)
    yield Item("batch-128", "baselines with 128 images a step", runs=(colored | {"batch": 128},), **digits | own)
    every = few | {"only": ("CNN", "swap and contrast")}
    tune = tuple(run | {"tune": True, "seeds": 2} for run in (colored, rotated))
    yield Item("tuning", "settings of every method compared", runs=tune, **digits | own | {"small": every})
    few_colors = {"palettes": ("alternating-100-55",), "seeds": 1, "steps": 60}
    calibration: dict[str, Any] = {"script": "swap_contrast.palettes", "small": few_colors, "data": COLORS}
    screening = ({"screen": True},)
    yield Item("palette-screening", "all palettes, few steps", runs=screening, **calibration | own)
    yield Item("palettes", "colors chosen with a plain CNN", **calibration | own)
    long = {"converged": True, "palette": "alternating-100-45", "seeds": 5}
    easy = tuple(run | long for run in (colored, rotated))
    yield Item("screened-colors", "digits at convergence, first palette of the screening", runs=easy, **digits | own)
    far = ({"data": "shapes3d", "distant": True},)
    yield Item("distant-colors", "3DShapes, colors far from training", runs=far, **tables | own)


def _baselines() -> Iterator[Item]:
    small = {"steps": 60, "seeds": 1}
    title = "variational autoencoders on three factors"
    yield Item("vae-learning", title, "baselines.vae_learning", small=small, data=SPRITES, own=True)


def items() -> dict[str, Item]:
    """Return every table, figure and own experiment by name."""
    makers = (_gin, _self_supervised, _hlle, _intervention, _swap_contrast, _baselines)
    return {
        f"{paper}/{item.name}": item._replace(name=f"{paper}/{item.name}")
        for paper, make in zip(PAPERS, makers, strict=True)
        for item in make()
    }


def find(name: str) -> Item:
    """Return an item by its name, or raise an error that suggests similar names."""
    every = items()
    if name not in every:
        raise unknown("table or figure", name, every)
    return every[name]
