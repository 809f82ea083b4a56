"""Write the generated parts of the papers' READMEs, and the index docs/papers/index.md."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

from unweave.papers.output import TextTable
from unweave.papers.registry import PAPERS, SHORT_TITLES, Item, items
from unweave.papers.scripts import NOTHING_TO_RUN, describe_flags, describe_status, read_findings, read_tables
from unweave.papers.verdicts import join_claims
from unweave.utils.errors import InputError

LINE_LENGTH = 100
CLAIMS_ONLY = "/claims"  # ends the name of a block without tables
BLOCK = re.compile(r"<!-- generated: (\S+) -->\n.*?<!-- end -->\n", re.DOTALL)

INDEX = """# The five papers

Unweave has a script for every table and figure of five papers. This page says which of them we
reproduced. Each paper has a page with the claim, our numbers beside the paper's, the figures, the
commands and the limitations. The numbers count tables and figures that make a claim."""

LEGEND = """## What the words mean

- **reproduced**: every claim of the paper about it holds in our runs. A lead of one method over
  another counts where Welch's one-sided test over runs has p < 0.05, not corrected for the number
  of claims.
- **partly reproduced**: some claims hold.
- **mean only**: the means agree with a claim, but p > 0.05.
- **not reproduced**: no claim holds.
- **drawn**: a figure that makes no claim we could test.
- **not run**; **nothing to run**: a drawing of the idea, or settings that are our defaults.
- **run**: an experiment of ours that has no table or figure in the paper.

