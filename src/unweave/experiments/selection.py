"""Selection of runs without labels, and its agreement with scores that need labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from unweave import catalog
from unweave.experiments.grouping import best_value, needs_labels
from unweave.experiments.history import final_likelihood, read_history
from unweave.experiments.run import FinishedRun
from unweave.metrics.model_centrality import model_centrality
from unweave.metrics.translation import translation_difficulty
from unweave.metrics.udr import udr
from unweave.utils.errors import InputError

Criterion = Literal["udr", "model-centrality", "translation-difficulty", "likelihood", "isometry"]
MIN_DEVIATION = 0.05  # of a code, relative to the largest: codes below it have collapsed


def trust_scores(runs: Sequence[FinishedRun], by: Criterion) -> np.ndarray:
    """Return a score for each run without labels, (runs,); larger is better, NaN if the criterion is undefined."""
    if len({run.env["data"]["sha256"] for run in runs}) > 1:
        titles = ", ".join(sorted({run.env["data"]["title"] for run in runs}))
        raise InputError(f"these runs were evaluated on different observations ({titles}): select among equals")
    if by in ("udr", "model-centrality"):
        codes = [run.codes[:, run.codes.std(0) > MIN_DEVIATION * run.codes.std(0).max(initial=0)] for run in runs]
        return udr(codes) if by == "udr" else model_centrality(codes)
    each = {"translation-difficulty": _translation_ease, "likelihood": _likelihood, "isometry": _isometry}
    values = np.array([each[by](run) for run in runs])
    if np.isnan(values).all():
        raise InputError(f"no run here has a {by}: {REQUIREMENTS[by]}")
    return values


def agreement(runs: Sequence[FinishedRun], trust: np.ndarray) -> dict[str, float]:
    """Return the rank correlation of `trust` (runs,) with every score that needs labels."""
    table = pd.DataFrame([{k: v for k, v in run.scores.items() if needs_labels(k)} for run in runs])
    correlations = {}
    for name in table:
        both = table[name].notna() & ~np.isnan(trust)
        sign = 1.0 if best_value(str(name), (0.0, 1.0)) != 0 else -1.0  # of scores whose best value is 0
        if both.sum() >= 3 and table[name][both].nunique() > 1 and len(set(trust[both])) > 1:
            correlations[str(name)] = sign * float(spearmanr(table[name][both], trust[both]).statistic)
    return correlations


REQUIREMENTS = {
    "translation-difficulty": "it needs a method with a decoder and two codes that vary",
    "likelihood": "it needs a flow, or a method that bounds the likelihood (a VAE)",
    "isometry": "it needs near pairs of observations",
}


def _translation_ease(run: FinishedRun) -> float:
    """Return minus the relative translation difficulty; NaN for methods without a decoder."""
    score = run.scores.get("translation-difficulty[linear].relative", run.scores.get("translation-difficulty.relative"))
    if score is not None:
        return -score
    method = catalog.load(run.folder)
    try:
        return -translation_difficulty(method, run.codes).relative if method.has_decoder() else np.nan
    except InputError:  # one code alone, or none that varies
        return np.nan


def _likelihood(run: FinishedRun) -> float:
    """Return log p(x), or a lower bound, in nats per observation at the end of training; NaN where there is none."""
    if "log_likelihood" in run.env:
        value = run.env["log_likelihood"]
    else:  # runs of earlier versions did not keep it
        value = final_likelihood(catalog.load(run.folder), read_history(run.folder))
    return np.nan if value is None else float(value)


def _isometry(run: FinishedRun) -> float:
    """Return the correlation of distances in the data and in the codes, over near pairs."""
    in_data, in_codes = run.pairs.T
    return (
        float(np.corrcoef(in_data, in_codes)[0, 1])
        if len(run.pairs) > 2 and in_data.std() and in_codes.std()
        else np.nan
    )
