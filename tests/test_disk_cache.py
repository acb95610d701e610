"""The disk cache: damaged or planted entries are not used, and nothing blocks for long."""

from __future__ import annotations

import os
import stat
import threading
import time

import pytest

from gpuops.device import disk_cache

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="owners and modes of files are POSIX's")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(disk_cache, "SWEPT", set())
    return tmp_path / "cache"


def entry(folder, made=b"code", **options):
    return disk_cache.entry(str(folder), "kernel", "key", lambda: made, **options)


def signed(path, code):
    return disk_cache.digest_of(str(path), code) + code


def refuse():
    raise AssertionError("made again")


def only(folder):
    (path,) = folder.iterdir()
    return path


def test_an_entry_is_made_once(folder):
    assert entry(folder) == entry(folder, b"other") == b"code"
    assert disk_cache.entry(str(folder), "kernel", "another key", lambda: b"other") == b"other"


def test_new_folders_are_private(folder):
    old = os.umask(0)
    try:
        entry(folder)
    finally:
        os.umask(old)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_entries_in_a_shared_folder_are_readable(folder):
    folder.mkdir(mode=0o755)
    entry(folder)
    assert stat.S_IMODE(only(folder).stat().st_mode) & 0o444 == 0o444
    assert not only(folder).stat().st_mode & 0o022


@pytest.mark.parametrize("mode", [0o664, 0o646])
def test_entries_writable_by_others_are_not_used(folder, mode):
    entry(folder)
    only(folder).write_bytes(signed(only(folder), b"planted"))
    only(folder).chmod(mode)
    assert entry(folder) == b"code"
    assert only(folder).read_bytes() == signed(only(folder), b"code")


def test_entries_owned_by_others_are_not_used(folder, monkeypatch):
    entry(folder)
    only(folder).write_bytes(signed(only(folder), b"planted"))
    own = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    used = entry(folder, b"made by another")
    assert used == (b"planted" if own == 0 else b"made by another")  # everyone trusts root


def test_symlinks_are_not_followed(folder, tmp_path):
    entry(folder)
    path, target = only(folder), tmp_path / "target"
    target.write_bytes(signed(path, b"planted"))
    path.unlink()
    path.symlink_to(target)
    lock = path.with_name(path.name + disk_cache.LOCK)
    lock.symlink_to(target)
    assert entry(folder) == b"code"
    assert target.read_bytes() == signed(path, b"planted")  # neither emptied by the lock nor replaced


def test_named_pipes_do_not_block(folder):
    entry(folder)
    path = only(folder)
    path.unlink()
    os.mkfifo(path)
    os.mkfifo(path.with_name(path.name + disk_cache.LOCK))
    assert entry(folder) == b"code"


def test_waiting_for_a_lock_times_out(folder, monkeypatch):
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


def test_waiting_threads_use_the_entry_that_another_made(folder):
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
    def full(*paths):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert entry(folder) == b"code"
    assert list(folder.iterdir()) == []


def test_an_entry_under_the_name_of_another_is_not_used(folder):
    entry(folder)
    path = only(folder)
    other = disk_cache.path_of(str(folder), "kernel", "another key")
    os.rename(path, other)
    assert disk_cache.found(str(folder), "kernel", "another key") == b""
    assert disk_cache.entry(str(folder), "kernel", "another key", lambda: b"made") == b"made"


def test_an_entry_that_a_crash_has_cut_off_is_made_anew(folder):
    entry(folder)
    path = only(folder)
    for length in (0, 10, disk_cache.DIGEST, path.stat().st_size - 1):
        path.write_bytes(path.read_bytes()[:length])
        assert entry(folder, b"again") == b"again"
        assert entry(folder, b"code") == b"again"


def test_a_folder_that_another_process_clears_meanwhile_costs_a_compile(folder):
    def make():
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
        return b"code"

    assert disk_cache.entry(str(folder), "kernel", "key", make) == b"code"
    assert entry(folder) == b"code" and entry(folder, b"other") == b"code"


def test_stale_temporary_files_are_removed(folder):
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


