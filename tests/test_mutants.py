"""The mutation score: which faults are made, which tests are shown a mutant, and how results are counted."""

import ast
import json
import os
import signal
import time

import pytest
from benchmarks.mutants.mutators import find_mutants
from benchmarks.mutants.results import Result, Store, table, write_results
from benchmarks.mutants.run import GROUPS, chosen_modules, draw, find_relevant, mutants_of, outcome_of
from benchmarks.mutants.sandbox import Process

SOURCE = '''"""Module."""
from math import pi
LIMIT = 0.5


def scale(x: "int | None", margin: float = 2.0):
    """Return x."""
    assert x < 7
    if x <= 3 and not margin:
        raise ValueError(f"too {x + 1} small, really")
    y = x - margin
    return min(y * LIMIT, 20)


def other():
    return swap(a, b).sum(-1)
'''


def changes(code):
    return [mutant.change.split(" -> ")[1] for mutant in find_mutants("m.py", code)]


@pytest.mark.parametrize(
    ("code", "mutants"),
    [
        ("x = a < b", ["x = (a <= b)", "x = (a >= b)"]),
        ("x = a is b", ["x = (a is not b)"]),
        ("x = a + b", ["x = (a - b)"]),
        ("x = not a", ["x = (a)"]),
        ("x = a and b", ["x = (a or b)"]),
        ("x = a if c else b", ["x = (b if c else a)"]),
        ("x = 1", ["x = 2"]),
        ("x = 64", ["x = 128"]),
        ("x = 1e-12", ["x = 1.000000000001"]),
        ("x = True", ["x = False"]),
        ("x = 'auto'", ["x = 'auto_'"]),
        ("x = 'a text of a message'", []),
        ("x += y", ["pass"]),
        ("x = f(x)", ["pass"]),
        ("x = f(y)", []),
        ("f(x)", ["pass"]),
        ("x = kl(q, p)", ["x = (kl(p, q))"]),
        ("x = max(a, b)", ["x = (min(a, b))"]),
        ("x = a.mean()", ["x = (a.sum())"]),
        ("x: int | None = y", []),
        ("x = zip(a, strict=True)", []),
        ("x = f(random_state=0, stacklevel=3, n=1)", ["x = f(random_state=0, stacklevel=3, n=2)"]),
        ("x = g.manual_seed(0)", []),
        ("x = default_rng(1 + a)", ["x = default_rng((1 - a))", "x = default_rng(2 + a)"]),
        ("x = argsort(a, kind='stable')", []),
        ("x = f(kind='stable')", ["x = f(kind='stable_')"]),
        (
            "def f(a=1, seed=0, *, b=2, c): return a",
            ["def f(a=2, seed=0, *, b=2, c): return a", "def f(a=1, seed=0, *, b=3, c): return a"],
        ),
    ],
)
def test_every_kind_of_fault_is_made(code, mutants):
    assert changes(code) == mutants


def test_conditions_are_negated_and_loops_left_early():
    assert "if (not (a)): b = c" in [" ".join(m.source.split()) for m in find_mutants("m.py", "if a:\n    b = c\n")]
    assert changes("for a in b:\n    continue\n") == ["break"]
    assert changes("x = [a for a in b if a]") == ["x = [a for a in b if (not (a))]"]


def test_a_mutant_is_the_module_with_one_other_line_and_valid():
    lines = SOURCE.splitlines()
    mutants = find_mutants("m.py", SOURCE)
    for mutant in mutants:
        ast.parse(mutant.source)
        other = mutant.source.splitlines()
        assert sum(a != b for a, b in zip(lines, other, strict=True)) == 1, mutant
    assert len({mutant.digest for mutant in mutants}) == len(mutants)
    text = "\n".join(mutant.change for mutant in mutants)
    assert "assert" not in text and "Module" not in text and "too {x - 1}" not in text and "int & None" not in text


def test_constants_and_defaults_belong_to_the_functions_that_use_them():
    lines = {mutant.change.split(" -> ")[1]: mutant.lines for mutant in find_mutants("m.py", SOURCE)}
    assert lines["LIMIT = 1.5"] == frozenset(range(6, 13)), "all lines of `scale`, which names it"
    assert lines["y = (x + margin)"] == {11}
    assert next(v for k, v in lines.items() if "margin: float = 4.0" in k) == frozenset(range(6, 13))


def test_a_sample_is_the_same_for_a_seed_and_part_of_a_larger_one():
    mutants = mutants_of("metrics/mig.py")
    small, large = ([m.digest for m in draw(mutants, count, 3)] for count in (5, 9))
    assert len(small) == 5 and set(small) < set(large) and len(large) == 9
    assert small == [m.digest for m in draw(reversed(mutants), 5, 3)][::-1]
    assert set(small) != {m.digest for m in draw(mutants, 5, 4)}


def test_modules_are_named_by_their_group_or_by_their_path():
    assert {"metrics/mig.py", "metrics/dci.py"} < set(chosen_modules("metrics", GROUPS["metrics"], ["metrics"]))
    assert chosen_modules("metrics", GROUPS["metrics"], ["metrics/mig.py", "spectral"]) == ["metrics/mig.py"]


