"""`unweave paper`: status of the papers' tables and figures; run the script of one, and write the pages about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import tyro

from unweave.cli.progress import ProgressLine, show_progress
from unweave.cli.terminal import parse_options, print_json, print_table, print_text, run_action
from unweave.utils.errors import InputError, unknown

if TYPE_CHECKING:
    from unweave.papers.output import TextTable
    from unweave.papers.registry import Item
    from unweave.papers.verdicts import Findings
    from unweave.training.loop import Progress

ABOUT = """usage: unweave paper ACTION [NAME] [options]

    unweave paper list                                            status of every table and figure of the five papers
    unweave paper run hlle-ica/figure-6 --scale small             minutes on two cores
    unweave paper run intervention/table-1 --seeds 5              at full scale, for a GPU; flags of the script follow
    unweave paper docs                                            write the pages about the papers
"""


@dataclass(kw_only=True)
class ListOptions:
    """Show the status of every table and figure of the five papers."""

    paper: tyro.conf.Positional[str] = ""
    """Show one paper only, e.g. hlle-ica."""
    out: Path | None = None
    """Folder of results (default: those that come with the package)."""
    json: bool = False
    """Print JSON."""


@dataclass(kw_only=True)
class RunOptions:
    """Run the script of a table or figure; finished runs are not repeated.

    Flags of the script may follow, e.g. --seeds 5 or --steps 20000; `unweave paper run NAME --options` shows them.
    """

    name: tyro.conf.Positional[str]
    """Name of the table or figure, e.g. hlle-ica/figure-6."""
    scale: Literal["small", "full"] = "full"
    """full: the paper's experiment, as far as possible; small: to see it run, within minutes on two cores."""
    out: Path | None = None
    """Folder of runs, tables and figures (default: papers/SCALE)."""
    options: bool = False
    """Show the flags of the script, and run nothing."""
    json: bool = False
    """Print the results as JSON."""


@dataclass(kw_only=True)
class Docs:
    """Write the index of the papers, and the generated parts of their READMEs. For a checkout of the repository."""

    page: tyro.conf.Positional[Path] = Path("docs/papers/index.md")
    """The index."""
    papers: Path = Path("src/unweave/papers")
    """Folder of the papers, with results and READMEs."""
    readme: Path = Path("README.md")
    """Page of the repository, which has a table of the papers."""


def paper(args: list[str]) -> None:
    """Reproduce tables and figures of five papers: unweave paper list | run NAME | docs."""
    actions: dict[str, Callable[[list[str]], None]] = {"list": list_, "run": run, "docs": docs}
    run_action("unweave paper", ABOUT, actions, args)


def list_(args: list[str]) -> None:
    """Show the status of every table and figure."""
    options = parse_options(ListOptions, prog="unweave paper list", args=args)
    from unweave.papers.registry import PAPERS, items
    from unweave.papers.scripts import describe_status, stored_results

    if options.paper and options.paper not in PAPERS:
        raise unknown("paper", options.paper, PAPERS)
    rows = []
    for name, item in items().items():
        if options.paper in ("", item.paper):
            status = describe_status(item, options.out or stored_results())
            rows.append({"name": name, "shows": item.title, "state": status, "in the place of": item.data})
    if options.json:
        return print_json(rows)
    columns = ["name", "shows", "status", "substitute data"]
    return print_table(columns, [list(row.values()) for row in rows], "tables and figures of the papers")


def run(args: list[str]) -> None:
    """Run the script of one. Print the paper's numbers beside ours, and a verdict."""
    from unweave.papers.registry import find, items
    from unweave.papers.scripts import load_script, make_options, run_script

    named = [arg for arg in args if arg in items()][:1]  # wherever it stands among the flags
    rest = list(args)
    for name in named:
        rest.remove(name)
    options, rest = parse_options(RunOptions, prog="unweave paper run", args=[*named, *rest], return_unknown_args=True)
    item = find(options.name)
    options_class, prog = load_script(item).Options, f"unweave paper run {item.name}"
    if options.options:
        return parse_options(options_class, prog=prog, args=["--help"])
    defaults = make_options(item, options.scale, options.out or Path("papers") / options.scale)
    every = [parse_options(options_class, prog=prog, args=rest, default=default) for default in defaults]
    with show_progress(quiet=options.json) as line:
        output = TerminalOutput(line)
        findings = run_script(item, every, output)
    if options.json:
        return print_json(_as_json(item, findings))
    output.print_all()
    return print_findings(item, findings, options.scale)