def test_unusable_folders_disable_only_the_cache(tmp_path):
    (tmp_path / "file").write_text("in the way")
    assert entry(tmp_path / "file" / "cache") == b"code"
    assert entry("") == b"code"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


# ---------------------------------------------------------------------------------------------------------------- size


@pytest.fixture
def small(folder, monkeypatch):
    """A folder for 1000 bytes, which is looked through after each entry; what stores an entry of 100 bytes in it."""
    monkeypatch.setattr(disk_cache, "WRITTEN", {})
    monkeypatch.setenv("GPUOPS_CACHE_SIZE", "1 kB")

    def store(name):
        code = b"x" * (100 - disk_cache.DIGEST)
        assert disk_cache.entry(str(folder), name, name, lambda: code) == code

    return store


def kernels(folder):
    return [file.kernel for file in disk_cache.files(str(folder))]


def age(folder, name, seconds):
    (path,) = (file.path for file in disk_cache.files(str(folder)) if file.kernel == name)
    then = time.time() - seconds
    os.utime(path, (then, then))


def test_the_least_recently_used_entries_go_first(folder, small):
    for i in range(10):
        small(f"k{i}")
        age(folder, f"k{i}", 10**6 - 10**4 * i)
    assert len(kernels(folder)) == 10
    small("k0")  # used again: found, not made
    small("new")
    assert kernels(folder) == [f"k{i}" for i in range(4, 10)] + ["k0", "new"]


def test_recent_uses_are_not_noted_again(folder, small):
    small("k")
    age(folder, "k", disk_cache.RECENT / 2)
    (before,) = disk_cache.files(str(folder))
    small("k")
    assert disk_cache.files(str(folder)) == [before]
    age(folder, "k", 2 * disk_cache.RECENT)
    small("k")
    assert time.time() - disk_cache.files(str(folder))[0].used < 60


def test_other_files_are_left_alone(folder, small):
    folder.mkdir()
    others = [folder / name for name in ("notes.txt", "kernel.cubin", "kernel-0123.cubin")]
    for path in others:
        path.write_bytes(bytes(5000))
        os.utime(path, (0, 0))
    for i in range(30):
        small(f"k{i}")
    assert all(path.exists() for path in others)
    assert 0 < len(kernels(folder)) <= 10


def test_a_folder_is_looked_through_after_each_16th_of_its_limit(folder, small, monkeypatch):
    monkeypatch.setenv("GPUOPS_CACHE_SIZE", "16 kB")
    looks = []
    look = disk_cache.files
    monkeypatch.setattr(disk_cache, "files", lambda folder: looks.append(1) or look(folder))
    for i in range(40):
        small(f"k{i}")
    assert len(looks) == 1 + 39 // 11


def test_a_limit_of_0_keeps_nothing(folder, small, monkeypatch):
    monkeypatch.setenv("GPUOPS_CACHE_SIZE", "0")
    small("k")
    assert kernels(folder) == []


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [("", 256 * 10**6), ("1000", 1000), ("3kb", 3000), ("2 MiB", 2**21), ("0.5 GB", 5 * 10**8), (" 7 B ", 7)],
)
def test_sizes_in_units(monkeypatch, text, nbytes):
    monkeypatch.setenv("GPUOPS_CACHE_SIZE", text)
    assert disk_cache.limit() == nbytes


@pytest.mark.parametrize("text", ["much", "-1", "1 XB", "1e9", "MB"])
def test_other_sizes_are_reported_and_the_usual_one_holds(monkeypatch, text):
    monkeypatch.setenv("GPUOPS_CACHE_SIZE", text)
    with pytest.warns(UserWarning, match=f"^GPUOPS_CACHE_SIZE '{text}' is not a size such as 256 MB: .* 256 MB$"):
        assert disk_cache.limit() == 256 * 10**6


def test_several_processes_may_trim_a_folder_together(folder, small, monkeypatch):
    removed = os.unlink

    def unlink(path):  # another process has just removed it
        removed(path)
        removed(path)

    for i in range(10):
        small(f"k{i}")
    monkeypatch.setattr(os, "unlink", unlink)
    small("k10")
    assert len(kernels(folder)) == 8
