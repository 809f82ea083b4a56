"""History of a training in a run folder: every loss term, and the likelihood at its end."""

from __future__ import annotations

import warnings
from pathlib import Path

import pandas as pd

from unweave.methods.base import Method
from unweave.methods.encoding import log_volume
from unweave.methods.persistence import HISTORY
from unweave.utils.errors import first_line

FINAL_SHARE = 0.1  # of the history: its end, over which a likelihood is averaged


def read_history(folder: Path) -> pd.DataFrame:
    """Return the loss terms of a run, one row per logged step; empty, with a warning, if the file cannot be read.

    Methods without steps have none.
    """
    path = folder / HISTORY
    if not path.is_file():
        return pd.DataFrame()
    try:
        return pd.read_parquet(path)
    except Exception as error:  # whatever an altered file can cause
        warnings.warn(f"{path} cannot be read ({first_line(error)}): its loss curves are left out", stacklevel=2)
        return pd.DataFrame()


def final_likelihood(method: Method, history: pd.DataFrame) -> float | None:
    """Return the log-likelihood per observation, in nats, of the last tenth of a training; None where there is none.

    It is that of observations in the units of the data, also of a method that has learned from scaled columns.
    """
    value = method.log_likelihood(history.tail(max(1, int(FINAL_SHARE * len(history)))))
    return None if value is None else value - log_volume(method)
