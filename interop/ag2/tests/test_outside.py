"""Reaching a hub from outside exactly as the README says: by name, by address, and
through a proxy that terminates TLS."""

import asyncio
import contextlib
import os
import re
import secrets
import socket
import ssl
import subprocess
import urllib.request

import pytest
from ag2.network import AuthBlock, AuthError

from harness.hubs import ROOT, Parley, free_port
from harness.model import Script
from harness.party import Party

pytestmark = [pytest.mark.parley, pytest.mark.newest]

SECTION = (ROOT / "README.md").read_text().split("## Reached from outside")[1].split("\n## ")[0]


def shown(language: str, containing: str) -> str:
    """The one block of the section that has the text."""
    found = [text for kind, text in re.findall(r"^```(\w+)\n(.*?)^```$", SECTION, re.M | re.S) if kind == language]
    (block,) = [text for text in found if containing in text]
    return block


class Outside(Parley):
    """A hub that is started as the README says, but for its port and folder."""

    serves = ""  # of the line that is shown

    def command(self):
        (line,) = [line for line in shown("sh", self.serves).splitlines() if line.startswith("parley serve")]
        words = line.replace("10.0.0.5", "0.0.0.0").replace("7440", str(self.port)).split()
        return [self.binary(), *words[1:], "--data", str(self.data)]

    def ready(self):
        unverified = ssl._create_unverified_context()
        for scheme in ("https", "http"):
            with contextlib.suppress(OSError):
                request = urllib.request.Request(f"{scheme}://127.0.0.1:{self.port}/readyz")
                with urllib.request.urlopen(request, timeout=2, context=unverified) as response:
                    return response.status == 200
        return False


class Direct(Outside):
    serves = "--tls-cert"


class Proxied(Outside):
    serves = "--behind-proxy"


@pytest.fixture
def certified(tmp_path):
    """The README's certificate, for an address of this machine."""
    command = shown("sh", "openssl").replace("192.0.2.7", "127.0.0.1")
    subprocess.run(["sh", "-c", command], cwd=tmp_path, check=True, capture_output=True)
    return tmp_path


@pytest.fixture
def desk(monkeypatch):
    """desk.example is this machine."""
    real = socket.getaddrinfo

    def resolve(host, *arguments, **options):
        return real("127.0.0.1" if host == "desk.example" else host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)


@contextlib.contextmanager
def started(make, certified):
    hub = make(certified / "data", keys_for=("alice", "bob"))
    for name in ("cert.pem", "key.pem"):
        (hub.data / name).write_bytes((certified / name).read_bytes())
    hub.start()
    try:
        yield hub
    finally:
        hub.stop()


async def speaks(certified, monkeypatch, hub, host, port, token=None):
    """Connects with the README's own lines."""
    monkeypatch.chdir(certified)
    monkeypatch.setenv("PARLEY_TOKEN", token or hub.tokens["alice"])
    code = shown("python", "ssl_context").replace("desk.example:7440", f"{host}:{port}")
    lines: dict = {}
    exec(compile(code, "README.md", "exec"), lines)
    client, alice = await lines["connect"](Script())
    try:
        assert alice.agent_id and alice.passport.auth.scheme == "api_key"
    finally:
        await client.close()


@pytest.mark.parametrize("host", ["desk.example", "127.0.0.1"])
async def test_by_name_and_by_address(certified, desk, monkeypatch, host):
    with started(Direct, certified) as hub:
        await speaks(certified, monkeypatch, hub, host, hub.port)


async def test_a_wrong_token_is_refused(certified, desk, monkeypatch):
    with started(Direct, certified) as hub:
        with pytest.raises(AuthError):
            await speaks(certified, monkeypatch, hub, "desk.example", hub.port, token="parley_wrong")


async def test_an_existing_token_moves(tmp_path):
    """docs/ag2.md: a client of ApiKeyAuth keeps the token that it has."""
    token = secrets.token_hex(16)
    page = (ROOT / "docs" / "ag2.md").read_text()
    (line,) = [line for line in page.splitlines() if line.endswith("--token-stdin")]
    hub = Parley(tmp_path / "data")
    moved = line.replace("| parley", f"| {hub.binary()}") + f" --data {hub.data}"
    subprocess.run(["sh", "-c", moved], env={**os.environ, "BOBS_TOKEN": token}, check=True, capture_output=True)
    hub.start()
    party = Party(hub.url, plain_names=True)
    try:
        bob = await party.silent("bob", auth=AuthBlock(scheme="api_key", claim={"token": token}))
        assert bob.agent_id
        with pytest.raises(AuthError):
            await party.silent("bob", auth=AuthBlock(scheme="api_key", claim={"token": secrets.token_hex(16)}), attach=True)
    finally:
        await party.close()
        hub.stop()


async def test_through_a_proxy(certified, desk, monkeypatch):
    with started(Proxied, certified) as hub:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certified / "cert.pem", certified / "key.pem")

        async def pipe(reader, writer):
            with contextlib.suppress(OSError):
                while data := await reader.read(65536):
                    writer.write(data)
                    await writer.drain()
            writer.close()

        async def forward(reader, writer):
            inner = await asyncio.open_connection("127.0.0.1", hub.port)
            await asyncio.gather(pipe(reader, inner[1]), pipe(inner[0], writer))

        port = free_port()
        proxy = await asyncio.start_server(forward, "127.0.0.1", port, ssl=context)
        try:
            await speaks(certified, monkeypatch, hub, "desk.example", port)
        finally:
            proxy.close()