`unweave paper list` adds seeds and steps. Run one with `unweave paper run PAPER/NAME`. This page is
written by `unweave paper docs` from the results under `src/unweave/papers`."""

COUNTED = ("reproduced", "partly reproduced", "mean only", "not reproduced", "not run")


def make_index(out: Path) -> str:
    """Return docs/papers/index.md: the status of every item, with links to the pages."""
    parts = [INDEX, "", format_table(summary_table(out)), LEGEND]
    for paper, title in PAPERS.items():
        parts.append(f"\n## {title}\n\n[Tables, figures and commands]({paper}.md)\n")
        parts.append(format_table(status_table(paper, out)).rstrip())
    return "\n".join([*parts, "", "```{toctree}", ":hidden:", "", *PAPERS, "```"]) + "\n"


def summary_table(out: Path, target: str = "({paper}.md)") -> TextTable:
    """Return how many tables and figures that make a claim are reproduced, partly reproduced, and so on.

    Args:
        out: Folder of the papers' results.
        target: Markdown behind the titles, which links them.
    """
    rows = []
    for paper, title in SHORT_TITLES.items():
        own = [item for item in items().values() if item.paper == paper and item.script and not item.own]
        statuses = [brief_status(item, out).partition(";")[0] for item in own]
        counts = [str(statuses.count(status) or "") for status in COUNTED]
        if own:
            rows.append([f"[{title}]{target.format(paper=paper)}", *counts])
    return TextTable("", ("paper", *(status.replace("partly reproduced", "partly") for status in COUNTED)), rows)


def update_summary(text: str, out: Path) -> str:
    """Return the README of the repository with its table of the papers written again."""
    table = format_table(summary_table(out, "[{paper}]"))
    links = [f"[{paper}]: src/unweave/papers/{paper.replace('-', '_')}/README.md" for paper in PAPERS if paper in table]
    body = "\n".join([table, *links])
    return BLOCK.sub(f"<!-- generated: papers -->\n\n{body}\n\n<!-- end -->\n", text)


def status_table(paper: str, out: Path, *, every: bool = True) -> TextTable:
    """Return the status of the items of a paper, without numbers: of every item, or of those that have a script."""
    own = [item for item in items().values() if item.paper == paper and (item.script or every)]
    return TextTable(
        "", ("name", "shows", "status"), [[item.part, item.title, brief_status(item, out)] for item in own]
    )


def _describe_nothing_to_run(paper: str) -> str:
    """Return a sentence about the items of a paper that have no script."""
    names = [item.part for item in items().values() if item.paper == paper and not item.script]
    text = f"Drawings of the idea, and settings that are our defaults: {', '.join(names)}."
    return "\n" + "\n".join(wrap(text)) + "\n" if names else ""


def brief_status(item: Item, out: Path) -> str:
    """Return the status without counts of claims, seeds and steps."""
    if not item.script:
        return NOTHING_TO_RUN
    verdict, _, missing = read_findings(item, out).verdict().partition("; ")
    if item.own and verdict != "not run":
        return "run"
    return verdict.partition(":")[0] + (f"; {missing}" if missing else "")


def update_readme(paper: str, text: str, out: Path) -> str:
    """Return a README with its generated blocks written again.

    A block is `<!-- generated: NAME -->` to `<!-- end -->`, where NAME is `status`, or an item of the paper such as
    `table-1`; `table-1/claims` leaves out its tables.
    """

    def replace_block(match: re.Match[str]) -> str:
        name = match[1]
        if name == "status":
            body = format_table(status_table(paper, out, every=False)) + _describe_nothing_to_run(paper)
        else:
            item = name.removesuffix(CLAIMS_ONLY)
            body = describe_item(f"{paper}/{item}", out, with_tables=item == name)
        return f"<!-- generated: {name} -->\n\n{body}\n<!-- end -->\n"

    return BLOCK.sub(replace_block, text)


def describe_item(name: str, out: Path, *, with_tables: bool = True) -> str:
    """Return status, command, claims and tables of an item, as Markdown."""
    if name not in items():
        raise InputError(f"a README has a generated block for {name}, which is no table or figure")
    item = items()[name]
    findings = read_findings(item, out)
    bullets = [
        f"status: **{describe_status(item, out)}**",
        f"command: `unweave paper run {name}{describe_flags(item, out)}`",
    ]
    if item.data:
        bullets.append(f"substitute data: {item.data}")
    bullets += [claim.describe() for claim in join_claims(findings.claims)]
    bullets += [f"note: {note}" for note in findings.notes]
    if findings.missing:
        bullets.append(f"not run: {', '.join(findings.missing)}")
    if findings.distance():
        bullets.append(f"distance from the paper's numbers: {findings.distance()}")
    lines = [line for bullet in bullets for line in wrap(bullet, "- ")]
    tables = [format_table(table) for table in read_tables(item, out)] if with_tables else []
    return "\n".join([*lines, *(f"\n{table.rstrip()}" for table in tables)]) + "\n"


def format_table(table: TextTable) -> str:
    """Return a table as Markdown; one that is wider than a line is split, and repeats its key columns."""
    rows = [[cell.replace("|", "\\|") for cell in row] for row in table.rows]
    widths = [max(map(len, cells)) + 3 for cells in zip(table.columns, *rows, strict=True)]
    keys = list(range(table.key_columns))
    groups: list[list[int]] = [[]]
    for column in range(table.key_columns, len(widths)):
        if all(row[column] in ("", "-") for row in rows):
            continue
        if groups[-1] and 1 + sum(widths[i] for i in [*keys, *groups[-1], column]) > LINE_LENGTH:
            groups.append([])
        groups[-1].append(column)
    parts = ["\n".join(wrap(f"{table.title}.")) + "\n"] if table.title else []
    for group in groups:
        chosen = keys + group
        lines = [_row(table.columns, chosen), "|" + "---|" * len(chosen), *(_row(row, chosen) for row in rows)]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def wrap(text: str, bullet: str = "") -> list[str]:
    """Return the lines of a paragraph, or of a list entry."""
    indent = " " * len(bullet)
    return textwrap.wrap(text, LINE_LENGTH, initial_indent=bullet, subsequent_indent=indent, break_on_hyphens=False)


def _row(cells: Sequence[str], chosen: Iterable[int]) -> str:
    return "| " + " | ".join(cells[i] for i in chosen) + " |"
