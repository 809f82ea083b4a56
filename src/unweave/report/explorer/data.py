"""What the explorer knows about the data: a sample with codes, factors and thumbnails, and facts about each code."""

from __future__ import annotations

import base64
import warnings
from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
import torch

from unweave.data.core import Factor
from unweave.experiments.evaluation import MetricInputs
from unweave.experiments.ordered import IMAGE_DIMENSIONS, LOWER_QUANTILE, UPPER_QUANTILE, varying_codes
from unweave.methods.base import Method
from unweave.methods.encoding import encode_array
from unweave.metrics.explain import MIN_INFORMATION, explain
from unweave.report.explorer.thumbnails import pack_thumbnails
from unweave.report.sample import DrawnData
from unweave.utils.errors import InputError

MAX_COLUMN_VALUES = 2**18  # values of a table that the page holds
BINS = 48  # of the histogram behind a slider
MARGIN = 0.12  # of the range of a code that a slider adds on both sides
EFFECT_OBSERVATIONS, MAX_DECODED = 16, 4_096  # from which the effect of a code is measured
MIN_EFFECT = 0.02  # of the strongest code, below which a code is dead


class CodeFacts(NamedTuple):
    """What the page shows about one code."""

    low: float  # the lower end of its slider
    high: float
    lower: float  # quantiles 5 % and 95 %: the ends of a traversal
    upper: float
    counts: list[int]  # histogram between low and high
    effect: float  # how much it changes the decoded observation, the strongest code being 1
    is_dead: bool
    factor: int  # index of the factor that it contains most of; -1 for none
    score: float  # share of that factor's entropy
    period: float | None


class Associations(NamedTuple):
    """Factor-code matrices over the factors that are scored."""

    factors: list[int]  # (k,): indices of the factors
    information: np.ndarray  # (k, d): mutual information, see `Explanation`
    importance: np.ndarray  # (k, d): importance of DCI


def describe_data(method: Method, sample: DrawnData) -> dict[str, Any]:
    """Return everything that the page shows except the decoder, as JSON values."""
    return describe_sample(sample) | describe_method(method, sample)[0]


def describe_sample(sample: DrawnData) -> dict[str, Any]:
    """Return the observations and their factors, which all methods share."""
    return {
        "count": len(sample.x),
        "shape": list(sample.x.shape[1:]),
        "factors": [describe_factor(f, sample.truth[:, j]) for j, f in enumerate(sample.factors)],
        "rowNames": list(sample.row_names) if sample.row_names else None,
        **describe_observations(sample),
    }


def describe_method(method: Method, sample: DrawnData) -> tuple[dict[str, Any], np.ndarray, list[CodeFacts]]:
    """Return the codes of a method and what is known of them, as JSON values; then codes (n, d) and facts (d,)."""
    codes = encode_array(method, sample.x)
    periods = method.code_periods()
    associations = associate(sample, codes, periods)
    facts = describe_codes(method, codes, periods, associations)
    strength = [-max(fact.effect, 0.0) for fact in facts]
    values = {
        "codes": to_base64(codes),
        "facts": [fact._asdict() for fact in facts],
        "order": np.lexsort((strength, [fact.is_dead for fact in facts])).tolist(),
        "groups": [{"name": name, "codes": group} for name, group in method.named_codes().items()],
        "scored": associations.factors,
        "information": np.round(associations.information, 4).tolist(),
        "importance": np.round(associations.importance, 4).tolist(),
    }
    return values, codes, facts


def describe_observations(sample: DrawnData) -> dict[str, Any]:
    """Return thumbnails of images with their gray levels, or the values of a table with mean and deviation."""
    x = sample.x
    if x.ndim - 1 in IMAGE_DIMENSIONS:
        low, high = (0.0, 1.0) if x.min() > -0.01 and x.max() < 1.01 else (float(x.min()), float(x.max()))
        return {"kind": "image", "levels": [low, high], **describe_pictures(x)}
    flat = x.reshape(len(x), -1)
    width = flat.shape[1]
    names = sample.feature_names if len(sample.feature_names) == width else [f"column {i + 1}" for i in range(width)]
    deviation = flat.std(0)
    return {
        "kind": "table",
        "columns": list(names),
        "means": flat.mean(0).tolist(),
        "deviations": np.where(deviation > 0, deviation, 1.0).tolist(),
        **describe_pictures(x),
    }


