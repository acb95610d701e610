"""The folder of compiled code: what is damaged or planted in it is not used, and nobody is kept waiting."""

from __future__ import annotations

import hashlib
import os
import stat
import threading
import time

import pytest

from gpuops.run import disk_cache

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="owners and modes of files are POSIX's")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(disk_cache, "SWEPT", set())
    return tmp_path / "cache"


def entry(folder, made=b"code", **options):
    return disk_cache.entry(str(folder), "kernel", "key", lambda: made, **options)


def signed(code):
    return hashlib.sha256(code).digest() + code


def refuse():
    raise AssertionError("made again")


def only(folder):
    (path,) = folder.iterdir()
    return path


def test_an_entry_is_made_once(folder):
    assert entry(folder) == entry(folder, b"other") == b"code"
    assert disk_cache.entry(str(folder), "kernel", "another key", lambda: b"other") == b"other"


def test_a_new_folder_is_its_users_alone(folder):
    old = os.umask(0)
    try:
        entry(folder)
    finally:
        os.umask(old)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_entries_can_be_read_by_those_that_a_folder_is_for(folder):
    folder.mkdir(mode=0o755)
    entry(folder)
    assert stat.S_IMODE(only(folder).stat().st_mode) & 0o444 == 0o444
    assert not only(folder).stat().st_mode & 0o022


@pytest.mark.parametrize("mode", [0o664, 0o646])
def test_what_others_can_write_to_is_not_used(folder, mode):
    entry(folder)
    only(folder).write_bytes(signed(b"planted"))
    only(folder).chmod(mode)
    assert entry(folder) == b"code"
    assert only(folder).read_bytes() == signed(b"code")


def test_what_others_have_written_is_not_used(folder, monkeypatch):
    entry(folder)
    only(folder).write_bytes(signed(b"planted"))
    own = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    used = entry(folder, b"made by another")
    assert used == (b"planted" if own == 0 else b"made by another")  # root is trusted by all


def test_links_are_not_followed(folder, tmp_path):
    entry(folder)
    path, target = only(folder), tmp_path / "target"
    target.write_bytes(signed(b"planted"))
    path.unlink()
    path.symlink_to(target)
    lock = path.with_name(path.name + disk_cache.LOCK)
    lock.symlink_to(target)
    assert entry(folder) == b"code"
    assert target.read_bytes() == signed(b"planted")  # neither emptied by the lock nor replaced


def test_a_pipe_keeps_nobody_waiting(folder):
    entry(folder)
    path = only(folder)
    path.unlink()
    os.mkfifo(path)
    os.mkfifo(path.with_name(path.name + disk_cache.LOCK))
    assert entry(folder) == b"code"


def test_a_lock_that_is_never_released_is_not_waited_for_forever(folder, monkeypatch):
    fcntl = pytest.importorskip("fcntl", reason="files are locked by POSIX systems")
    monkeypatch.setattr(disk_cache, "PATIENCE", 0.2)
    entry(folder)
    path = only(folder)
    path.unlink()
    with open(path.with_name(path.name + disk_cache.LOCK), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        begin = time.monotonic()
        assert entry(folder) == b"code"
        assert 0.2 <= time.monotonic() - begin < 10


def test_who_waits_finds_what_another_has_made(folder):
    began, release, results = threading.Event(), threading.Event(), []

    def slow():
        began.set()
        assert release.wait(30)
        return b"code"

    def ask(make):
        results.append(disk_cache.entry(str(folder), "kernel", "key", make))

    threads = [threading.Thread(target=ask, args=(make,)) for make in (slow, refuse)]
    threads[0].start()
    assert began.wait(30)
    threads[1].start()
    time.sleep(0.05)
    release.set()
    for thread in threads:
        thread.join(30)
    assert results == [b"code"] * 2


def test_a_full_disk_leaves_nothing_behind(folder, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert entry(folder) == b"code"
    assert list(folder.iterdir()) == []


def test_an_entry_is_on_the_disk_before_it_has_its_name(folder, monkeypatch):
    done = []
    replace, fsync = os.replace, os.fsync
    monkeypatch.setattr(os, "fsync", lambda descriptor: done.append("fsync") or fsync(descriptor))
    monkeypatch.setattr(os, "replace", lambda *paths: done.append("replace") or replace(*paths))
    entry(folder)
    assert done == ["fsync", "replace"]


def test_what_was_left_unfinished_is_swept_up(folder):
    folder.mkdir()
    old, new = (folder / f"{name}{disk_cache.UNFINISHED}" for name in ("old", "new"))
    stale_lock = folder / f"kernel.cubin{disk_cache.LOCK}"
    for path in (old, new, stale_lock):
        path.write_bytes(b"part")
    long_ago = time.time() - disk_cache.STALE - 1
    os.utime(old, (long_ago, long_ago))
    os.utime(stale_lock, (long_ago, long_ago))
    entry(folder)
    assert not old.exists() and not stale_lock.exists() and new.exists()


def test_a_folder_of_no_use_costs_only_the_cache(tmp_path):
    (tmp_path / "file").write_text("in the way")
    assert entry(tmp_path / "file" / "cache") == b"code"
    assert entry("") == b"code"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
