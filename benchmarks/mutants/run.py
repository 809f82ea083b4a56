"""Mutation score: how many small faults, put into the code on purpose, the tests notice.

make mutants
python -m benchmarks.mutants.run --modules metrics training/checkpoint.py --sample 40 --seed 1

A mutant is one module with one fault: another operator, constant, argument or a statement less. It is shown to the
tests that run its line, until one fails. Tests that need `UNWEAVE_DATA` are skipped. Results are kept in
`build/mutants`, so that an interrupted call continues: a mutant that was killed is not run again, one that survived is
when its tests have changed. After a timeout the tests run once more without the fault: where these time out as well,
the mutant does not count. Faults that change nothing that matters do not count; they are
listed with their reasons in `equivalent.toml`.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import math
import time
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from benchmarks.mutants.mutators import Mutant, find_mutants
from benchmarks.mutants.reach import Reach, find_tests, trace_tests
from benchmarks.mutants.results import Result, Store, hash_tests, print_survivors, table, write_results
from benchmarks.mutants.sandbox import PACKAGE, ROOT, Process, Sandbox, warm_up

OUT = ROOT / "build" / "mutants"
EQUIVALENT = Path(__file__).with_name("equivalent.toml")
OTHERS_LATER = 3  # a test of another module is run when it takes a third of the time of the module's own
DEFAULTS = "::test_defaults_"  # in the names of tests that are shown every fault of a default or of a constant
FIRST_TESTS = 4  # collected before the others, because they often suffice
SECONDS, SLOWER = (
    20.0,
    2.0,
)  # of the processor: a mutant may take so long, and so many times what tracing its tests took


class Group(NamedTuple):
    """Modules, and the files of tests that may notice their faults."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]
    by_name: bool = False  # show a mutant to its module's test file even if tracing does not see it: other processes