def describe_pictures(x: np.ndarray) -> dict[str, Any]:
    """Return thumbnails of images, or the values of a table; of a large one only the first rows."""
    if x.ndim - 1 in IMAGE_DIMENSIONS:
        return {"thumbnails": pack_thumbnails(x)}
    flat = x.reshape(len(x), -1)
    return {"values": to_base64(flat[: max(1, MAX_COLUMN_VALUES // flat.shape[1])])}


def describe_factor(factor: Factor, values: np.ndarray) -> dict[str, Any]:
    """Return name, kind and values of a factor, (n,)."""
    numbers = factor.numeric_values(torch.as_tensor(values)).numpy(force=True)
    named = any(isinstance(value, str) for value in factor.values)
    return {
        "name": factor.name,
        "kind": factor.kind,
        "period": factor.period,
        "names": [str(value) for value in factor.values] if named else None,
        "values": to_base64(numbers),
    }


def to_base64(array: np.ndarray) -> str:
    """Return numbers as little-endian float32 in base64."""
    return base64.b64encode(np.ascontiguousarray(array, "<f4").tobytes()).decode()


# Codes ----------------------------------------------------------------------------------------------------------------


def associate(sample: DrawnData, codes: np.ndarray, periods: Sequence[float | None]) -> Associations:
    """Return mutual information and DCI importance; without factors, or with too few observations, no rows."""
    scored = [j for j, f in enumerate(sample.factors) if not f.noise and np.ptp(sample.truth[:, j]) > 0]
    empty = np.zeros((0, codes.shape[1]))
    if not scored:
        return Associations([], empty, empty)
    inputs = MetricInputs(None, torch.as_tensor(sample.truth), sample.factors, code_periods=periods)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # scores that mean little, of few observations: the page shows their number
            result = explain(inputs.prepare(scored), codes)
    except InputError:  # too few observations to train on
        return Associations([], empty, empty)
    return Associations(scored, result.information, result.importance)


def describe_codes(
    method: Method, codes: np.ndarray, periods: Sequence[float | None], associations: Associations
) -> list[CodeFacts]:
    """Return range, density, effect and best factor of every code."""
    bounds = np.quantile(codes, [LOWER_QUANTILE, UPPER_QUANTILE], axis=0)  # (2, d)
    effects = decoded_effects(method, codes, bounds)
    varying = np.isin(np.arange(codes.shape[1]), varying_codes(codes))
    is_dead = ~varying if effects is None else ~varying | (effects < MIN_EFFECT)
    if effects is None:
        information = associations.information
        effects = information.max(0) if len(information) else np.where(varying, codes.std(0), 0.0)
    facts = []
    for j, period in enumerate(periods):
        low, high = slider_range(codes[:, j], period)
        lower, upper = bounds[:, j].tolist() if period is None else (0.0, period)
        values = codes[:, j] if period is None else codes[:, j] % period
        counts = np.histogram(values, BINS, (low, high))[0].tolist()
        factor, score = best_factor(associations, j)
        effect = float(effects[j])
        facts.append(CodeFacts(low, high, lower, upper, counts, effect, bool(is_dead[j]), factor, score, period))
    return facts


def slider_range(values: np.ndarray, period: float | None) -> tuple[float, float]:
    """Return the ends of a slider: a full turn, or the range of the data with a margin on both sides."""
    if period is not None:
        return 0.0, period
    low, high = float(values.min()), float(values.max())
    margin = MARGIN * (high - low) or max(1e-3, 1e-3 * abs(low))
    return low - margin, high + margin


def best_factor(associations: Associations, code: int) -> tuple[int, float]:
    """Return the factor that a code contains most of, and how much of its entropy; -1 if it is informative of none."""
    if not associations.factors:
        return -1, 0.0
    row = int(associations.information[:, code].argmax())
    score = float(associations.information[row, code])
    return (associations.factors[row], round(score, 4)) if score >= MIN_INFORMATION else (-1, round(score, 4))


def decoded_effects(method: Method, codes: np.ndarray, bounds: np.ndarray) -> np.ndarray | None:
    """Return how much each code changes what is decoded, from its lower to its upper quantile, (d,).

    It is the root mean square over observations and pixels, or columns in units of their deviation, divided by that
    of the strongest code. None for a method without a decoder.
    """
    if not method.has_decoder():
        return None
    width = codes.shape[1]
    starts = codes[: max(1, min(EFFECT_OBSERVATIONS, MAX_DECODED // (2 * width)))]
    scale = method.inverse_transform(codes[:EFFECT_OBSERVATIONS]).reshape(-1, prod(method.shape_)).std(0)
    scale = np.where(scale > 0, scale, 1.0) if len(method.shape_) not in IMAGE_DIMENSIONS else np.ones_like(scale)
    effects = np.zeros(width)
    for j in range(width):
        ends = np.stack([starts, starts])  # (2, m, d)
        ends[:, :, j] = bounds[:, j, None]
        decoded = method.inverse_transform(ends.reshape(-1, width)).reshape(2, len(starts), -1)
        effects[j] = np.sqrt(np.mean(np.square((decoded[1] - decoded[0]) / scale)))
    strongest = effects.max()
    return effects / strongest if strongest > 0 else effects
