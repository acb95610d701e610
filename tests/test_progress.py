"""How far long work is: what terminals and notebooks show of it."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from gpuops.tools.progress import Progress, progress

NAME = "looking for <softmax>"


def work():
    """Two things, of which one is done."""
    with progress(2) as shown:
        assert isinstance(shown, Progress)
        shown.at(NAME)
        shown.done()


def look(monkeypatch, rich=False):
    """Standard error is a terminal from here on."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    if not rich:
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)


def test_logs_get_a_line_now_and_then(capsys, monkeypatch):
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr("gpuops.tools.progress.time", SimpleNamespace(monotonic=lambda: clock.now))
    with progress(30) as shown:
        for i in range(30):
            shown.at(f"compiled {i}")
            clock.now += 0.5
            shown.done()
    printed = capsys.readouterr()
    assert printed.err.splitlines() == ["10/30 compiled 9", "20/30 compiled 19", "30/30 compiled 29"]
    assert not printed.out


def test_terminals_show_a_bar(capsys, monkeypatch):
    pytest.importorskip("rich")
    look(monkeypatch, rich=True)
    work()
    printed = capsys.readouterr()
    assert not printed.out and "1/2" in printed.err and NAME[:7] in printed.err


def test_terminals_without_rich_show_a_line_that_is_gone_in_the_end(capsys, monkeypatch):
    look(monkeypatch)
    work()
    printed = capsys.readouterr()
    assert printed.err.split("\r") == [
        "", f"0/2 {NAME}".ljust(39), "", f"1/2 {NAME}".ljust(39), "", " " * 39, "",
    ]  # fmt: skip
    assert not printed.out


def test_a_line_never_wraps(capsys, monkeypatch):
    look(monkeypatch)
    with progress(1) as shown:
        shown.at("x" * 100)
    assert max(map(len, capsys.readouterr().err.split("\r"))) == 39


def test_what_is_shown_is_gone_when_the_work_fails(capsys, monkeypatch):
    look(monkeypatch)
    with pytest.raises(KeyError), progress(1) as shown:
        shown.at("x")
        raise KeyError
    assert capsys.readouterr().err.endswith("\r" + " " * 39 + "\r")


def test_terminals_of_ipython_are_terminals(capsys, monkeypatch):
    look(monkeypatch)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=SimpleNamespace))
    work()
    assert "1/2" in capsys.readouterr().err


CELL = """
from gpuops.tools.progress import progress
with progress(2) as shown:
    shown.at("<softmax>")
    shown.done()
"""


def test_notebooks_show_one_output_that_changes():
    """In a kernel: it is gone in the end, and what is shown is text, not tags."""
    pytest.importorskip("ipykernel")
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel()
    try:
        messages = []
        client.execute_interactive(CELL, timeout=60, output_hook=messages.append)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    messages = [message for message in messages if message["msg_type"] not in ("status", "execute_input")]
    kinds = [message["msg_type"] for message in messages]
    assert kinds == ["display_data", *["update_display_data"] * 3]
    assert len({message["content"]["transient"]["display_id"] for message in messages}) == 1
    shown = [message["content"]["data"] for message in messages]
    assert [data["text/plain"] for data in shown] == ["0/2 ", "0/2 <softmax>", "1/2 <softmax>", ""]
    assert shown[2]["text/html"] == '<progress value="1" max="2"></progress> 1/2 &lt;softmax&gt;'
    assert "text/html" not in shown[3]
