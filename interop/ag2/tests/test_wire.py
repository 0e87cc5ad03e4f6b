"""The link itself: endpoints, receipts, malformed frames, liveness."""

import asyncio
import json

import pytest
from ag2.network import EV_TEXT
from ag2.network.transport import HelloFrame, NotifyFrame, PingFrame, PongFrame, ReceiptFrame, WelcomeFrame, WsLink
from websockets.asyncio.client import connect

from harness.conformance import spec
from harness.party import envelope_of, eventually, text_of, types, wal


class Line:
    """A bare link of the real package: frames in, frames out."""

    def __init__(self, url):
        self.link = WsLink(url).client()

    async def __aenter__(self):
        await self.link.open()
        self.frames = self.link.frames()
        return self

    async def __aexit__(self, *_):
        await self.link.close()

    async def send(self, frame):
        await self.link.send_frame(frame)

    async def receive(self):
        return await asyncio.wait_for(self.frames.__anext__(), 5)

    async def hello(self, name, since=None):
        await self.send(HelloFrame(name=name, since_envelope_id=since))
        frame = await self.receive()
        assert isinstance(frame, WelcomeFrame), frame
        return frame

    async def until_pong(self):
        """Everything sent before the hub answered a ping."""
        await self.send(PingFrame())
        got = []
        while not isinstance(frame := await self.receive(), PongFrame):
            got.append(frame)
        return got


async def opened(party, *names):
    """A discussion; everyone but its creator has acknowledged and left."""
    creator = await party.silent("creator")
    others = [await party.silent(n) for n in names]
    channel = await creator.open(type="discussion", target=[o.agent_id for o in others])
    for other in others:
        await other.wait_for_channel_event(
            channel_id=channel.channel_id, predicate=lambda e: e.event_type == "ag2.channel.opened", timeout=5
        )
        await other._hub_client.get_agent(other.agent_id)
        await party.leave(other)
    return creator, channel, others


@spec("ag2-hub#1", clause="welcome with an endpoint id, which the client adopts")
async def test_welcome(party):
    agent = await party.silent("agent")
    await party.leave(agent)
    async with Line(party.url) as line:
        assert line.link.endpoint_id == ""
        welcome = await line.hello(agent.passport.name)
        assert welcome.endpoint_id != "" and welcome.hub_time != ""
        assert line.link.endpoint_id == welcome.endpoint_id


@spec("ag2-hub#9")
async def test_a_receipt_moves_the_cursor(party):
    creator, channel, (reader,) = await opened(party, "reader")
    sent = [await creator.send_envelope(_custom(channel, creator, n)) for n in range(3)]

    async def replayed(line):
        await line.hello(reader.passport.name, since="")
        frames = await line.until_pong()
        assert {f.recipient_id for f in frames} <= {reader.agent_id}
        return [f.envelope.envelope_id for f in frames if f.envelope.event_type == "app.n"]

    async with Line(party.url) as line:
        assert await replayed(line) == sent
        for status, envelope_id in (("ack", sent[1]), ("ack", sent[0]), ("nack", sent[2])):
            await line.send(
                ReceiptFrame(
                    envelope_id=envelope_id,
                    status=status,
                    recipient_id=reader.agent_id,
                    channel_id=channel.channel_id,
                )
            )
        assert await line.until_pong() == []
    async with Line(party.url) as line:
        assert await replayed(line) == sent[2:]


@spec("ag2-hub#76")
@spec("ag2-hub#75")
async def test_nacks_and_older_acks_leave_the_cursor(party):
    creator, channel, (reader,) = await opened(party, "reader")
    sent = [await creator.send_envelope(_custom(channel, creator, n)) for n in range(3)]
    async with Line(party.url) as line:
        await line.hello(reader.passport.name)
        for status, envelope_id in (("nack", sent[2]), ("ack", sent[1]), ("ack", sent[0])):
            await line.send(
                ReceiptFrame(
                    envelope_id=envelope_id,
                    status=status,
                    recipient_id=reader.agent_id,
                    channel_id=channel.channel_id,
                )
            )
        await line.hello(reader.passport.name, since="")
        assert [f.envelope.envelope_id for f in await line.until_pong()] == sent[2:]


@spec("ag2-hub#77")
async def test_receipts_that_name_too_little(party):
    creator, channel, (reader,) = await opened(party, "reader")
    sent = await creator.send_envelope(_custom(channel, creator, 0))
    async with Line(party.url) as line:
        await line.hello(reader.passport.name)
        await line.send(ReceiptFrame(envelope_id=sent, status="ack", recipient_id=reader.agent_id))
        await line.send(ReceiptFrame(envelope_id=sent, status="ack", channel_id=channel.channel_id))
        await line.hello(reader.passport.name, since="")
        assert [f.envelope.envelope_id for f in await line.until_pong()] == [sent]


