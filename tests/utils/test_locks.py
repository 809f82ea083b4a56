"""Locks between real processes: exclusive, all or none, released by the operating system, nothing left behind."""

import errno
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from unweave.utils import locks
from unweave.utils.errors import InputError
from unweave.utils.locks import is_locked, lock, lock_all, try_lock_all

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

ATTEMPT = """
import sys
from pathlib import Path
from unweave.utils.locks import try_lock_all
with try_lock_all(Path(sys.argv[1]), ["a"]) as locked:
    print(locked)
"""
# On some network file systems:
WITHOUT_LOCKS = """
import fcntl
def refuse(file, operation):
    is_valid = operation == fcntl.LOCK_EX | fcntl.LOCK_NB  # which the system checks first
    raise OSError({} if is_valid else 22, "no locks here")
fcntl.flock = refuse
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


@pytest.mark.parametrize("code", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def test_where_files_cannot_be_locked_their_existence_is_the_lock(tmp_path, code):
    """As on some network file systems; a process that was killed on the same machine is recognized."""
    without = WITHOUT_LOCKS.format(code)
    path = tmp_path / "count.txt"
    path.write_text("0")
    processes = [start(without + COUNTER, path) for _ in range(3)]
    assert [process.wait() for process in processes] == [0] * 3
    assert path.read_text() == "300"
    holder = start(without + HOLDER, tmp_path)
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    assert start(without + ATTEMPT, tmp_path).communicate()[0] == "False\n"
    holder.kill()
    holder.wait()
    assert start(without + ATTEMPT, tmp_path).communicate()[0] == "True\n"
    assert [p.name for p in tmp_path.iterdir()] == ["count.txt"]


def test_a_lock_file_that_is_replaced_while_it_is_locked_has_one_owner(tmp_path, monkeypatch):
    """Between our opening of a file and our locking it, its owner removes it and another process makes a new one."""
    fcntl = pytest.importorskip("fcntl", reason="POSIX locks")
    real, holders = fcntl.flock, []

    def late_flock(file, flags):
        path = tmp_path / ".locks" / "a"
        if path.exists() and not holders:
            path.unlink()
            holders.append(start(HOLDER, tmp_path))
            assert holders[0].stdout.readline() == "held\n"
        return real(file, flags)

    monkeypatch.setattr(fcntl, "flock", late_flock)
    with try_lock_all(tmp_path, ["a"]) as locked:
        assert holders and not locked
    holders[0].kill()
    holders[0].wait()
    with try_lock_all(tmp_path, ["a"]) as locked:
        assert locked


def test_files_that_cannot_be_removed_do_not_stay_locked(tmp_path, monkeypatch):
    """As on Windows while they are open."""

    def refuse(path, missing_ok=False):
        raise PermissionError(13, "in use")

    monkeypatch.setattr(Path, "unlink", refuse)
    for _ in range(2):
        with try_lock_all(tmp_path, ["a", "b"]) as locked:
            assert locked and is_locked(tmp_path, "a")
    assert not is_locked(tmp_path, "a") and not is_locked(tmp_path, "b")


def test_who_waits_says_for_which_file_and_once(tmp_path, monkeypatch):
    said, naps = [], []

    def nap(seconds):
        naps.append(seconds)
        if len(naps) == 3:
            other.__exit__(None, None, None)

    monkeypatch.setattr("unweave.utils.locks.time.sleep", nap)
    other = try_lock_all(tmp_path, ["b"])
    other.__enter__()
    with lock_all(tmp_path, ["a", "b"], said.append):
        assert is_locked(tmp_path, "a") and is_locked(tmp_path, "b")
    assert said == [tmp_path / ".locks" / "b"] and len(naps) == 3 and max(naps) < 0.1
    with lock(tmp_path / "a", said.append):
        assert is_locked(tmp_path, "a")
    assert len(said) == 1 and not list(tmp_path.iterdir())


def test_after_a_name_that_is_locked_no_other_is_taken(tmp_path, monkeypatch):
    """Otherwise two processes could keep each other from working."""
    asked = []
    attempt = locks._try_acquire
    monkeypatch.setattr(locks, "_try_acquire", lambda path: asked.append(path.name) or attempt(path))
    with try_lock_all(tmp_path, "b"), try_lock_all(tmp_path, "cab") as locked:
        assert not locked and asked == ["b", "a", "b"]


@pytest.mark.parametrize(
    ("error", "failures", "attempts"),
    [(FileNotFoundError, 99, 100), (FileExistsError, 99, 100), (FileNotFoundError, 100, 100), (PermissionError, 1, 1)],
)
def test_a_folder_that_others_remove_is_made_again_but_not_forever(error, failures, attempts, tmp_path, monkeypatch):
    """The last of several processes removes the folder of the locks, at any moment."""
    tried = []
    find = locks._lock_class

    def fail(folder):
        tried.append(folder)
        if len(tried) <= failures:
            raise error(errno.ENOENT, "gone")
        return find(folder)

    monkeypatch.setattr(locks, "_lock_class", fail)
    outcome = nullcontext() if failures < attempts else pytest.raises(InputError, match="new: gone; choose another")
    with outcome, try_lock_all(tmp_path / "new", "a") as locked:
        assert locked
    assert len(tried) == attempts


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").touch()
    refused = pytest.raises(InputError, match=r"cannot write to .*file: Not a directory; choose another folder")
    with refused, try_lock_all(tmp_path / "file", ["a"]):
        pass
