"""One file per metric: `unweave.metrics.mcc(factors, codes)`, truth first, (n, k) and (n, d), numpy or torch."""

from typing import TYPE_CHECKING, Any

import pandas as pd

from ..discovery import contents
from ..errors import kebab
from ..scoring import chance_level, interval, numbers

globals().update(contents(__name__, lambda o: hasattr(o, "facts")))

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


def score_all(factors: Any, codes: Any, *, chance: bool = False, bootstrap: int = 0, seed: int = 0) -> pd.DataFrame:
    """Every score that needs factors, one row each: value, best, and on request the chance level and an interval.

    The chance level is the score of the same codes, shuffled; the interval holds 95 % of `bootstrap` resamples.
    """
    rows: dict[str, dict[str, float]] = {}
    found = contents(__name__, lambda o: hasattr(o, "facts"))
    for name, scorer in sorted(found.items()):
        if scorer.facts.truth != "factors":
            continue
        base = chance_level(scorer, factors, codes, seed=seed) if chance else {}
        bounds = interval(scorer, factors, codes, repeats=bootstrap, seed=seed) if bootstrap else {}
        for part, value in numbers(scorer(factors, codes)).items():
            row = {"value": value, "best": scorer.facts.best}
            row |= {"chance": base[part]} if chance else {}
            row |= dict(zip(("low", "high"), bounds[part], strict=True)) if bootstrap else {}
            rows[kebab(name) + (f".{part}" if part else "")] = row
    return pd.DataFrame(rows).T
