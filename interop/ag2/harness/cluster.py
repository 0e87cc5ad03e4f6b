"""A cluster of three nodes behind one TCP address."""

import json
import os
import pathlib
import signal
import subprocess
import time
import urllib.error
import urllib.request

from .hubs import ROOT, STARTUP, HubProcess, Parley, free_port

NODES = ("n1", "n2", "n3")


class Node(Parley):
    """One process of a cluster. It has started when it answers; another may serve."""

    kind = "parley serve --cluster"

    def command(self) -> list[str]:
        return [*super().command(), "--node-name", self.data.name]

    def ready(self) -> bool:
        return self.status("/healthz") == 200

    def status(self, path: str) -> int:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=2) as response:
                return response.status
        except urllib.error.HTTPError as refused:
            return refused.code
        except OSError:
            return 0


class Cluster(HubProcess):
    """Clients know the address of a balancer and nothing else."""

    kind = "a cluster behind a balancer"

    def __init__(self, data: pathlib.Path) -> None:
        super().__init__(data)
        self.nodes = [Node(data / name) for name in NODES]
        self.takeovers: list[tuple[str, str]] = []

    def command(self) -> list[str]:
        binary = os.environ.get("PARLEY_BALANCER_BIN", str(ROOT / "build" / "ag2-balancer"))
        nodes = ",".join(f"127.0.0.1:{n.port}" for n in self.nodes)
        return [binary, "-dir", str(self.data / "nats"), "-listen", f"127.0.0.1:{self.port}", "-nodes", nodes]

    def start(self) -> "Cluster":
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self.command(), stdout=subprocess.PIPE, stderr=log)
        told = json.loads(self.process.stdout.readline())
        # A machine that runs tests may pause longer than the default of a node allows.
        settings = {"cluster.url": told["nats"], "cluster.monitor": told["monitor"], "cluster.suspect": "2400ms"}
        command = [Parley.binary(), "cluster", "init", "--shards", "3"]
        subprocess.run([*command, *(w for p in settings.items() for w in ("--set", "=".join(p)))], check=True, cwd=self.data)
        for node in self.nodes:
            node.settings = settings
            node.start()
        self.serving()
        return self

    def serving(self) -> Node:
        """The node that serves, as soon as one does."""
        deadline = time.monotonic() + STARTUP
        while time.monotonic() < deadline:
            for node in self.nodes:
                if node.process and node.status("/readyz") == 200:
                    return node
            time.sleep(0.02)
        raise RuntimeError("no node serves:\n" + "\n".join(n.output() for n in self.nodes))

    def kill(self) -> None:
        """Kills the serving node and waits until another one serves. The killed one
        is started again and is on standby."""
        old = self.serving()
        old.kill()
        new = self.serving()
        self.takeovers.append((old.data.name, new.data.name))
        old.start()

    def stop(self) -> None:
        for node in self.nodes:
            node.stop()
        self._end(signal.SIGTERM)
