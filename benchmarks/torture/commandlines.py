"""Bad study files, forged runs and command lines made by hypothesis."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from benchmarks.torture.generated import TEXTS, Make, writer

STUDY_LINES = [
    "import unweave", "from unweave.methods import PCA", "runs = 3", "runs = None", "runs = []", "runs = 'swiss-roll'",
    "runs = unweave.sweep('swiss-roll', 'pca', latent_dim=[1, 2])",
    "runs = unweave.sweep('swiss-roll', 'pca', latent_dim=-1)",
    "runs = unweave.sweep('nothing', 'pca')", "runs = unweave.sweep('table.csv', 'no-method')",
    "runs = (r for r in runs)",
    "runs = unweave.sweep('swiss-roll', PCA(latent_dim=2), latent_dim=[])", "runs = [1, 2]", "runs = [PCA()]",
    "runs = {unweave.Run(unweave.datasets.SwissRoll(points=9), PCA(latent_dim=1))}", "runs = lambda: None",
    "metrics = ['mcc']", "metrics = 'mcc'", "metrics = ['nothing']", "metrics = 3", "metrics = [None]", "metrics = []",
    "evaluated = 0", "evaluated = -5", "evaluated = 'many'", "evaluated = 1e400", "evaluated = None",
    "evaluated = 10**30",
    "budget = -1", "budget = 'x'", "budget = float('nan')", "raise SystemExit(0)", "raise SystemExit('end')",
    "raise KeyError(3)", "import nothing_of_this_name", "def f(", "1 / 0", "x = [", "\u0000",
    "f = lambda: f(); f()", "from unweave import *", "print('text')", "del unweave", "unweave = None", "# comment",
    "assert 0",
]  # fmt: skip


@st.composite
def studies(draw: Any) -> Make:
    """Draw a study file of statements of which most are wrong."""
    lines = draw(st.lists(st.sampled_from(STUDY_LINES), max_size=6))
    if draw(st.booleans()):
        lines = [STUDY_LINES[0], STUDY_LINES[1], STUDY_LINES[6], *lines]
    encoding = draw(st.sampled_from(["utf-8", "utf-8", "utf-8", "utf-16"]))
    return writer("study.py", "\n".join(lines).encode(encoding))


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.sampled_from(TEXTS)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=6), inner, max_size=3)),
    max_leaves=8,
)


@st.composite
def forgeries(draw: Any) -> Callable[[Path], str]:
    """Draw a change of one value of a JSON file of a run whose checksums are made right again."""
    name = draw(st.sampled_from(["run.json", "env.json", "scores.json", "config.json"]))
    position, value, depth = draw(st.integers(0, 40)), draw(JSON), draw(st.integers(1, 3))

    def make(folder: Path) -> str:
        from unweave.utils.manifest import write_manifest
        from unweave.utils.storage import recipe_hash

        run = next(path for path in sorted((folder / "runs").iterdir()) if (path / name).is_file())
        content = json.loads((run / name).read_text())
        _replace(content, position, value, depth)
        if name == "config.json":
            content.pop("checksum", None)
            content["checksum"] = recipe_hash(content, 16)
        (run / name).write_text(json.dumps(content))
        (run / "manifest.json").unlink(missing_ok=True)
        write_manifest(run)
        return f"runs/{run.name}"

    return make


def _replace(content: Any, position: int, value: Any, depth: int) -> None:
    """Replace one value of nested dictionaries and lists in place."""
    keys: list[Any] = list(content) if isinstance(content, dict) else list(range(len(content)))
    if not keys:
        return
    key = keys[position % len(keys)]
    if depth > 1 and isinstance(content[key], dict | list) and content[key]:
        _replace(content[key], position // 3, value, depth - 1)
    else:
        content[key] = value


FLAGS = {
    "fit": [
        "--latent-dim", "--steps", "--batch-size", "--lr", "--seed", "--layers", "--metrics", "--test", "--test-where",
        "--data.factors", "--data.columns", "--data.ignore", "--data.circular", "--data.resize", "--data.memory",
        "--data.scale", "--data.missing", "--codes", "--beta", "--data.table", "--data.max-memory", "--n-neighbors",
    ],
    "encode": ["--table", "--missing", "--method", "--network", "--codes"],
    "score": ["--metrics", "--inputs", "--factors", "--bootstrap", "--circular", "--circular-codes", "--ordinal"],
    "select": ["--by"], "report": ["--out", "--explorers"], "advise": ["--labels", "--nuisances", "--data.factors"],
    "study": ["--out", "--budget", "--csv", "--parquet"], "describe": ["--compare", "--out", "--seed"],
}  # fmt: skip
OPTION_VALUES = [
    "", "0", "-1", "1", "2", "7", "1e400", "nan", "inf", "1000000000", "99999999999999999999", "0.5", "a", "ä",
    "None", "True", "a=b", "a=0", "=", "a > 1", "a >", "a == (", "mcc", "dci", "sap[r2]", "mcc[", "table.csv", "runs",
    "missing/x.csv", "table.csv/x", "x.txt", "x.npy", "a,b", "[1]", "'", "--out", "-", "--", "mine.py:X",
    "table.csv:X", "x" * 5000,
]  # fmt: skip
FIXED = {
    "fit": [["fit", "pca", "table.csv"], ["fit", "beta-vae", "table.csv", "--steps", "3"],
            ["fit", "hessian-ica", "table.csv"], ["fit", "nothing", "table.csv"], ["fit", "pca", "nothing.csv"],
            ["fit", "pca"]],
    "encode": [["encode", "model", "table.csv"], ["predict", "model", "table.csv"], ["encode", "runs", "table.csv"]],
    "score": [["score", "table.csv"], ["score", "model"], ["explain", "table.csv"]],
    "select": [["select", "runs"], ["select"]], "report": [["report", "runs"], ["report"]],
    "advise": [["advise", "table.csv"], ["advise"]],
    "study": [["study", "rows", "study.py"], ["study", "run", "study.py"], ["study", "nothing"],
              ["study", "status", "table.csv"]],
    "describe": [["describe", "model"], ["explore", "model"], ["draw", "model", "table.csv"]],
}  # fmt: skip
TRAINED_FOR_LONG = {"--steps": ("1000000000", "99999999999999999999")}  # valid, and too much work


@st.composite
def options(draw: Any) -> list[str]:
    """Draw the command line of a command with options that it may or may not have, and odd values of them."""
    command = draw(st.sampled_from(sorted(FIXED)))
    args: list[str] = list(draw(st.sampled_from(FIXED[command])))
    for _ in range(draw(st.integers(1, 3))):
        flag = draw(
            st.sampled_from(FLAGS[command] if draw(st.integers(0, 9)) else ["--nothing", "-x", "--json", "--seed"])
        )
        values = [value for value in OPTION_VALUES if value not in TRAINED_FOR_LONG.get(flag, ())]
        args += [flag, *draw(st.lists(st.sampled_from(values), max_size=2))]
    return args
