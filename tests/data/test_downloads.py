"""Published files: finding, checking, fetching."""

import contextlib
import hashlib
import http.server
import threading
from pathlib import Path
from typing import ClassVar

import pytest

from unweave import InputError, catalog
from unweave.data import downloads
from unweave.data.downloads import MissingData, PublishedFile, cache_folder, roots

CONTENT = bytes(range(256)) * 4000  # about a megabyte
SHA256 = f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"


@pytest.fixture(autouse=True)
def places(tmp_path, monkeypatch):
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path / "own"))
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path / "cache"))
    return tmp_path


def put(path: Path, content: bytes = CONTENT) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_a_users_folders_come_before_the_cache(places, monkeypatch):
    original = PublishedFile("things/file.bin", SHA256)
    assert original.find() is None
    cached = put(places / "cache" / "things" / "file.bin")
    assert original.find() == cached
    flat = put(places / "own" / "file.bin")
    assert original.path() == flat
    monkeypatch.setenv("UNWEAVE_DATA", f"{places / 'a'}:{places / 'b'}")
    assert roots() == [places / "a", places / "b", cache_folder()]


@pytest.mark.parametrize("content", [CONTENT[:-1], CONTENT[:-1] + b"x", b""])
def test_a_truncated_or_altered_file_is_refused_with_both_hashes(places, content):
    path = put(places / "own" / "file.bin", content)
    found = hashlib.sha256(content).hexdigest()
    with pytest.raises(
        InputError, match=f"{path} is truncated, altered or another file: its sha256 is {found}, expected"
    ):
        PublishedFile("things/file.bin", SHA256).path()


def test_a_file_that_changes_is_hashed_again(places):
    original = PublishedFile("things/file.bin", SHA256)
    path = put(places / "own" / "file.bin")
    original.check(path)
    path.write_bytes(CONTENT[:-1])
    with pytest.raises(InputError, match="truncated"):
        original.check(path)


def test_git_names_content_as_git_does(places):
    """`echo 'what is up, doc?' | git hash-object --stdin` is the example of git's own book."""
    path = put(places / "own" / "doc", b"what is up, doc?\n")
    assert PublishedFile("docs/doc", "git:7108f7ecb345ee9d0084193f147cdad4d2998293").path() == path


class Server(http.server.BaseHTTPRequestHandler):
    """Serves CONTENT; breaks off after `limit` bytes of an answer; knows ranges unless told not to."""

    limit = len(CONTENT)
    ranges = True
    is_endless = False
    asked: ClassVar[list[str | None]] = []

    def do_GET(self):
        expected = self.headers.get("Range")
        Server.asked.append(expected)
        if self.path != "/file.bin":
            return self.send_error(404)
        if Server.is_endless:
            return self.send_forever()
        start = int(expected.removeprefix("bytes=").removesuffix("-")) if expected and Server.ranges else 0
        if start >= len(CONTENT):
            return self.send_error(416)
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(CONTENT) - start))
        self.end_headers()
        self.wfile.write(CONTENT[start : start + Server.limit])
        return None

    def send_forever(self):
        self.send_response(200)
        self.end_headers()
        with contextlib.suppress(ConnectionError):
            while True:
                self.wfile.write(CONTENT)

    def log_message(self, *args):
        pass


@pytest.fixture
def address():
    Server.limit, Server.ranges, Server.is_endless, Server.asked = len(CONTENT), True, False, []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/file.bin"
    server.shutdown()
    server.server_close()


def test_a_download_is_checked_and_then_named(places, address):
    seen = []
    path = PublishedFile("things/file.bin", SHA256, address).download(lambda done, total: seen.append((done, total)))
    assert path.read_bytes() == CONTENT
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert [p.name for p in path.parent.iterdir()] == ["file.bin"]


@pytest.mark.parametrize("ranges", [True, False])
def test_a_broken_download_is_resumed_or_begun_again(places, address, ranges):
    original = PublishedFile("things/file.bin", SHA256, address)
    Server.limit, Server.ranges = 300_000, ranges
    with pytest.raises(InputError, match="are stored, and the download resumes there"):
        original.download()
    part = places / "cache" / "things" / "file.bin.part"
    have = part.stat().st_size
    assert 0 < have <= 300_000
    assert original.find() is None, "half a file is no file"
    Server.limit = len(CONTENT)
    assert original.download().read_bytes() == CONTENT
    assert Server.asked[-1] == f"bytes={have}-"


def test_a_finished_part_is_taken_without_fetching_it_again(places, address):
    put(places / "cache" / "things" / "file.bin.part")
    assert PublishedFile("things/file.bin", SHA256, address).download().read_bytes() == CONTENT


def test_a_wrong_download_is_thrown_away(places, address):
    wrong = PublishedFile("things/file.bin", SHA256[:-1] + ("0" if SHA256[-1] != "0" else "1"), address)
    with pytest.raises(InputError, match="truncated, altered or another file"):
        wrong.download()
    assert list((places / "cache" / "things").iterdir()) == []


def test_an_address_that_fails_and_one_that_is_missing(places, address):
    with pytest.raises(InputError, match=r"could not be fetched .*404"):
        PublishedFile("things/file.bin", SHA256, address.replace("file", "other")).download()
    with pytest.raises(MissingData, match="no address"):
        PublishedFile("things/file.bin", SHA256).download()


def test_a_whole_file_elsewhere_is_taken_where_the_first_is_of_another_dataset(places):
    put(places / "own" / "file.bin", b"another dataset's file of the same name")
    whole = put(places / "cache" / "things" / "file.bin")
    assert PublishedFile("things/file.bin", SHA256).path() == whole


@pytest.mark.parametrize(("is_endless", "size"), [(False, len(CONTENT) - 1), (True, 3_000_000), (True, None)])
def test_a_server_that_sends_more_than_the_file_has_is_cut_off(places, address, monkeypatch, is_endless, size):
    monkeypatch.setattr(downloads, "MAX_BYTES", 3_000_000)
    Server.is_endless = is_endless
    seen = [0]
    with pytest.raises(InputError, match=r"sends more than the [\d,]+ bytes of this file"):
        PublishedFile("things/file.bin", SHA256, address, size).download(lambda done, total: seen.append(done))
    assert max(seen) <= 3_000_000 + 2**18
    assert list((places / "cache" / "things").iterdir()) == []


def test_a_redirect_to_an_open_address_is_refused():
    handler = downloads._SecureRedirects()
    request = downloads.Request("https://host/file")
    with pytest.raises(OSError, match="redirected from https to http://other/file"):
        handler.redirect_request(request, None, 302, "Found", {}, "http://other/file")
    assert handler.redirect_request(request, None, 302, "Found", {}, "https://other/file").full_url.endswith(
        "other/file"
    )


def test_published_files_have_encrypted_addresses_sizes_and_sha256():
    """Of the files of three datasets no other checksum, and no size, is published."""
    classes = [cls for name, cls in catalog.datasets().items() if name not in ("dsprites", "mpi3d", "cars3d")]
    files = [file for cls in classes for file in cls.files]
    assert len(files) > 20
    assert all(file.hash.startswith("sha256:") for file in files)
    assert all(file.url.startswith("https://") and file.size for file in files if file.url)
