"""Claims of Tables 1, 2 and 5 of swap and contrast: who is best in the worst group."""

from __future__ import annotations

import numpy as np
import pandas as pd

from unweave.metrics.uncertainty import plus_minus
from unweave.papers.output import TextTable
from unweave.papers.swap_contrast.settings import CNN_IMPROVED, IMPROVED, OURS, PAPER, PAPER_BY_ANGLE, PRINTED, SCHEMES
from unweave.papers.verdicts import Claim, Findings, Number, compare_means

TEST_ANGLES = [-75.0, -65.0, 65.0, 75.0]


def paper_accuracy(data: str, method: str, angle: float) -> tuple[float, float] | None:
    """Return average and worst-group accuracy in the paper, at an angle where it is not NaN."""
    if np.isnan(angle):
        return PAPER.get(data, {}).get(method)
    return PAPER_BY_ANGLE.get(method, {}).get(angle)


def make_tables(rows: pd.DataFrame, data: str, title: str) -> list[TextTable]:
    """Return the tables of a dataset: ours with 95 % intervals, the paper's numbers in brackets."""
    overall = rows[rows["angle"].isna()]
    accuracies = {"average": "average (paper)", "worst": "worst group (paper)"}
    by_angle = rows["angle"].notna().any()
    columns = ["method", "runs", *(() if by_angle else accuracies.values()), "worst with class", "probe (chance)"]
    lines = []
    for name, group in overall.groupby("method", sort=False):
        cells = [] if by_angle else [_cell(group, column, data, str(name), np.nan) for column in accuracies]
        probe = f"{group['probe'].mean():.3f} ({group['chance'].mean():.3f})" if "probe" in group else "-"  # --tune
        explained = group["explained"].mean() if "explained" in group else np.nan  # NaN: no decoder
        cells += [plus_minus(group["worst of class"]), probe, "" if np.isnan(explained) else f"{explained:.2f}"]
        lines.append([str(name), f"{len(group)}", *cells])
    tables = [TextTable(title, [*columns, "explained"], lines)]
    if by_angle:
        tables = [make_angle_table(rows, data, f"{name}: {title}", key) for key, name in accuracies.items()] + tables
    return tables


def make_angle_table(rows: pd.DataFrame, data: str, title: str, column: str) -> TextTable:
    """Return a table with a column for each angle."""
    angles = sorted(rows["angle"].dropna().unique())
    lines = []
    for name, group in rows.groupby("method", sort=False):
        cells = [_cell(group[group["angle"] == angle], column, data, str(name), angle) for angle in angles]
        lines.append([str(name), *cells])
    return TextTable(title, ["method", *(f"{angle:+g}" for angle in angles)], lines)


def _cell(rows: pd.DataFrame, column: str, data: str, method: str, angle: float) -> str:
    paper = paper_accuracy(data, method, angle)
    theirs = f" ({paper[0 if column == 'average' else 1]:.3f})" if paper else ""
    return plus_minus(rows[column]) + theirs


def compare_methods(worst: pd.DataFrame, one: str, other: str, text: str, *, candidates: int = 1) -> tuple[Claim, ...]:
    """Return the claim that one method is ahead of another, on the seeds of both; none where one was not run."""
    if not {one, other} <= set(worst):
        return ()
    both = worst[[one, other]].dropna()
    scores = {str(column): both[column].tolist() for column in both}
    return compare_means(text, scores, one, [other], candidates=candidates)


def select_rows(rows: pd.DataFrame, part: str, *, by_angle: bool) -> pd.DataFrame:
    """Return the rows of a table: training schemes for Table 5, methods for the others, at the paper's angles."""
    schemes = rows["method"].str.startswith(f"{OURS}, ") & (rows["method"] != IMPROVED)
    if part == "table-5":
        rows, angles = rows[schemes | (rows["method"] == OURS)], [65.0]
    else:
        rows, angles = rows[~schemes | (rows["method"] == PRINTED)], TEST_ANGLES
    return rows[rows["angle"].isin(angles)] if by_angle else rows


def judge_table(rows: pd.DataFrame, data: str, part: str, suffix: str) -> Findings:
    """Return numbers and claims of a table.

    Args:
        rows: One row per run and angle.
        data: The dataset.
        part: "table-1", "table-2" or "table-5".
        suffix: Describes other settings than the defaults, e.g. ", tuned"; else empty.
    """
    by_angle, schemes = data == "rotation-colored-mnist", part == "table-5"
    rows = select_rows(rows, part, by_angle=by_angle)
    in_paper = PAPER_BY_ANGLE if by_angle else PAPER[data]
    numbers: list[Number] = []
    claims: tuple[Claim, ...] = ()
    for key, group in rows.fillna({"angle": 0.0}).groupby("angle", sort=False):
        angle = float(str(key))
        where = (f" at {angle:+g} degrees" if by_angle else f" on {data}") + suffix
        numbers += list_numbers(group, data, angle if by_angle else np.nan, where)
        claims += list_claims(group, where, {*in_paper}, schemes=schemes)
    compared = [name for name in in_paper if (name.startswith(OURS) if schemes else ", " not in name)]
    missing = [f"{name} on {data}{suffix}" for name in compared if name not in set(rows["method"])]
    return Findings(tuple(numbers), claims, missing=tuple(missing))


def list_numbers(rows: pd.DataFrame, data: str, angle: float, where: str) -> list[Number]:
    """Return the paper's numbers beside ours."""
    numbers = []
    for name, group in rows.groupby("method", sort=False):
        for paper, column in zip(paper_accuracy(data, str(name), angle) or (), ("average", "worst"), strict=False):
            numbers.append(Number(f"{name}{where}, {column}", group[column].tolist(), paper))
    return numbers


def list_claims(rows: pd.DataFrame, where: str, in_paper: set[str], *, schemes: bool) -> tuple[Claim, ...]:
    """Return the claims that ours is ahead of every other method, or of its other schemes, in the worst group."""
    worst = rows.pivot(index="seed", columns="method", values="worst")
    rivals = [
        str(name) for name in worst if name not in (OURS, IMPROVED, CNN_IMPROVED) and (schemes or name != PRINTED)
    ]
    claims: tuple[Claim, ...] = ()
    for name in rivals:
        for claim in compare_methods(worst, OURS, name, f"ours is ahead of {name} in the worst group{where}"):
            claims += (claim._replace(own=name not in in_paper, subject=name),)
    if schemes:
        return claims
    text = f"Eq. 10 as printed, chosen of {SCHEMES} schemes by these runs, is ahead of CNN in the worst group{where}"
    own = compare_methods(worst, PRINTED, "CNN", text, candidates=SCHEMES)
    for name in (OURS, "CNN", CNN_IMPROVED):
        lead = compare_methods(worst, IMPROVED, name, f"ours, improved, is ahead of {name} in the worst group{where}")
        own += tuple(claim._replace(subject=name) for claim in lead)
    return claims + tuple(claim._replace(own=True) for claim in own)
