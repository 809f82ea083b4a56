"""Checks before reading: what is no file is named and never opened, and memory is compared with what is free."""

import errno
import os
import stat
from pathlib import Path
from types import SimpleNamespace

import pytest

from unweave import InputError
from unweave.utils import files
from unweave.utils.files import check_exists, check_file, check_memory, format_bytes, free_memory, is_out_of_memory


def test_what_is_missing_is_named_with_the_most_similar_file(tmp_path):
    (tmp_path / "digits.csv").touch()
    (tmp_path / "link").symlink_to("nowhere")
    check_exists(tmp_path)
    check_file(tmp_path / "digits.csv")
    for name, text in {
        "digit.csv": r"digit\.csv does not exist; did you mean .*/digits\.csv\?$",
        "q": r"q does not exist$",
        "a/b": r"a/b does not exist$",
        "digits.csv/b": r"digits\.csv/b does not exist$",
        "link": r"link is a link to nowhere, which does not exist$",
    }.items():
        with pytest.raises(InputError, match=text):
            check_exists(tmp_path / name)
    with pytest.raises(InputError, match="is a folder: expected a file"):
        check_file(tmp_path)
    with pytest.raises(InputError, match="q does not exist"):
        check_file(tmp_path / "q")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(errno.ELOOP, "Too many levels"), "it is a link that leads back to itself"),
        (PermissionError(errno.EACCES, "Permission denied"), "Permission denied"),
        (ValueError("embedded null byte"), "embedded null byte"),
    ],
)
def test_what_cannot_be_opened_is_named_with_the_reason(error, reason, monkeypatch):
    def refuse(path):
        raise error

    monkeypatch.setattr(Path, "stat", refuse)
    with pytest.raises(InputError, match=f"'a.csv' cannot be opened: {reason}$"):
        check_exists(Path("a.csv"))


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (stat.S_IFIFO, "a named pipe"),
        (stat.S_IFCHR, "a device"),
        (stat.S_IFBLK, "a device"),
        (stat.S_IFSOCK, "a socket"),
    ],
)
def test_special_files_are_named_by_their_kind(kind, name, monkeypatch):
    monkeypatch.setattr(Path, "stat", lambda path: SimpleNamespace(st_mode=kind | 0o644))
    with pytest.raises(InputError, match=f"a.csv is {name}: expected a file"):
        check_exists(Path("a.csv"))


# Memory ---------------------------------------------------------------------------------------------------------------


def test_half_of_the_free_memory_is_the_default_limit(monkeypatch):
    monkeypatch.setattr(files, "free_memory", lambda: 8e9)
    check_memory("a", 4e9)
    with pytest.raises(
        InputError, match=r"^a takes 4\.2 GB of memory: expected at most 4 GB, half of the free memory\."
    ):
        check_memory("a", 4.2e9)
    with pytest.raises(InputError, match=r"^a takes 11 bytes .* at most 10 bytes, the limit\. Take fewer rows$"):
        check_memory("a", 11, 10, "Take fewer rows")
    check_memory("a", 10, 10)
    monkeypatch.setattr(files, "free_memory", lambda: 0.0)
    check_memory("a", 2**20)  # a megabyte is not worth a look at the system
    check_memory("a", files.MIN_CHECKED_BYTES - 1)
    for size in (files.MIN_CHECKED_BYTES, 2**28):
        with pytest.raises(InputError, match="or a computer with more memory"):
            check_memory("a", size)


def test_the_free_memory_is_the_least_that_anyone_allows(monkeypatch):
    assert 2**20 < free_memory() < 2**50
    found = {"memory.max": 3e9, "memory": None}
    monkeypatch.setattr(files, "_meminfo", lambda: 4e9)
    monkeypatch.setattr(files, "_group_memory", lambda place: found[place.name])
    assert free_memory() == 3e9
    found["memory.max"] = 5e9
    assert free_memory() == 4e9
    found["memory.max"] = None
    monkeypatch.setattr(files, "_meminfo", lambda: None)
    assert free_memory() == float("inf")


def test_available_memory_is_read_from_the_system(monkeypatch):
    text = "MemTotal: 9 kB\nMemAvailable:       7 kB\nSwapFree: 1 kB\n"
    monkeypatch.setattr(Path, "read_text", lambda path, encoding: text)
    assert files._meminfo() == 7 * 1024
    text = "MemTotal: 9 kB\n"
    monkeypatch.setattr(os, "sysconf", {"SC_PHYS_PAGES": 3, "SC_PAGE_SIZE": 4096}.__getitem__)
    assert files._meminfo() == 3 * 4096, "of other systems: of all memory"

    def unknown(name):
        raise ValueError(name)

    monkeypatch.setattr(os, "sysconf", unknown)
    assert files._meminfo() is None


@pytest.mark.parametrize(
    ("place", "limit", "usage"),
    [("memory.max", "memory.max", "memory.current"), (".", "memory.limit_in_bytes", "memory.usage_in_bytes")],
)
def test_memory_of_a_container_is_its_limit_without_what_is_used(place, limit, usage, tmp_path):
    (tmp_path / limit).write_text("100\n")
    assert files._group_memory(tmp_path / place) is None, "not both files"
    (tmp_path / usage).write_text("30\n")
    assert files._group_memory(tmp_path / place) == 70
    (tmp_path / usage).write_text("130\n")
    assert files._group_memory(tmp_path / place) == 0
    (tmp_path / limit).write_text("max\n")
    assert files._group_memory(tmp_path / place) is None


def test_missing_memory_is_recognized_in_errors_and_their_causes():
    assert is_out_of_memory(MemoryError()) and not is_out_of_memory(None) and not is_out_of_memory(OSError("disk full"))
    for text in ("CUDA out of memory", "CUBLAS_STATUS_ALLOC_FAILED", "can't allocate memory: 8 bytes"):
        assert is_out_of_memory(RuntimeError(text))
    error, outer = RuntimeError("compilation failed"), RuntimeError("training failed")
    error.__cause__, outer.__context__ = MemoryError(), error
    assert is_out_of_memory(error) and is_out_of_memory(outer)


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (1e3, "1 kB"), (2.5e4, "25 kB"), (1e6, "1 MB"), (3.456e8, "346 MB"),
     (1e9, "1 GB"), (1e12, "1 TB"), (8.41e15, "8.41 PB"), (2e18, "2e+03 PB")],
)  # fmt: skip
def test_sizes_have_the_largest_unit_below_them(size, text):
    assert format_bytes(size) == text