@spec("ag2-hub#78")
@spec("ag2-hub#80")
async def test_replay_after_an_id(party):
    creator, channel, (reader,) = await opened(party, "reader")
    sent = [await creator.send_envelope(_custom(channel, creator, n)) for n in range(4)]
    async with Line(party.url) as line:
        await line.hello(reader.passport.name)
        assert await line.until_pong() == [], "hello without since sends only welcome"
        await line.hello(reader.passport.name, since=sent[1])
        frames = await line.until_pong()
        assert [(f.recipient_id, f.envelope.envelope_id) for f in frames] == [
            (reader.agent_id, sent[2]),
            (reader.agent_id, sent[3]),
        ]


@spec("ag2-hub#13")
async def test_agents_on_one_connection_share_its_endpoint(party):
    creator, channel, (one, two) = await opened(party, "one", "two")
    async with Line(party.url) as line:
        first = await line.hello(one.passport.name)
        second = await line.hello(two.passport.name)
        assert first.endpoint_id == second.endpoint_id
        sent = await creator.send_envelope(_custom(channel, creator, 0))
        frames = [await line.receive(), await line.receive()]
        assert sorted((f.recipient_id, f.envelope.envelope_id) for f in frames) == sorted(
            [(one.agent_id, sent), (two.agent_id, sent)]
        )
        await line.link._ws.send(
            json.dumps({"kind": "request", "request_id": "u", "op": "unregister", "params": {"agent_id": one.agent_id}})
        )
        assert (await line.receive()).ok is True
        sent = await creator.send_envelope(_custom(channel, creator, 1))
        frames = await line.until_pong()
        assert [(f.recipient_id, f.envelope.envelope_id) for f in frames] == [(two.agent_id, sent)]


@spec("ag2-hub#14")
async def test_two_connections_do_not_leak(party):
    creator, channel, (one, two) = await opened(party, "one", "two")
    async with Line(party.url) as first, Line(party.url) as second:
        endpoints = [(await first.hello(one.passport.name)), (await second.hello(two.passport.name))]
        assert endpoints[0].endpoint_id != endpoints[1].endpoint_id
        sent = [
            await creator.send_envelope(_custom(channel, creator, 0, audience=[one.agent_id])),
            await creator.send_envelope(_custom(channel, creator, 1, audience=[two.agent_id])),
            await creator.send_envelope(_custom(channel, creator, 2)),
        ]
        got = [[(f.recipient_id, f.envelope.envelope_id) for f in await line.until_pong()] for line in (first, second)]
        assert got == [
            [(one.agent_id, sent[0]), (one.agent_id, sent[2])],
            [(two.agent_id, sent[1]), (two.agent_id, sent[2])],
        ]


@spec("ag2-hub#82")
async def test_an_ack_in_one_channel_leaves_the_other(party):
    a, b = await party.silent("a"), await party.silent("b")
    one = await a.open(type="conversation", target=b.agent_id)
    two = await a.open(type="conversation", target=b.agent_id)
    for channel in (one, two):
        await b.wait_for_channel_event(
            channel_id=channel.channel_id, predicate=lambda e: e.event_type == "ag2.channel.opened", timeout=5
        )
    await b._hub_client.get_agent(b.agent_id)
    await party.leave(b)
    older = await one.send("older")
    newer = await two.send("newer")
    async with Line(party.url) as line:
        await line.hello(b.passport.name)
        await line.send(
            ReceiptFrame(envelope_id=newer, status="ack", recipient_id=b.agent_id, channel_id=two.channel_id)
        )
        await line.hello(b.passport.name, since="")
        assert [f.envelope.envelope_id for f in await line.until_pong()] == [older]


@spec("ag2-hub#81")
@spec("ag2-hub#79")
async def test_what_replay_leaves_out(party):
    creator, channel, (reader,) = await opened(party, "reader")
    async with Line(party.url) as line:
        await line.hello(reader.passport.name, since="")
        assert await line.until_pong() == [], "everything was acknowledged"
        await creator.send_envelope(_custom(channel, creator, 0))
        assert isinstance(await line.receive(), NotifyFrame)
        await line.hello(reader.passport.name, since="")
        assert len(await line.until_pong()) == 1
    await channel.close("over")
    async with Line(party.url) as line:
        await line.hello(reader.passport.name, since="")
        assert await line.until_pong() == [], "closed channels are not replayed"


