"""Rules that choose methods: each looks at what the user has and at measured facts.

A rule returns a suggestion, an obstacle, or None where the method is not meant for such data.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from unweave.data.core import Factor
from unweave.experiments.inspection import Inspection
from unweave.utils.errors import plural

MIN_ROWS = 50  # below which neither neighborhoods nor networks say anything
MIN_ICA_ROWS = 200
MIN_CLASS_ROWS = 20  # observations of a class, for its mean and deviation along every variable
MIN_VAE_IMAGES, MIN_VAE_ROWS = 5_000, 2_000
MIN_PAIRED_ROWS = 500
MAX_SPECTRAL_DIMENSION = 3
MAX_NOISE = 0.5  # share of the local variance outside of the tangent space
MAX_FLOW_SIZE = 6_000  # values of an observation: the weights of a flow grow with their square
MIN_DEVIATION, MAX_DEVIATION = 0.1, 10.0  # of columns, outside of which a flow needs them standardized
MAX_CODES = 10


class Situation(NamedTuple):
    """What the user has, and the facts about the data."""

    facts: Inspection
    label: str | None = None
    nuisances: tuple[str, ...] = ()
    pairs: bool = False
    is_paired: bool = False
    """Whether the data are pairs already."""
    augmentations: bool = False
    correlated: bool = False

    @property
    def rows(self) -> int:
        """Number of observations; very many for a generator."""
        return sys.maxsize if self.facts.rows is None else self.facts.rows

    @property
    def noun(self) -> str:
        """Observations with their number."""
        kind = "image" if self.facts.is_image else "row"
        return f"a generator of {kind}s" if self.facts.rows is None else plural(self.facts.rows, kind)

    def factor(self, name: str) -> Factor:
        """Return a factor by its name."""
        return next(factor for factor in self.facts.factors if factor.name == name)

    @property
    def is_noisy(self) -> bool:
        """Whether a table has few clear directions among many small ones, which are noise."""
        facts = self.facts
        if facts.is_image or facts.dimension is None or facts.noise > MAX_NOISE:
            return False
        # One direction more than the gap shows is rather one of lower variance.
        return facts.tangent_dimension + 1.5 < facts.dimension.low

    @property
    def is_nonlinear(self) -> bool:
        """Whether the data have clearly fewer dimensions than their principal components."""
        if self.facts.dimension is None:
            return False
        largest = self.facts.tangent_dimension if self.is_noisy else self.facts.dimension.high
        return largest + 0.5 < self.facts.rank

    @property
    def n_codes(self) -> int:
        """Number of codes for a linear method."""
        return max(1, min(self.facts.rank, MAX_CODES, self.rows - 1, self.facts.size))


class Suggestion(NamedTuple):
    """A method that suits, with the settings that it needs."""

    method: str
    reason: str
    settings: dict[str, Any]


class Obstacle(NamedTuple):
    """A method that cannot work, and why."""

    method: str
    reason: str


Rule = Callable[[Situation], Suggestion | Obstacle | None]


# Labels, nuisances, pairs, augmentations ------------------------------------------------------------------------------


def swap_contrast(s: Situation) -> Suggestion | Obstacle | None:
    """Suggest swap and contrast for labels and nuisances that occur in combinations."""
    if not s.label or not s.nuisances:
        return None
    if obstacle := _class_obstacle(s, "swap-contrast"):
        return obstacle
    names = ", ".join(s.nuisances)
    for name in s.nuisances:
        if s.factor(name).size is None:
            return Obstacle("swap-contrast", f"nuisance {name!r} is continuous: cut it into classes")
    single = [name for name, count in s.facts.varying.items() if count < 2]
    if single:
        text = f"class {single[0]!r} occurs with one value of {names} only ({len(single)} of {len(s.facts.varying)})"
        return Obstacle("swap-contrast", f"{text}, so no pair differs in the nuisance alone")
    count = min(s.facts.varying.values())
    reason = f"{len(s.facts.varying)} classes, each with {count} or more values of {names}: learns to ignore these"
    return Suggestion("swap-contrast", reason, _label(s) | {"nuisances": s.nuisances})


def plain_classifier(s: Situation) -> Suggestion | Obstacle | None:
    """Suggest a classifier that knows no nuisances, to compare with."""
    if not s.label or not s.nuisances or _class_obstacle(s, ""):
        return None
    name = "cnn-classifier" if s.facts.is_image else "vae-classifier"
    return Suggestion(name, "baseline without nuisances: compare both on held-out nuisances (--test-where)", _label(s))


def ada_gvae(s: Situation) -> Suggestion | Obstacle | None:
    """Suggest Ada-GVAE for pairs that share factors."""
    if not s.pairs and not s.is_paired:
        return None
    if s.rows < MIN_PAIRED_ROWS:
        return Obstacle("ada-gvae", f"{s.noun}: a VAE needs {MIN_PAIRED_ROWS} or more")
    continuous = [factor.name for factor in s.facts.factors if factor.size is None]
    if s.facts.factors and not s.is_paired and continuous:
        text = f"pairs are drawn by equal factors, and {continuous[0]!r} is continuous"
        return Obstacle("ada-gvae", f"{text}: leave it out of --data.factors, or call unweave.as_pairs")
    names = ", ".join(factor.name for factor in s.facts.factors)
    source = "your pairs" if s.is_paired or not names else f"pairs of rows that share {names}"
    return Suggestion("ada-gvae", f"{source}: codes that differ least in a pair are taken as shared", {})


def gin(s: Situation) -> Suggestion | Obstacle | None:
    """Suggest GIN for class labels and continuous observations."""
    if not s.label:
        return None
    if obstacle := _class_obstacle(s, "gin") or _flow_obstacle(s, "gin"):
        return obstacle
    counts = s.facts.classes[s.label]
    n = (len(counts) - 1) // 2
    identified = f"{len(counts)} classes identify {plural(n, 'factor')}" if n else "two classes are few: 3 identify one"
    reason = f"labels, {min(counts.values()):,} observations or more of each class; {identified} (2 n + 1 for n)"
    low, high = s.facts.deviations
    settings: dict[str, Any] = {"standardize": True} if low < MIN_DEVIATION or high > MAX_DEVIATION else {}
    if 10 * len(counts) > 500:  # the default
        settings["batch_size"] = 10 * len(counts)
    return Suggestion("gin", reason, _label(s) | settings)


def ivae(s: Situation) -> Suggestion | Obstacle | None:
    """Suggest iVAE for class labels."""
    if not s.label:
        return None
    if obstacle := _class_obstacle(s, "ivae"):
        return obstacle
    return Suggestion("ivae", "labels; as a VAE it also takes noise and few dimensions into account", _label(s))


def self_supervised_gin(s: Situation) -> Suggestion | Obstacle | None:
    """Suggest self-supervised GIN for images that may be moved."""
    if not s.augmentations:
        return None
    if not s.facts.is_image:
        text = "augmentations are translations, rotations and scalings, and these are no images"
        return Obstacle("self-supervised-gin", text)
    if s.rows < MIN_ROWS:
        return Obstacle("self-supervised-gin", f"{s.noun}: {MIN_ROWS} are needed at least")
    reason = "images whose translations, rotations and scalings are known not to matter"
    return _flow_obstacle(s, "self-supervised-gin") or Suggestion("self-supervised-gin", reason, {})


def _label(s: Situation) -> dict[str, Any]:
    return {"label": s.label} if len(s.facts.factors) > 1 else {}


def _class_obstacle(s: Situation, method: str) -> Obstacle | None:
    """Return why a label cannot be the class of a method."""
    assert s.label is not None
    if s.factor(s.label).size is None:
        return Obstacle(method, f"label {s.label!r} is continuous: cut it into classes, or state --data.ordinal")
    counts = s.facts.classes[s.label]
    rare = min(counts, key=lambda name: counts[name])
    if counts[rare] < MIN_CLASS_ROWS and s.facts.rows is not None:
        text = f"class {rare!r} has {plural(counts[rare], 'observation')}, and {MIN_CLASS_ROWS} are needed"
        return Obstacle(method, f"{text}: merge or drop rare classes")
    return None


def _flow_obstacle(s: Situation, method: str) -> Obstacle | None:
    if s.facts.binary:
        return Obstacle(method, "observations take two values, and a flow needs continuous ones")
    if s.facts.size > MAX_FLOW_SIZE:
        text = f"{s.facts.size:,} values of an observation: the weights of a flow grow with their square"
        return Obstacle(method, f"{text}; take images of at most 32 x 32")
    return None


# Nothing but the data -------------------------------------------------------------------------------------------------


def intervention_autoencoder(s: Situation) -> Suggestion | Obstacle | None:
    """Suggest the intervention autoencoder for correlated factors."""
    if not s.correlated:
        return None
    if s.rows < MIN_VAE_ROWS:
        return Obstacle("intervention-autoencoder", f"{s.noun}: about {MIN_VAE_ROWS:,} are needed")
    return Suggestion("intervention-autoencoder", "factors may be correlated: it does not make codes independent", {})


def hessian_ica(s: Situation) -> Suggestion | Obstacle | None:
    """Suggest HLLE+ICA for a connected manifold of few dimensions."""
    facts = s.facts
    if not facts.is_image and not s.is_nonlinear:
        return None
    if s.rows < MIN_ROWS or facts.dimension is None:
        return Obstacle("hessian-ica", f"{s.noun}: neighborhoods need {MIN_ROWS} or more")
    if s.correlated:
        return Obstacle("hessian-ica", "it takes factors to be independent, and yours are correlated")
    if facts.parts.number > 1:
        text = f"the data fall into {facts.parts.number} separate parts, and each would look like a factor"
        return Obstacle("hessian-ica", f"{text}: learn from each part alone, or from the largest")
    d = facts.tangent_dimension if s.is_noisy else facts.dimension.estimate
    if d > MAX_SPECTRAL_DIMENSION + 0.5:
        text = f"intrinsic dimension {facts.dimension.text()}"
        return Obstacle("hessian-ica", f"{text}: it works up to about {MAX_SPECTRAL_DIMENSION}")
    reason = f"intrinsic dimension {facts.dimension.text()}, one connected part: coordinates of the manifold"
    return Suggestion("hessian-ica", reason + "; closed loop: a code is an angle" * bool(facts.loop), {})


def linear_ica(s: Situation) -> Suggestion | Obstacle | None:
    """Suggest linear ICA for tables with non-Gaussian components."""
    g = s.facts.gaussianity
    if s.facts.is_image:
        return None
    if g is None:
        return Obstacle("linear-ica", f"{s.noun}: {MIN_ICA_ROWS} are needed to see what is Gaussian")
    if g.components > 1 and g.gaussian == g.components:
        text = f"all {g.components} components cannot be told from a Gaussian"
        return Obstacle("linear-ica", f"{text}, and ICA cannot separate Gaussian factors")
    if s.correlated:
        return Obstacle("linear-ica", "it takes factors to be independent, and yours are correlated")
    reason = f"{g.components - g.gaussian} of {plural(g.components, 'component')} are not Gaussian"
    reason += f"; the {g.gaussian} others stay mixed" * (g.gaussian > 1)
    reason += "; a linear baseline, since the data are curved" * s.is_nonlinear
    return Suggestion("linear-ica", reason, {"latent_dim": s.n_codes})


def beta_tc_vae(s: Situation) -> Suggestion | Obstacle | None:
    """Suggest a VAE for many images, or many rows of a curved table."""
    if s.correlated:
        return Obstacle("beta-tc-vae", "it makes codes independent, and your factors are correlated")
    if not s.facts.is_image and not s.is_nonlinear:
        return None
    needed = MIN_VAE_IMAGES if s.facts.is_image else MIN_VAE_ROWS
    if s.rows < needed:
        return Obstacle("beta-tc-vae", f"{s.noun}: a VAE needs about {needed:,}")
    reason = f"{s.noun}, no side information: seeds differ, so train several and let `unweave select` choose"
    return Suggestion("beta-tc-vae", reason, {})


def pca(s: Situation) -> Suggestion:
    """Suggest principal components where nothing else suits."""
    reason = "no other method suits: uncorrelated directions of largest variance, not factors"
    if s.rows < MIN_ROWS:
        reason = f"{s.noun}: only the directions of largest variance can be estimated; more rows allow more"
    elif s.facts.gaussianity is not None and s.facts.gaussianity.gaussian == s.facts.gaussianity.components:
        reason = "the data look Gaussian: uncorrelated directions are all that can be identified"
    return Suggestion("pca", reason, {"latent_dim": min(s.n_codes, 3) if s.rows < MIN_ROWS else s.n_codes})


SIDE_INFORMATION: tuple[Rule, ...] = (swap_contrast, plain_classifier, ada_gvae, gin, ivae, self_supervised_gin)
DATA_ONLY: tuple[Rule, ...] = (intervention_autoencoder, hessian_ica, linear_ica, beta_tc_vae)