class TerminalOutput:
    """Shows progress at once, and texts and tables after the progress line is gone."""

    def __init__(self, line: ProgressLine) -> None:
        self.line = line
        self.pending: list[Callable[[], None]] = []

    def text(self, text: str) -> None:
        """Show a line at the end."""
        self.pending.append(lambda: print_text(text))

    def table(self, table: TextTable) -> None:
        """Show a table at the end."""
        self.pending.append(lambda: print_table(table.columns, table.rows, table.title))

    def progress(self, text: str) -> None:
        """Show what is being done."""
        self.line.message(text)

    def training(self, progress: Progress) -> None:
        """Show how far a training is."""
        self.line.training(progress)

    def print_all(self) -> None:
        """Print the texts and tables."""
        for print_one in self.pending:
            print_one()


def print_findings(item: Item, findings: Findings, scale: str) -> None:
    """Print numbers, claims and the verdict."""
    from unweave.metrics.uncertainty import plus_minus

    lines = [
        [n.name, f"{len(n.ours)}", plus_minus(n.ours), f"{n.paper:g}", f"{n.difference:+.2f}"] for n in findings.numbers
    ]
    if lines:
        columns = ["", "runs", "ours", "paper", "difference"]
        print_table(columns, lines, f"{item.name}: mean and 95 % interval")
    for claim in findings.claims:
        print_text(claim.describe())
    for note in findings.notes:
        print_text(f"note: {note}")
    if findings.missing:
        print_text(f"not run: {', '.join(findings.missing)}")
    for figure in findings.figures:
        print_text(f"drawn: {figure}")
    distance = findings.distance()
    print_text(f"{item.name}, {scale} scale: {findings.status()}" + (f"; {distance}" if distance else ""))
    if item.data:
        print_text(f"Substitute data: {item.data}.")
    if scale == "small":
        print_text("The small scale shows that the script runs; its results are no evidence about the paper.")


def docs(args: list[str]) -> None:
    """Write docs/papers/index.md and the papers' READMEs."""
    options = parse_options(Docs, prog="unweave paper docs", args=args)
    from unweave.papers.readme import make_index, update_readme, update_summary
    from unweave.papers.registry import PAPERS
    from unweave.utils.atomic import write_atomic

    if options.page.suffix != ".md":
        raise InputError(f"{options.page}: the page is Markdown; expected a name that ends in .md")
    readmes = {paper: options.papers / paper.replace("-", "_") / "README.md" for paper in PAPERS}
    absent = [path for path in (*readmes.values(), options.readme) if not path.is_file()]
    if absent:
        raise InputError(f"{absent[0]} does not exist: run this in a checkout of the repository, or pass --papers")
    for name, path in readmes.items():
        write_atomic(path, update_readme(name, path.read_text(encoding="utf-8"), options.papers))
    write_atomic(options.page, make_index(options.papers))
    write_atomic(options.readme, update_summary(options.readme.read_text(encoding="utf-8"), options.papers))
    print_text(f"Wrote {options.page}, {options.readme} and {len(readmes)} READMEs below {options.papers}.")


def _as_json(item: Item, findings: Findings) -> dict[str, Any]:
    numbers = [{"name": n.name, "ours": list(n.ours), "paper": n.paper} for n in findings.numbers]
    claims = [{"claim": c.text, "holds": c.holds} for c in findings.claims]
    head = {"name": item.name, "verdict": findings.verdict(), "in the place of": item.data}
    more = {"figures": [str(path) for path in findings.figures], "missing": findings.missing, "notes": findings.notes}
    return head | {"numbers": numbers, "claims": claims} | more