async def test_what_is_no_frame_is_dropped(party):
    agent = await party.silent("agent")
    async with Line(party.url) as line:
        for junk in ("", "not json", "[]", "7", '{"kind":"song"}', '{"kind":"hello"}', '{"kind":"notify"}', "{}"):
            await line.link._ws.send(junk)
        assert await line.until_pong() == []
        assert (await line.hello(agent.passport.name)).endpoint_id != ""
    assert (await agent._hub_client.get_agent(agent.agent_id)).agent_id == agent.agent_id


@pytest.mark.parametrize("path", ["", "/", "/hub", "/deep/er?x=1"])
async def test_any_path_will_do(party, path):
    async with Line(party.url + path) as line:
        assert await line.until_pong() == []


async def test_websocket_pings_are_answered_while_an_operation_waits(party):
    """create_channel waits for an ack that does not come; the reader reads on."""
    creator = await party.silent("creator")
    absent = await party.silent("absent")
    await party.leave(absent)
    opening = asyncio.create_task(creator.open(type="conversation", target=absent.agent_id))
    link = creator._hub_client._client_link

    async def invited():
        return await creator._hub_client.list_channels(agent_id=creator.agent_id)

    if party.ours:
        (pending,) = await eventually(invited)
        assert pending.state.value == "pending"
    latency = await asyncio.wait_for(await link._ws.ping(), 5)
    assert latency < 5
    back = await party.silent("absent", attach=True)
    channel = await asyncio.wait_for(opening, 10)
    assert channel.state.value == "active"
    assert types(await wal(back, channel.channel_id))[:3] == [
        "ag2.channel.invite",
        "ag2.channel.invite.ack",
        "ag2.channel.opened",
    ]


async def test_responses_are_found_by_their_id(party):
    """Two hundred requests in flight on one connection, answered each to its own."""
    agents = [await party.silent(f"a{n}") for n in range(5)]
    hub = await party.client().open()
    asked = [agents[n % 5] for n in range(200)]
    got = await asyncio.gather(*(hub.get_agent(a.passport.name) for a in asked))
    assert [p.agent_id for p in got] == [a.agent_id for a in asked]


async def test_pipelined_posts_keep_their_order(party):
    a, b = await party.silent("a"), await party.silent("b")
    channel = await a.open(type="conversation", target=b.agent_id)
    words = [str(n) for n in range(200)]
    ids = await asyncio.gather(*(a.send_envelope(text_of(channel.channel_id, a.agent_id, w)) for w in words))
    log = [e for e in await wal(a, channel.channel_id) if e.event_type == EV_TEXT]
    assert [e.event_data["text"] for e in log] == words
    assert [e.envelope_id for e in log] == list(ids) == sorted(ids)
    heard = []
    while len(heard) < 200:
        e = await b.wait_for_channel_event(channel_id=channel.channel_id, predicate=lambda e: True, timeout=5)
        if e.event_type == EV_TEXT:
            heard.append(e.envelope_id)
    assert heard == list(ids)


@pytest.mark.parley
async def test_a_frame_over_one_mib_never_reaches_the_client(party):
    """The client would close its connection; the hub answers an error instead."""
    a, b = await party.silent("a"), await party.silent("b")
    channel = await a.open(type="conversation", target=b.agent_id)
    for n in range(3):
        await a.send_envelope(text_of(channel.channel_id, a.agent_id, str(n) * (450 << 10)))
    with pytest.raises(Exception) as refused:
        await b._hub_client.read_wal(channel.channel_id)
    assert type(refused.value).__name__ == "NetworkError"
    assert len(await b._hub_client.read_wal(channel.channel_id, since=-1)) == 1
    assert (await b._hub_client.get_channel(channel.channel_id)).state.value == "active"


async def test_without_compression(party):
    """The client offers permessage-deflate; a client that does not is served too."""
    agent = await party.silent("agent")
    async with connect(party.url, compression=None) as ws:
        await ws.send(
            json.dumps(
                {"kind": "request", "request_id": "r", "op": "find_agent_id", "params": {"name": agent.passport.name}}
            )
        )
        answer = json.loads(await asyncio.wait_for(ws.recv(), 5))
    assert answer == {
        "kind": "response",
        "request_id": "r",
        "ok": True,
        "result": agent.agent_id,
        "error_code": "",
        "error_message": "",
    }


def _custom(channel, sender, n, **more):
    return envelope_of(channel.channel_id, sender.agent_id, "app.n", {"n": n}, **more)