def test_a_mutant_is_shown_to_the_tests_that_run_its_lines():
    mutant = next(m for m in find_mutants("metrics/mig.py", SOURCE) if "(x + margin)" in m.change)
    reach = {
        "tests/metrics/test_slow.py::a": (3.0, {"metrics/mig.py": {11}}),
        "tests/metrics/test_quick.py::b": (0.1, {"metrics/mig.py": {11, 12}}),
        "tests/metrics/test_mig.py::c": (0.2, {"metrics/mig.py": {11}}),
        "tests/metrics/test_mig.py::d": (0.1, {"metrics/mig.py": {16}, "metrics/dci.py": {11}}),
    }
    slow, quick, own, elsewhere = reach
    assert find_relevant(mutant, GROUPS["metrics"], reach) == [own, quick, slow], "its own test before a quicker one"
    assert find_relevant(mutant, GROUPS["metrics"], reach, limit=0.31) == [own, quick]
    assert find_relevant(mutant, GROUPS["metrics"], reach, limit=0.0) == [own], "one at least"
    assert elsewhere in find_relevant(mutant, GROUPS["metrics"]._replace(by_name=True), reach)


def test_tests_of_defaults_are_shown_what_is_set_at_import():
    constant, default, inside = (
        next(m for m in find_mutants("m.py", SOURCE) if m.change.endswith(end))
        for end in ("LIMIT = 1.5", "= 4.0):", "return (max(y * LIMIT, 20))")
    )
    reach = {"test_m.py::test_defaults_stay": (0.1, {})}
    for mutant, tests in ((constant, [*reach]), (default, [*reach]), (inside, [])):
        assert find_relevant(mutant, GROUPS["metrics"], reach) == tests


def test_earlier_results_hold_while_the_code_and_for_survivors_the_tests_are_the_same(tmp_path):
    killed, survived, other = find_mutants("m.py", SOURCE)[:3]
    for mutant, outcome in ((killed, "killed"), (survived, "survived")):
        Store(tmp_path / "results").add(Result(mutant, outcome, "test"), "tests before")
    store = Store(tmp_path / "results")
    assert store.find(killed, "tests now") == Result(killed, "killed", "test")
    assert store.find(survived, "tests before") == Result(survived, "survived", "test")
    assert store.find(survived, "tests now") is None
    assert store.find(other, "tests before") is None
    changed = next(m for m in find_mutants("m.py", SOURCE.replace("swap", "keep")) if m.digest == killed.digest)
    assert store.find(changed, "tests before") is None


def test_the_score_leaves_equivalent_mutants_out():
    mutant = find_mutants("m.py", SOURCE)[0]
    outcomes = ["killed"] * 6 + ["timeout"] * 3 + ["survived"] + ["equivalent"] * 5
    rows = table([Result(mutant, outcome) for outcome in outcomes]).splitlines()
    assert rows[-1].split() == ["all", "15", "6", "3", "5", "1", "0", "90.0%"]
    assert rows[1].split()[1:] == rows[-1].split()[1:]


def test_only_a_test_that_fails_kills_and_only_the_fault_can_time_out():
    """Exit codes of pytest: an internal error (3) or no collected test (5) say nothing about a fault."""
    ends = {code: outcome_of(code) for code in ("0", "1", "2", "3", "4", "5", "crash")}
    assert [code for code, outcome in ends.items() if outcome == "killed"] == ["1", "2", "4", "crash"]
    assert ends["0"] == "survived" and ends["3"] == ends["5"] == "unclear"
    assert [outcome_of(code, is_control=True) for code in ("0", "timeout", "1")] == ["timeout", "unclear", "unclear"]


def test_a_store_that_was_cut_off_in_a_line_continues(tmp_path):
    first, second = find_mutants("m.py", SOURCE)[:2]
    Store(tmp_path / "results").add(Result(first, "killed", "test"), "tests")
    with (tmp_path / "results").open("a") as file:
        file.write('{"digest": "3')
    Store(tmp_path / "results").add(Result(second, "killed", "test"), "tests")
    store = Store(tmp_path / "results")
    assert store.find(first, "tests") and store.find(second, "tests")


def test_scores_of_groups_are_written_with_versions(tmp_path):
    mutant = find_mutants("m.py", SOURCE)[0]
    results = [Result(mutant, "killed", group="a"), Result(mutant, "survived", group="a"), Result(mutant, "killed")]
    write_results(tmp_path / "results.json", results, {"seed": 3})
    content = json.loads((tmp_path / "results.json").read_text())
    assert content["groups"]["a"] == {
        "killed": 1, "timeout": 0, "equivalent": 0, "survived": 1, "unclear": 0, "score": 0.5
    }  # fmt: skip
    assert content["settings"] == {"seed": 3} and content["versions"]["torch"] and content["date"]


def fork(task, seconds):
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            task()
        finally:
            os._exit(7)
    return Process(pid, time.monotonic() + seconds)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forked processes need POSIX")
def test_a_process_ends_with_its_exit_code_or_is_killed_after_its_time():
    assert fork(lambda: None, 20).wait() == "7"
    assert fork(lambda: os.kill(os.getpid(), signal.SIGKILL), 20).wait() == "crash"
    start = time.monotonic()
    assert fork(lambda: time.sleep(60), 0.2).wait() == "timeout"
    assert time.monotonic() - start < 20
