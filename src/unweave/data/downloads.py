"""Published files: where they are searched, how they are verified and downloaded."""

from __future__ import annotations

import hashlib
import os
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from http.client import HTTPException, HTTPMessage
from pathlib import Path
from typing import IO
from urllib.error import URLError
from urllib.request import Request

from unweave.utils.errors import InputError, plural

MAX_BYTES = 20_000_000_000  # of a file of unknown size; the largest published one has 13 GB


class MissingData(InputError):  # noqa: N818 (it says what is missing, in a sentence)
    """Missing data; the message explains how to get them."""


@dataclass(frozen=True)
class PublishedFile:
    """One published file."""

    file: str
    """Path relative to a data folder."""
    hash: str
    """Checksum with its algorithm: "md5:...", "sha256:..." or "git:..." (git's name for the content)."""
    url: str = ""
    """Address to download from, or "" if it has to be fetched by hand."""
    size: int | None = None
    """Size in bytes, if known. A longer answer is refused; without a size, one beyond `MAX_BYTES`."""

    def places(self) -> list[Path]:
        """Return the existing files of that name: in the folder of the dataset, or directly in a data folder."""
        name = Path(self.file).name
        places = [root / place for root in roots() for place in (self.file, name)]
        return [place for place in places if place.is_file()]

    def find(self) -> Path | None:
        """Return the first existing file, not yet verified."""
        return next(iter(self.places()), None)

    def path(self) -> Path:
        """Return the first file with the right checksum, or raise an error: missing, or damaged."""
        if not self.places():
            raise MissingData(f"{self.file} is not in {' or '.join(map(str, roots()))}")
        errors = []
        for place in self.places():
            try:
                self.check(place)
            except InputError as error:
                errors.append(error)  # damaged, or a file of another dataset: another folder may have the right one
            else:
                return place
        raise errors[0]

    def check(self, path: Path) -> None:
        """Raise an error that names the file and both checksums if it is truncated, altered or another file."""
        algorithm, checksum = self.hash.split(":")
        stat = path.stat()
        actual = digest(path, algorithm, stat.st_mtime_ns, stat.st_size)
        if actual != checksum:
            text = f"{path} is truncated, altered or another file: its {algorithm} is {actual}, expected {checksum}"
            raise InputError(f"{text}. Get it again.")

    def download(self, progress: Callable[[int, int | None], None] = lambda done, total: None) -> Path:
        """Download into the cache: resume a partial file, verify the checksum, then rename it."""
        if not self.url:
            raise MissingData(f"{self.file} has no address to download from; get it by hand (`unweave data where`)")
        target = cache_folder() / self.file
        part = target.with_name(f"{target.name}.part")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            _fetch(self.url, part, MAX_BYTES if self.size is None else self.size, progress)
        except (URLError, OSError, HTTPException) as error:
            have = (
                f"; {plural(part.stat().st_size, 'byte')} are stored, and the download resumes there"
                if part.is_file()
                else ""
            )
            raise InputError(f"{self.url} could not be fetched ({error}){have}") from error
        try:
            self.check(part)
        except InputError:
            part.unlink()
            raise
        part.replace(target)
        return target


def roots() -> list[Path]:
    """Return the folders in which data are searched: those of UNWEAVE_DATA, then the cache."""
    own = [Path(p).expanduser() for p in os.environ.get("UNWEAVE_DATA", "").split(os.pathsep) if p]
    return [*own, cache_folder()]


def cache_folder() -> Path:
    """Return the folder for downloaded and rendered data: UNWEAVE_CACHE, or the user's cache folder."""
    if os.environ.get("UNWEAVE_CACHE"):
        return Path(os.environ["UNWEAVE_CACHE"]).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "unweave"


@cache
def digest(path: Path, algorithm: str, _changed: int, size: int) -> str:
    """Return the checksum of a file, cached until the file changes; "git" is git's name for its content."""
    total = hashlib.new("sha1" if algorithm == "git" else algorithm, usedforsecurity=False)
    if algorithm == "git":
        total.update(f"blob {size}\0".encode())
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: total).hexdigest()  # continues after the header


class _SecureRedirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects, except from an encrypted address to one that is not."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        if req.type == "https" and not newurl.startswith("https:"):
            raise URLError(f"redirected from https to {newurl}")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _fetch(url: str, part: Path, max_bytes: int, progress: Callable[[int, int | None], None]) -> None:
    """Append the missing bytes of the file at `url` to `part`; remove it if it has more than `max_bytes`."""
    have = part.stat().st_size if part.is_file() else 0
    request = Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        answer = urllib.request.build_opener(_SecureRedirects).open(request, timeout=60)
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
            while max(have, total or 0) <= max_bytes and (block := answer.read(1 << 18)):
                file.write(block)
                have += len(block)
                progress(have, total)
    if max(have, total or 0) > max_bytes:
        part.unlink()
        raise OSError(f"the server sends more than the {max_bytes:,} bytes of this file")
    if total is not None and have < total:
        raise OSError(f"the connection ended after {have:,} of {total:,} bytes")
