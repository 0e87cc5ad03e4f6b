"""Hubs in processes of their own: parley serve, and AG2's own for comparison."""

import asyncio
import os
import pathlib
import re
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[3]
STARTUP = 20.0


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class HubProcess:
    """A hub that can be killed and started again on the same port and data."""

    kind = ""

    def __init__(
        self, data: pathlib.Path, keys_for: tuple[str, ...] = (), settings: dict[str, str] | None = None
    ) -> None:
        self.data = data
        self.port = free_port()
        self.settings = settings or {}
        data.mkdir(parents=True)
        self.tokens = {name: self.key_for(name) for name in keys_for}
        self.process: subprocess.Popen | None = None
        self.log = data.with_suffix(".log")

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}"

    def command(self) -> list[str]:
        raise NotImplementedError

    def ready(self) -> bool:
        raise NotImplementedError

    def key_for(self, name: str) -> str:
        """The api_key token of the agent's name, made before the hub starts."""
        raise NotImplementedError

    def start(self) -> "HubProcess":
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self.command(), stdout=log, stderr=log, cwd=self.data)
        deadline = time.monotonic() + STARTUP
        while not self.ready():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{self.kind} did not start:\n{self.output()}")
            time.sleep(0.02)
        return self

    def kill(self) -> None:
        """SIGKILL: the hub cannot finish anything."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, sig: int) -> None:
        if self.process is None:
            return
        self.process.send_signal(sig)
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise RuntimeError(f"{self.kind} did not end within 15 s:\n{self.output()}") from None
        self.process = None

    async def restart(self, *, gently: bool = False) -> None:
        """Kill (or stop), then start again, without holding up the event loop."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, self.stop if gently else self.kill)
        await loop.run_in_executor(None, self.start)

    def output(self) -> str:
        return self.log.read_text(errors="replace")[-4000:] if self.log.exists() else ""


class Parley(HubProcess):
    kind = "parley serve"

    @staticmethod
    def binary() -> str:
        path = os.environ.get("PARLEY_BIN", str(ROOT / "build" / "parley"))
        if not os.access(path, os.X_OK):
            raise RuntimeError(f"no hub at {path}; build it with: make -C interop/ag2 parley")
        return path

    def command(self) -> list[str]:
        settings = [word for pair in self.settings.items() for word in ("--set", "=".join(pair))]
        return [self.binary(), "serve", "--data", str(self.data), "--listen", f"127.0.0.1:{self.port}", *settings]

    def key_for(self, name: str) -> str:
        command = [self.binary(), "keys", "add", "--agent", name, "--data", str(self.data)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.data)
        token = re.search(r"parley_[\w-]+", done.stdout)
        if done.returncode or not token:
            raise RuntimeError(f"parley keys add: {done.stdout}{done.stderr}")
        return token.group()

    def ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=2) as response:
                return response.status == 200
        except OSError:
            return False


class Upstream(HubProcess):
    kind = "AG2's own hub"

    def command(self) -> list[str]:
        script = ROOT / "interop" / "ag2" / "serve_upstream.py"
        keys = [word for pair in self.tokens.items() for word in ("--api-key", "=".join(pair))]
        return [sys.executable, str(script), "--port", str(self.port), "--data", str(self.data), *keys]

    def key_for(self, name: str) -> str:
        return secrets.token_hex(16)

    def ready(self) -> bool:
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", self.port)) == 0


class Elsewhere:
    """A hub that is already running; it can be neither killed nor given keys."""

    kind = "a running hub"

    def __init__(self, url: str) -> None:
        self.url = url
