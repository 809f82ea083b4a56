"""Private folders: mode, ownership, and what could replace them."""

import os
import stat

import pytest

from unweave import InputError
from unweave.utils.private import private_folder, user_id


def test_a_folder_is_made_for_the_user_alone(tmp_path):
    folder = private_folder(tmp_path / "a" / "b")
    assert folder == tmp_path / "a" / "b"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.chmod(0o755)
    private_folder(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_systems_without_users_have_folders_of_the_user(tmp_path, monkeypatch):
    assert user_id() == os.getuid()
    monkeypatch.delattr(os, "getuid")
    assert user_id() == 0 and private_folder(tmp_path / "a").is_dir()


def test_links_and_files_are_refused(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(InputError, match="is a link"):
        private_folder(tmp_path / "link")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot use the folder"):
        private_folder(tmp_path / "file")
    assert private_folder(tmp_path / "link" / "below") == tmp_path / "real" / "below", "what is checked is what is used"


def test_folders_of_others_are_refused(tmp_path, monkeypatch):
    (tmp_path / "own").mkdir()
    monkeypatch.setattr(os, "getuid", lambda: os.geteuid() + 1)
    with pytest.raises(InputError, match="own belongs to another user"):
        private_folder(tmp_path / "own")


def test_folders_in_which_others_may_rename_are_refused(tmp_path):
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(InputError, match="all users may replace what is in it"):
        private_folder(tmp_path / "open" / "a" / "b")
    (tmp_path / "open").chmod(0o1777)  # like /tmp: all may create, and rename what is theirs
    assert private_folder(tmp_path / "open" / "a" / "b").is_dir()