GROUPS = {
    "losses": Group(
        ("nn/functional.py", "methods/vae/*.py", "methods/flows/*.py", "methods/invariance/*.py",
         "methods/infogan_cr.py", "methods/intervention.py"),
        ("tests/nn/test_functional.py", "tests/methods/vae/test_*.py", "tests/methods/flows/test_*.py",
         "tests/methods/invariance/test_*.py", "tests/methods/test_in*.py", "tests/methods/test_contract.py",
         "tests/methods/test_setting_limits.py"),
    ),
    "metrics": Group(("metrics/*.py",), ("tests/metrics/test_*.py",)),
    "spectral": Group(("methods/spectral/*.py",), ("tests/methods/spectral/test_*.py",)),
    "checkpoint": Group(("training/checkpoint.py",), ("tests/training/test_checkpoint.py",), by_name=True),
    "locks": Group(("utils/locks.py",), ("tests/utils/test_locks.py",), by_name=True),
    "storage": Group(
        ("utils/atomic.py", "utils/storage.py", "utils/manifest.py", "utils/files.py", "utils/private.py"),
        ("tests/utils/test_*.py", "tests/experiments/test_damage.py"), by_name=True,
    ),
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--modules", nargs="+", default=list(GROUPS), help=f"groups {[*GROUPS]} or modules of them")
    parser.add_argument("--sample", type=int, default=None, help="mutants of each group, by default all")
    parser.add_argument("--seed", type=int, default=0, help="seed of the sample; a larger one contains a smaller one")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--seconds", type=float, default=math.inf, help="of tests for a mutant, by default all of them")
    parser.add_argument("--json", type=Path, default=None, help="file for the scores of the groups")
    parser.add_argument("--out", type=Path, default=OUT, help="folder of results, copies and traces")
    options = parser.parse_args()
    warm_up()
    results: list[Result] = []
    for name, group in GROUPS.items():
        modules = chosen_modules(name, group, options.modules)
        if modules:
            mutants = draw((m for module in modules for m in mutants_of(module)), options.sample, options.seed)
            part = run_group(group, mutants, options.out.absolute(), options.jobs, options.seconds)
            results += [replace(result, group=name) for result in part]
    print_survivors(results)
    print(table(results))
    if options.json:
        write_results(options.json, results, {"sample": options.sample, "seed": options.seed})


def chosen_modules(name: str, group: Group, asked: Iterable[str]) -> list[str]:
    """Return the modules of a group that were asked for, by the group's name or by their own."""
    package = ROOT / PACKAGE
    modules = [str(path.relative_to(package)) for pattern in group.modules for path in sorted(package.glob(pattern))]
    return modules if name in asked else [module for module in modules if module in asked]


def mutants_of(module: str) -> list[Mutant]:
    """Return all mutants of a module of this repository."""
    return find_mutants(module, (ROOT / PACKAGE / module).read_text())


def draw(mutants: Iterable[Mutant], count: int | None, seed: int) -> list[Mutant]:
    """Return a random sample in the order of the source; whether a mutant is in it depends on no other's code."""
    every = list(mutants)
    ranked = sorted(every, key=lambda mutant: hashlib.sha256(f"{seed} {mutant.digest}".encode()).hexdigest())
    drawn = {mutant.digest for mutant in ranked[:count]}
    return [mutant for mutant in every if mutant.digest in drawn]


def find_relevant(mutant: Mutant, group: Group, reach: Reach, limit: float = math.inf) -> list[str]:
    """Return the tests that run a mutant's lines, the fastest and the module's own first, up to a sum of seconds.

    A test of defaults reads values that were set when the module was imported, so it runs none of their lines.
    """
    own = f"test_{Path(mutant.module).stem}.py"
    near = [((1 if own in test else OTHERS_LATER) * seconds, seconds, test) for test, (seconds, lines) in reach.items()
            if mutant.lines & lines.get(mutant.module, set()) or (group.by_name and own in test)
            or (mutant.is_definition and DEFAULTS in test)]  # fmt: skip
    near.sort()
    total = itertools.accumulate(seconds for _, seconds, _ in near)
    return [test for (_, _, test), so_far in zip(near, total, strict=True) if so_far <= limit or test == near[0][2]]


def run_group(group: Group, mutants: list[Mutant], out: Path, jobs: int, limit: float) -> list[Result]:
    """Run the mutants of a group that have no result yet, and return all results in their order."""
    listed = tomllib.loads(EQUIVALENT.read_text())
    results = {m.digest: Result(m, "equivalent", listed[m.module][m.key])
               for m in mutants if m.key in listed.get(m.module, {})}  # fmt: skip
    sandboxes = [Sandbox(out / f"sandbox-{i}") for i in range(jobs)]
    reach = trace_tests(sandboxes[0], find_tests(*group.tests), out / "reach")
    store = Store(out / "results.jsonl")
    waiting = []
    for mutant in mutants:
        tests = find_relevant(mutant, group, reach, limit)
        known = store.find(mutant, hash_tests(tests, ROOT))
        if mutant.digest in results:
            continue
        if known or not tests:
            results[mutant.digest] = known or Result(mutant, "survived", "no test runs it")
        else:
            waiting.append(Job(mutant, tests, SECONDS + SLOWER * sum(reach[test][0] for test in tests)))
    print(f"{len(mutants)} mutants, {len(waiting)} of them to run", flush=True)
    start = time.monotonic()
    for i, (job, result) in enumerate(run_all(sandboxes, waiting), 1):
        results[result.mutant.digest] = result
        if result.outcome != "unclear":
            store.add(result, hash_tests(job.tests, sandboxes[0].root))
        left = (time.monotonic() - start) / i * (len(waiting) - i) / 60
        text = (
            f"[{i} of {len(waiting)}, {left:.0f} min left] {result.outcome} {result.mutant.module}: {result.mutant.key}"
        )
        print(text[:200], flush=True)
    return [results[mutant.digest] for mutant in mutants]


class Job(NamedTuple):
    """A mutant to run."""

    mutant: Mutant
    tests: list[str]
    seconds: float  # of the processor, until it counts as timed out
    is_control: bool = False  # the same without the fault, after a timeout: is it the fault, or a busy machine?


def run_all(sandboxes: list[Sandbox], jobs: list[Job]) -> Iterator[tuple[Job, Result]]:
    """Run mutants in as many processes as there are sandboxes; yield results as they come."""
    running: dict[int, tuple[Process, Job, str]] = {}
    queue = jobs[::-1]
    while queue or running:
        for i, sandbox in enumerate(sandboxes):
            if i not in running and queue:
                job = queue.pop()
                path = sandbox.path(job.mutant.module)
                running[i] = sandbox.start(partial(run_tests, job), job.seconds), job, path.read_text()
            elif i in running and running[i][0].poll():
                process, job, original = running.pop(i)
                sandbox.path(job.mutant.module).write_text(original)
                if process.result == "timeout" and not job.is_control:
                    queue.append(job._replace(is_control=True))
                    continue
                outcome = outcome_of(process.result, is_control=job.is_control)
                yield job, Result(job.mutant, outcome, _first_failure(sandbox) if outcome == "killed" else "")
        time.sleep(0.01)


def outcome_of(result: str, *, is_control: bool = False) -> str:
    """Return what the end of the tests says about a mutant, or after a timeout about the original.

    Exit codes of pytest: 0 all passed, 1 one failed, 2 and 4 a module could not be imported, 3 and 5 no test has run.
    """
    if is_control:
        return "timeout" if result == "0" else "unclear"
    return {"0": "survived", "1": "killed", "2": "killed", "4": "killed", "crash": "killed"}.get(result, "unclear")


def run_tests(job: Job) -> int:
    """Put the mutant into the package and run its tests until one fails; return the exit code of pytest."""
    if not job.is_control:
        (Path.cwd() / PACKAGE / job.mutant.module).write_text(job.mutant.source)
    temporary = f"--basetemp={Path.cwd().parent / 'tmp'}"
    for tests in (job.tests[:FIRST_TESTS], job.tests[FIRST_TESTS:]):
        code = pytest.main([*tests, "-x", "-q", "-p", "no:cacheprovider", "--tb=line", temporary]) if tests else 0
        if code != 0:
            return int(code)
    return 0


def _first_failure(sandbox: Sandbox) -> str:
    lines = sandbox.log.read_text(errors="replace").splitlines()
    return next((line for line in lines if line.startswith(("FAILED", "ERROR"))), "")


if __name__ == "__main__":
    main()
