"""A server of the app for benchmarks, browser tests and pictures: a process of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

HOST = "127.0.0.1"
_TOP = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class AppServer:
    """A running server."""

    port: int
    pid: int

    @property
    def url(self) -> str:
        """Where a browser finds it."""
        return f"http://{HOST}:{self.port}"

    @property
    def stream(self) -> str:
        """Where its websocket is."""
        return f"ws://{HOST}:{self.port}/_stcore/stream"

    def processor_seconds(self) -> float | None:
        """Return the processor time that the server has used so far, or None if unknown."""
        try:
            text = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8")
        except OSError:
            return None
        fields = text.rpartition(")")[2].split()  # the name before may hold spaces
        ticks: int = os.sysconf("SC_CLK_TCK")
        return (int(fields[11]) + int(fields[12])) / ticks


@contextmanager
def app_server(
    script: str = "app.py", seconds: float = 60, log: IO[bytes] | None = None
) -> Iterator[AppServer]:
    """Start the app on a free port, wait until it answers, and stop it afterwards.

    Raises:
        RuntimeError: it ended, or did not answer in time.
    """
    port = _free_port()
    command = [sys.executable, "-m", "streamlit", "run", script, "--server.address", HOST]
    command += ["--server.port", str(port), "--server.fileWatcherType", "none"]
    process = subprocess.Popen(
        command,
        cwd=_TOP,
        env=os.environ | {"PYTHONPATH": str(_TOP)},
        stdout=log or subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
    )
    server = AppServer(port, process.pid)
    try:
        _wait(server, process, seconds)
        yield server
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def _wait(server: AppServer, process: subprocess.Popen[bytes], seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"expected a running server, found exit code {process.returncode}")
        try:
            with urllib.request.urlopen(f"{server.url}/_stcore/health", timeout=2):
                return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"expected an answer within {seconds:g} s, found none")
