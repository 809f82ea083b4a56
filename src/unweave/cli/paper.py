"""`unweave paper`: the tables and figures of the five papers by name; run one, and see what became of its claims."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import tyro

from unweave.cli.parsing import parse_options, run_action
from unweave.cli.terminal import print_json, print_table, print_text
from unweave.utils.errors import InputError, unknown

ABOUT = """usage: unweave paper ACTION [NAME] [options]

    unweave paper list                                            what there is, and what became of it
    unweave paper run hlle-ica/figure-6 --scale small             minutes on two cores
    unweave paper run intervention/table-1 --seeds 5              at full scale, for a GPU; flags of the study follow
    unweave paper docs docs/papers.md                             all that is stored, as a page
"""


@dataclass(kw_only=True)
class List:
    """Every table and figure of the five papers, and what became of it."""

    paper: tyro.conf.Positional[str] = ""
    """one paper alone, e.g. hlle-ica"""
    out: Path | None = None
    """where results are (default: those that come with the studies)"""
    json: bool = False
    """print as JSON"""


@dataclass(kw_only=True)
class Run:
    """Run the study of a table or figure; what is done already is not repeated.

    Flags of the study may follow, e.g. --seeds 5 or --steps 20000; `unweave paper run NAME --options` shows them.
    """

    name: tyro.conf.Positional[str]
    """e.g. hlle-ica/figure-6"""
    scale: Literal["small", "full"] = "full"
    """full: what the paper did, as far as it can be; small: to see it run, within minutes on two cores"""
    out: Path | None = None
    """where runs, tables and figures go (default: papers/SCALE)"""
    options: bool = False
    """show the flags of the study, and do nothing"""
    json: bool = False
    """print what was found as JSON"""


@dataclass(kw_only=True)
class Docs:
    """Write a page about all that is stored."""

    page: tyro.conf.Positional[Path] = Path("docs/papers.md")
    """the page"""
    out: Path | None = None
    """where results are (default: those that come with the studies)"""


def paper(args: list[str]) -> None:
    """the papers' tables and figures by name: unweave paper list | run NAME | docs"""
    actions: dict[str, Callable[[list[str]], None]] = {"list": list_, "run": run, "docs": docs}
    run_action("unweave paper", ABOUT, actions, args)


def list_(args: list[str]) -> None:
    """every table and figure with its state"""
    options = parse_options(List, prog="unweave paper list", args=args)
    from unweave.papers.registry import PAPERS, items, state, stored

    if options.paper and options.paper not in PAPERS:
        raise unknown("paper", options.paper, PAPERS)
    rows = []
    for name, item in items().items():
        if name.startswith(options.paper):
            became = state(item, options.out or stored())
            rows.append({"name": name, "shows": item.what, "state": became, "in the place of": item.data})
    if options.json:
        return print_json(rows)
    return print_table(list(rows[0]), [list(row.values()) for row in rows], "tables and figures of the papers")


def run(args: list[str]) -> None:
    """run the study of one, print the paper's numbers beside ours, and a verdict"""
    from unweave.papers.registry import find, items, module, perform
    from unweave.papers.registry import options as options_of

    named = [arg for arg in args if arg in items()][:1]  # wherever it stands among the flags
    rest = list(args)
    for name in named:
        rest.remove(name)
    options, rest = parse_options(Run, prog="unweave paper run", args=[*named, *rest], return_unknown_args=True)
    item = find(options.name)
    kind = module(item).Options
    if options.options:
        return parse_options(kind, prog=f"unweave paper run {item.name}", args=["--help"])
    chosen = options_of(item, options.scale, options.out or Path("papers") / options.scale)
    chosen = [parse_options(kind, prog=f"unweave paper run {item.name}", args=rest, default=each) for each in chosen]
    found = perform(item, chosen, quiet=options.json)
    if options.json:
        return print_json(_told(item, found))
    return show(item, found, options.scale)


def show(item: Any, found: Any, scale: str) -> None:
    """Numbers, claims, verdict, and what the data were."""
    from unweave.metrics.uncertainty import plus_minus

    lines = [[n.name, f"{len(n.ours)}", plus_minus(n.ours), f"{n.paper:g}", f"{n.off:+.2f}"] for n in found.numbers]
    if lines:
        print_table(["", "runs", "ours", "paper", "off"], lines, f"{item.name}: mean and 95 % interval")
    for claim in found.claims:
        print_text(claim.told())
    for note in found.notes:
        print_text(f"note: {note}")
    if found.missing:
        print_text(f"not run: {', '.join(found.missing)}")
    for figure in found.figures:
        print_text(f"drawn: {figure}")
    far = found.distance()
    print_text(f"{item.name}, {scale} scale: {found.verdict()}" + (f" ({far})" if far else ""))
    if item.data:
        print_text(f"In the place of data of the paper: {item.data}.")
    if scale == "small":
        print_text("The small scale shows that it runs; what it finds says little about the paper.")


def docs(args: list[str]) -> None:
    """all that is stored, as a page"""
    options = parse_options(Docs, prog="unweave paper docs", args=args)
    from unweave.papers.registry import page, stored
    from unweave.utils.storage import write_atomic

    if options.page.suffix != ".md":
        raise InputError(f"{options.page}: the page is Markdown; name it something.md")
    write_atomic(options.page, page(options.out or stored()))
    print_text(f"Wrote {options.page}.")


def _told(item: Any, found: Any) -> dict[str, Any]:
    numbers = [{"name": n.name, "ours": list(n.ours), "paper": n.paper} for n in found.numbers]
    claims = [{"claim": c.text, "holds": c.holds} for c in found.claims]
    head = {"name": item.name, "verdict": found.verdict(), "in the place of": item.data}
    more = {"figures": [str(path) for path in found.figures], "missing": found.missing, "notes": found.notes}
    return head | {"numbers": numbers, "claims": claims} | more
