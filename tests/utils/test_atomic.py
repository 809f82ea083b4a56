"""Atomic writes: what is visible is complete and on the disk; leftovers go, and what others write stays."""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from unweave import InputError
from unweave.utils import atomic
from unweave.utils.atomic import (
    atomic_file,
    atomic_folder,
    describe_write_error,
    is_disk_full,
    make_folder,
    remove_leftovers,
    write_atomic,
)

KILLED = """
import os, signal, sys
from pathlib import Path
from unweave.utils.atomic import atomic_file, atomic_folder
path = Path(sys.argv[1])
with atomic_file(path / "a") as file, atomic_folder(path / "b") as folder:
    (folder / "c").write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_block_that_fails_leaves_everything_as_it_was(tmp_path):
    write_atomic(tmp_path / "a", "former")
    with pytest.raises(ZeroDivisionError), atomic_file(tmp_path / "a") as file:
        file.write(b"half")
        raise ZeroDivisionError
    with pytest.raises(KeyboardInterrupt), atomic_folder(tmp_path / "b") as folder:
        (folder / "c").write_text("half")
        raise KeyboardInterrupt
    assert names(tmp_path) == ["a"] and (tmp_path / "a").read_text() == "former"


def test_an_empty_folder_is_replaced_and_a_full_one_is_not(tmp_path):
    (tmp_path / "b").mkdir()
    with atomic_folder(tmp_path / "b") as folder:
        (folder / "c").write_text("one")
    with pytest.raises(InputError, match="exists already"), atomic_folder(tmp_path / "b"):
        pass
    assert (tmp_path / "b/c").read_text() == "one"


def test_two_writers_of_one_file_do_not_meet(tmp_path):
    with atomic_file(tmp_path / "a") as one, atomic_file(tmp_path / "a") as two:
        one.write(b"one")
        two.write(b"two")
    assert names(tmp_path) == ["a"] and (tmp_path / "a").read_text() == "one"


def test_the_faster_of_two_folders_stays(tmp_path):
    with atomic_folder(tmp_path / "b") as slow:
        (slow / "c").write_text("slow")
        with atomic_folder(tmp_path / "b") as fast:
            (fast / "c").write_text("fast")
    assert (tmp_path / "b/c").read_text() == "fast" and names(tmp_path) == ["b"]


def test_a_folder_that_cannot_get_its_name_is_an_error_and_leaves_nothing(tmp_path, monkeypatch):
    def refuse(path, target):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(OSError, match="Input/output error"), atomic_folder(tmp_path / "b"):
        pass
    assert not names(tmp_path)


# Leftovers ------------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_leftovers_of_a_killed_process_are_removed_by_the_next_one(tmp_path):
    process = subprocess.run([sys.executable, "-c", KILLED, tmp_path], check=False)
    assert process.returncode == -signal.SIGKILL and len(names(tmp_path)) == 2
    with atomic_file(tmp_path / "other") as file:
        assert len(names(tmp_path)) == 1
        file.write(b"whole")
    assert names(tmp_path) == ["other"]


def test_what_living_processes_and_other_computers_write_stays(tmp_path, monkeypatch):
    system = atomic._system_id()
    ours = [f".a.{system}-{os.getppid()}-0.tmp", ".a.00000000-1-0.tmp", ".notes.tmp", f".a.{system}.tmp", "b.tmp"]
    for name in ours:
        (tmp_path / name).touch()
    with atomic_folder(tmp_path / "b") as folder:
        atomic._swept.clear()
        remove_leftovers(tmp_path)
        assert folder.is_dir(), "this process writes it"
    assert names(tmp_path) == sorted([*ours, "b"])
    for hours, is_left in ((23, True), (25, False)):
        changed = time.time() - 3600 * hours
        os.utime(tmp_path / ours[1], (changed, changed))
        atomic._swept.clear()
        remove_leftovers(tmp_path)
        assert (tmp_path / ours[1]).exists() == is_left
    (tmp_path / f".c.{system}-{os.getpid()}-0.tmp").mkdir()  # of an earlier process of the same number
    atomic._swept.clear()
    remove_leftovers(tmp_path)
    assert names(tmp_path) == sorted([ours[0], *ours[2:], "b"])


def test_processes_are_asked_only_on_the_same_system_and_never_on_windows(tmp_path, monkeypatch):
    """There the call that asks would end the process."""
    path, gone, system = tmp_path / "a.tmp", tmp_path / "gone.tmp", atomic._system_id()
    path.touch()

    def refuse(process, signal):
        assert signal == 0, "it only asks"
        raise PermissionError(errno.EPERM, "of another user")

    def never(process, signal):
        raise AssertionError

    monkeypatch.setattr(os, "kill", refuse)
    assert not atomic._is_leftover(path, system, 1)
    monkeypatch.setattr(os, "kill", never)
    for name in ("posix", "nt"):
        monkeypatch.setattr(atomic, "os", SimpleNamespace(**vars(os) | {"name": name}))
        number = "00000000" if name == "posix" else system
        assert not atomic._is_leftover(path, number, 1) and not atomic._is_leftover(gone, number, 1)


def test_a_system_is_known_by_its_start_and_its_container(monkeypatch):
    first = atomic._system_id.__wrapped__()
    assert first == atomic._system_id() and len(first) == 8
    monkeypatch.setattr(Path, "read_text", lambda path: "another start")
    second = atomic._system_id.__wrapped__()
    monkeypatch.setattr(Path, "is_symlink", lambda path: path.name == "pid")
    monkeypatch.setattr(Path, "readlink", lambda path: Path("pid:[another]"))
    assert len({first, second, atomic._system_id.__wrapped__()}) == 3


# Durability -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def events(monkeypatch, tmp_path):
    """What is synchronized and renamed, in order: names below tmp_path, of temporary files their first part."""
    found: list[str] = []
    real_sync, real_replace, real_rename = os.fsync, Path.replace, Path.rename

    def short(path):
        parts = Path(os.path.realpath(path)).relative_to(tmp_path.resolve()).parts
        return "/".join("tmp" if part.endswith(".tmp") else part for part in parts) or "."

    def fsync(descriptor):
        real_sync(descriptor)
        found.append(f"sync {short(Path(f'/proc/self/fd/{descriptor}').readlink())}")

    def moving(real):
        def move(path, target):
            found.append(f"rename {short(target)}")
            return real(path, target)

        return move

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "replace", moving(real_replace))
    monkeypatch.setattr(Path, "rename", moving(real_rename))
    return found


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="names of open files are read from /proc")
def test_content_is_on_the_disk_before_its_name_and_the_name_at_the_end(tmp_path, events):
    with atomic_file(tmp_path / "a") as file:
        file.write(b"whole")
    assert events == ["sync tmp", "rename a", "sync ."]
    events.clear()
    with atomic_folder(tmp_path / "x/y/b") as folder:
        (folder / "d").mkdir()
        (folder / "d/e").touch()
        assert events == ["sync x", "sync ."], "the names of new folders"
        events.clear()
    assert sorted(events[:3]) == ["sync x/y/tmp", "sync x/y/tmp/d", "sync x/y/tmp/d/e"]
    assert events[3:] == ["rename x/y/b", "sync x/y"]


def test_nothing_of_a_file_is_left_in_a_buffer_when_it_is_synchronized(tmp_path, monkeypatch):
    sizes = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: sizes.append(os.fstat(descriptor).st_size))
    write_atomic(tmp_path / "a", "whole")
    assert sizes[0] == 5


def test_windows_opens_no_folders_and_synchronizes_files_that_are_open_for_writing(tmp_path, monkeypatch):
    opened = []
    open_file = os.open

    def observed(path, flags):
        opened.append((path.name, flags))
        return open_file(path, flags)

    monkeypatch.setattr(atomic, "os", SimpleNamespace(**vars(os) | {"name": "nt", "open": observed}))
    (tmp_path / "a").touch()
    atomic.sync(tmp_path)
    atomic.sync(tmp_path / "a")
    assert opened == [("a", os.O_RDWR)]


def test_a_file_system_that_cannot_synchronize_folders_is_used_all_the_same(tmp_path, monkeypatch):
    real, codes = os.fsync, [errno.EINVAL]

    def refuse(descriptor):
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):  # noqa: PTH112 (a link of the system)
            raise OSError(codes[0], "")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", refuse)
    write_atomic(tmp_path / "a", "text")
    codes[0] = errno.EIO
    with pytest.raises(InputError, match=r"cannot write .*b: Input/output error"):
        write_atomic(tmp_path / "b", "text")


def test_making_an_existing_folder_changes_nothing(tmp_path, events):
    make_folder(tmp_path)
    assert not events


# Errors ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (OSError(errno.ENOSPC, "Error writing bytes to file"), "No space left on device; free disk space and repeat"),
        (RuntimeError("I/O error: os error 28"), "No space left on device; free disk space and repeat"),
        (PermissionError(errno.EACCES, ""), "Permission denied; choose another place"),
        (OSError(errno.EFBIG, "File too large"), "File too large; free disk space and repeat"),
    ],
)
def test_a_disk_that_refuses_is_named(tmp_path, error, text):
    with pytest.raises(InputError, match=rf"cannot write .*b: {text}") as caught, atomic_folder(tmp_path / "b"):
        raise error
    assert is_disk_full(caught.value) and not names(tmp_path)


def test_errors_without_a_number_are_told_in_their_own_words():
    assert str(describe_write_error(Path("a"), RuntimeError("odd"))) == "cannot write a: odd; choose another place"


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files are listed in /proc")
def test_no_file_stays_open(tmp_path):
    before = len(list(Path("/proc/self/fd").iterdir()))
    for i in range(9):
        write_atomic(tmp_path / str(i), "text")
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_place_that_is_no_folder_is_named(tmp_path):
    (tmp_path / "file").touch()
    refused = pytest.raises(InputError, match=r"cannot write to .*file: Not a directory; choose another folder")
    with refused, atomic_folder(tmp_path / "file/a"):
        raise AssertionError
    with pytest.raises(InputError, match=r"cannot write .*file/a: Not a directory"):
        write_atomic(tmp_path / "file/a", "text")


def test_nothing_that_is_finished_is_remembered_as_open(tmp_path):
    write_atomic(tmp_path / "a", "text")
    with atomic_folder(tmp_path / "b") as folder:
        assert folder in atomic._open
    assert not [path for path in atomic._open if path.parent == tmp_path]


def test_other_errors_pass(tmp_path):
    for error in (FileNotFoundError(errno.ENOENT, "gone"), InputError("No space left"), RuntimeError("else")):
        with pytest.raises(type(error)) as caught, atomic_folder(tmp_path / "b"):
            raise error
        assert caught.value is error


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_what_is_no_file_is_not_replaced(tmp_path, make):
    make(tmp_path / "a")
    with pytest.raises(InputError, match="it is a folder or a device; choose another place"):
        write_atomic(tmp_path / "a", "text")
    assert names(tmp_path) == ["a"] and not (tmp_path / "a").is_file()
