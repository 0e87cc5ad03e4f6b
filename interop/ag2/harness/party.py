"""The clients of one test: real HubClients, agents and humans, closed at its end."""

import asyncio
import contextlib
import itertools
from collections.abc import Awaitable, Callable
from typing import Any

from ag2 import Agent
from ag2.network import (
    EV_PACKET,
    EV_TEXT,
    AgentClient,
    AuthBlock,
    Envelope,
    HubClient,
    HumanClient,
    Passport,
    Resume,
    Rule,
)
from ag2.network.transport import WsLink

from .model import Script

PATIENCE = 15.0

_counter = itertools.count(1)


class Party:
    """Names are unique to the test, so that tests can share a hub."""

    def __init__(self, url: str, *, plain_names: bool = False) -> None:
        self.url = url
        self.tag = next(_counter)
        self._plain = plain_names
        self.ours = True  # whether the hub is parley
        self._clients: list[HubClient] = []

    def name(self, base: str) -> str:
        return base if self._plain else f"{base}-{self.tag}"

    def client(self, rpc_timeout: float = 30.0) -> HubClient:
        """A connection of its own; it connects at its first use."""
        client = HubClient(WsLink(self.url), rpc_timeout=rpc_timeout)
        self._clients.append(client)
        return client

    async def agent(
        self,
        base: str,
        *turns: Any,
        on: HubClient | None = None,
        tools: tuple = (),
        resume: Resume | None = None,
        rule: Rule | None = None,
        auth: AuthBlock | None = None,
        attach: bool = False,
        skill_md: str | None = None,
        tooled: bool = True,
    ) -> AgentClient:
        """Register (or attach) an agent whose model is scripted. Without turns
        it never answers by itself."""
        name = self.name(base)
        agent = Agent(name, config=Script(*turns), tools=list(tools))
        passport = Passport(name=name, auth=auth or AuthBlock())
        client = on or self.client()
        options = {"resume": resume or Resume(), "rule": rule, "skill_md": skill_md, "attach_plugin": tooled}
        if attach:
            return await client.attach(agent, name, passport=passport, **options)
        return await client.register(agent, passport, **options)

    async def silent(self, base: str, **options: Any) -> AgentClient:
        """An agent driven by the test: it acks invites and does nothing else.
        It has no tools, whose schemas cost more time than all the rest."""
        return mute(await self.agent(base, tooled=False, **options))

    async def human(self, base: str, on: HubClient | None = None) -> HumanClient:
        return await (on or self.client()).register_human(Passport(name=self.name(base)))

    async def leave(self, client: AgentClient | HumanClient | HubClient) -> None:
        """Close the connection; the identity stays registered."""
        hub_client = client if isinstance(client, HubClient) else client._hub_client
        await hub_client.close()

    async def close(self) -> None:
        for client in self._clients:
            with contextlib.suppress(Exception):
                await client.close()


def script(client: AgentClient) -> Script:
    """The scripted model of an agent."""
    return client.agent.config  # type: ignore[return-value]


def mute(client: AgentClient) -> AgentClient:
    """Keep the real invite handling, drop the turn."""
    default = client._run_default_handler

    async def only_protocol(envelope: Envelope) -> None:
        if envelope.event_type.startswith("ag2.channel."):
            await default(envelope)

    client.on_envelope(only_protocol)
    return client


async def eventually(probe: Callable[[], Awaitable[Any]], *, timeout: float = PATIENCE, what: str = "") -> Any:
    """Wait until probe answers something true, and return it."""
    deadline = asyncio.get_running_loop().time() + timeout
    while True:
        answer = await probe()
        if answer:
            return answer
        if asyncio.get_running_loop().time() > deadline:
            raise AssertionError(f"did not come to be within {timeout:g} s: {what or probe}")
        await asyncio.sleep(0.02)


def envelope_of(channel_id: str, sender_id: str, event_type: str, data: dict, **more: Any) -> Envelope:
    more.setdefault("audience", None)
    return Envelope(channel_id=channel_id, sender_id=sender_id, event_type=event_type, event_data=data, **more)


def text_of(channel_id: str, sender_id: str, text: str, **more: Any) -> Envelope:
    return envelope_of(channel_id, sender_id, EV_TEXT, {"text": text}, **more)


async def wal(client: AgentClient | HumanClient, channel_id: str) -> list[Envelope]:
    return await client._hub_client.read_wal(channel_id)


async def quiet_log(client: AgentClient | HumanClient, channel_id: str) -> list[Envelope]:
    """The log once nobody adds to it any more."""

    async def quiet():
        log = await wal(client, channel_id)
        await asyncio.sleep(0.3)
        return log if log == await wal(client, channel_id) else None

    return await eventually(quiet)


def turns(envelopes: list[Envelope]) -> list[tuple[str, str]]:
    """(sender, words) of each text and packet."""
    said = []
    for e in envelopes:
        if e.event_type == EV_TEXT:
            said.append((e.sender_id, e.event_data["text"]))
        elif e.event_type == EV_PACKET:
            said.append((e.sender_id, e.event_data["body"]))
    return said


def types(envelopes: list[Envelope]) -> list[str]:
    return [e.event_type for e in envelopes]


async def until_turns(client: AgentClient | HumanClient, channel_id: str, count: int) -> list[Envelope]:
    """The log, once it holds at least count turns."""

    async def enough() -> list[Envelope] | None:
        log = await wal(client, channel_id)
        return log if len(turns(log)) >= count else None

    return await eventually(enough, what=f"{count} turns in {channel_id}")


async def until_closed(client: AgentClient | HumanClient, channel_id: str, timeout: float = PATIENCE) -> Any:
    """The channel's metadata, once it is terminal."""

    async def ended() -> Any:
        metadata = await client._hub_client.get_channel(channel_id)
        return metadata if metadata.is_terminal() else None

    return await eventually(ended, timeout=timeout, what=f"{channel_id} closed")
