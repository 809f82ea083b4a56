"""Files that others publish: where they are looked for, whether they are whole, and how to get them."""

from __future__ import annotations

import hashlib
import os
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from http.client import HTTPException
from pathlib import Path
from urllib.error import URLError

from unweave.utils.errors import InputError, plural


class MissingData(InputError):  # noqa: N818 (it says what is missing, in a sentence)
    """Data that are not here, and how to get them."""


@dataclass(frozen=True)
class PublishedFile:
    """One published file: its place below a data folder, its hash (md5:..., sha256:... or git:...), its address."""

    file: str
    hash: str
    url: str = ""
    size: int | None = None

    def places(self) -> list[Path]:
        """Where there is a file of that name: in a folder of its own, or directly in a data folder."""
        name = Path(self.file).name
        places = [root / place for root in roots() for place in (self.file, name)]
        return [place for place in places if place.is_file()]

    def find(self) -> Path | None:
        """The first place that has it; not yet checked."""
        return next(iter(self.places()), None)

    def path(self) -> Path:
        """Found and whole, or an error that says which of the two it is not."""
        if not self.places():
            raise MissingData(f"{self.file} is not in {' or '.join(map(str, roots()))}")
        faults = []
        for place in self.places():
            try:
                self.check(place)
            except InputError as error:
                faults.append(error)  # damaged, or another dataset's file of that name: a whole one may be elsewhere
            else:
                return place
        raise faults[0]

    def check(self, path: Path) -> None:
        """Refuse a truncated, altered or wrong file by name, with both hashes."""
        kind, expected = self.hash.split(":")
        stat = path.stat()
        found = digest(path, kind, stat.st_mtime_ns, stat.st_size)
        if found != expected:
            text = f"{path} is truncated, altered or another file: its {kind} is {found}, expected {expected}"
            raise InputError(f"{text}. Get it again.")

    def download(self, progress: Callable[[int, int | None], None] = lambda done, total: None) -> Path:
        """Fetch into the cache: resumes what is there of it, checks the hash, and only then gives it its name."""
        if not self.url:
            raise MissingData(f"{self.file} has no address to download from; get it by hand (`unweave data where`)")
        target = cache_folder() / self.file
        part = target.with_name(f"{target.name}.part")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            _fetch(self.url, part, progress)
        except (URLError, OSError, HTTPException) as error:
            have = f"; {plural(part.stat().st_size, 'byte')} are kept and will be resumed" if part.is_file() else ""
            raise InputError(f"{self.url} could not be fetched ({error}){have}") from error
        try:
            self.check(part)
        except InputError:
            part.unlink()
            raise
        part.replace(target)
        return target


def roots() -> list[Path]:
    """Where data are looked for: the folders of UNWEAVE_DATA, then the cache."""
    own = [Path(p).expanduser() for p in os.environ.get("UNWEAVE_DATA", "").split(os.pathsep) if p]
    return [*own, cache_folder()]


def cache_folder() -> Path:
    """Where downloaded and made data are kept: UNWEAVE_CACHE, or the user's cache folder."""
    if os.environ.get("UNWEAVE_CACHE"):
        return Path(os.environ["UNWEAVE_CACHE"]).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "unweave"


@cache
def digest(path: Path, kind: str, _changed: int, size: int) -> str:
    """The hash of a file; "git" is git's name for its content. Remembered until the file changes."""
    total = hashlib.new("sha1" if kind == "git" else kind, usedforsecurity=False)
    if kind == "git":
        total.update(f"blob {size}\0".encode())
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            total.update(block)
    return total.hexdigest()


def _fetch(url: str, part: Path, progress: Callable[[int, int | None], None]) -> None:
    """Append to `part` what it lacks of the file at `url`."""
    have = part.stat().st_size if part.is_file() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        answer = urllib.request.urlopen(request, timeout=60)
    except urllib.error.HTTPError as error:
        if error.code == 416 and have:  # nothing is left to fetch
            return
        raise
    with answer:
        if answer.status != 206:  # the server sends the whole file
            have = 0
        left = answer.headers.get("Content-Length")
        total = have + int(left) if left else None
        with part.open("ab" if have else "wb") as file:
            while block := answer.read(1 << 18):
                file.write(block)
                have += len(block)
                progress(have, total)
    if total is not None and have < total:
        raise OSError(f"the connection ended after {have:,} of {total:,} bytes")
