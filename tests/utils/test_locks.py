"""Locks between real processes: exclusive, all or none, released by the operating system, nothing left behind."""

import subprocess
import sys

from unweave.utils.locks import is_locked, try_lock_all

HOLDER = """
import sys, time
from pathlib import Path
from unweave.utils.locks import try_lock_all
with try_lock_all(Path(sys.argv[1]), ["a"]):
    print("held", flush=True)
    time.sleep(60)
"""
COUNTER = """
import sys
from pathlib import Path
from unweave.utils.locks import lock
path = Path(sys.argv[1])
for _ in range(100):
    with lock(path):
        path.write_text(str(int(path.read_text()) + 1))
"""


def start(code, *args):
    return subprocess.Popen([sys.executable, "-c", code, *map(str, args)], stdout=subprocess.PIPE, text=True)


def test_several_names_are_locked_together_or_not_at_all(tmp_path):
    with (
        try_lock_all(tmp_path, "ab") as first,
        try_lock_all(tmp_path, "bc") as overlapping,
        try_lock_all(tmp_path, "c") as disjoint,
    ):
        assert first and not overlapping and disjoint
    with try_lock_all(tmp_path, "b"), try_lock_all(tmp_path, "ab") as failed, try_lock_all(tmp_path, "a") as free:
        assert not failed and free, "a failed attempt holds nothing"
    with try_lock_all(tmp_path, ["a", "b", "c"]) as again:
        assert again
    assert not list(tmp_path.iterdir())


def test_a_lock_ends_with_its_process(tmp_path):
    holder = start(HOLDER, tmp_path)
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    with try_lock_all(tmp_path, ["a"]) as locked:
        assert not locked and is_locked(tmp_path, "a")
    holder.kill()
    holder.wait()
    assert not is_locked(tmp_path, "a")
    with try_lock_all(tmp_path, ["a"]) as locked:
        assert locked
    assert not list(tmp_path.iterdir())


def test_processes_change_a_file_one_at_a_time(tmp_path):
    """Lock files are created and removed all the time here, which is where exclusion is most easily lost."""
    path = tmp_path / "count.txt"
    path.write_text("0")
    processes = [start(COUNTER, path) for _ in range(4)]
    assert [process.wait() for process in processes] == [0] * 4
    assert path.read_text() == "400"
    assert [p.name for p in tmp_path.iterdir()] == ["count.txt"]
