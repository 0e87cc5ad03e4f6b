"""Conversation: two parties, free order, until somebody ends it."""

import asyncio

import pytest
from ag2.network import EV_TEXT, AccessDeniedError, ProtocolError

from harness.conformance import spec
from harness.party import envelope_of, eventually, script, text_of, turns, types, until_turns, wal


@spec("ag2-channels#19")
async def test_two_agents_alternate_until_one_has_nothing_to_say(party):
    alice = await party.agent("alice", "a2", "a3")
    bob = await party.agent("bob", "b1", "b2", "")
    channel = await alice.open(type="conversation", target=bob.passport.name)
    await channel.send("a1")
    log = await until_turns(alice, channel.channel_id, 5)

    async def told():
        return len(script(bob).seen) == 3

    await eventually(told)
    log = await wal(alice, channel.channel_id)
    assert turns(log) == [
        (alice.agent_id, "a1"),
        (bob.agent_id, "b1"),
        (alice.agent_id, "a2"),
        (bob.agent_id, "b2"),
        (alice.agent_id, "a3"),
    ]
    said = [e for e in log if e.event_type == EV_TEXT]
    assert [e.causation_id for e in said] == [None, *(e.envelope_id for e in said[:-1])]
    assert script(bob).prompts == ["a1", "a2", "a3"]
    assert script(alice).prompts == ["b1", "b2"]


@spec("ag2-channels#17")
async def test_either_side_may_speak_twice(party):
    a, b = await party.silent("a"), await party.silent("b")
    channel = await a.open(type="conversation", target=b.passport.name)
    for who, words in ((a, "1"), (a, "2"), (b, "3"), (b, "4"), (a, "5")):
        await who.send_envelope(text_of(channel.channel_id, who.agent_id, words))
    assert turns(await wal(b, channel.channel_id)) == [
        (a.agent_id, "1"),
        (a.agent_id, "2"),
        (b.agent_id, "3"),
        (b.agent_id, "4"),
        (a.agent_id, "5"),
    ]
    for who in (a, b):
        state = await who._hub_client.adapter_state(channel.channel_id)
        assert (state.turn_count, state.last_speaker_id) == (5, a.agent_id)


@spec("ag2-channels#20")
async def test_an_explicit_close_keeps_its_reason(party):
    a, b = await party.silent("a"), await party.silent("b")
    channel = await a.open(type="conversation", target=b.passport.name)
    closed = await channel.close("done")
    assert (closed.state.value, closed.close_reason) == ("closed", "done")
    assert (await channel.close("again")).close_reason == "done"
    heard = await b.wait_for_channel_event(
        channel_id=channel.channel_id, predicate=lambda e: e.event_type == "ag2.channel.closed", timeout=5
    )
    assert heard.event_data == {"reason": "done", "channel_id": channel.channel_id}
    with pytest.raises(ProtocolError, match="closed"):
        await channel.send("too late")


@spec("ag2-channels#22")
@spec("ag2-hub#25")
async def test_five_posts_at_once_have_five_ids(party):
    a, b = await party.silent("a"), await party.silent("b")
    channel = await a.open(type="conversation", target=b.passport.name)
    ids = await asyncio.gather(*(channel.send(f"n{i}") for i in range(5)))
    log = [e for e in await wal(a, channel.channel_id) if e.event_type == EV_TEXT]
    assert len(set(ids)) == 5
    assert sorted(ids) == [e.envelope_id for e in log]
    assert {e.envelope_id: e.event_data["text"] for e in log} == {id: f"n{i}" for i, id in enumerate(ids)}


@spec("ag2-hub#15")
async def test_an_envelope_for_one_reaches_only_that_one(party):
    a, both = await party.silent("a"), party.client()
    b, c = await party.silent("b", on=both), await party.silent("c", on=both)
    channel = await a.open(type="discussion", target=[b.passport.name, c.passport.name])
    await channel.send("for b", audience=[b.agent_id])
    await a.send_envelope(envelope_of(channel.channel_id, a.agent_id, "app.mark", {}, audience=None))
    got = {}
    for who in (b, c):
        got[who] = []
        while not got[who] or got[who][-1].event_type != "app.mark":
            got[who].append(
                await who.wait_for_channel_event(channel_id=channel.channel_id, predicate=lambda e: True, timeout=5)
            )
    assert types(got[b]) == ["ag2.channel.invite", "ag2.channel.opened", EV_TEXT, "app.mark"]
    assert types(got[c]) == ["ag2.channel.invite", "ag2.channel.opened", "app.mark"]
    own = a.ensure_channel_inbox(channel.channel_id)
    assert types([own.get_nowait() for _ in range(own.qsize())]) == ["ag2.channel.opened"]


async def test_an_outsider_is_refused(party):
    a, b, outsider = await party.silent("a"), await party.silent("b"), await party.silent("outsider")
    channel = await a.open(type="conversation", target=b.passport.name)
    before = await wal(a, channel.channel_id)
    with pytest.raises((AccessDeniedError, ProtocolError)):
        await outsider.send_envelope(text_of(channel.channel_id, outsider.agent_id, "hello?"))
    with pytest.raises((AccessDeniedError, ProtocolError)):
        await outsider.send_envelope(envelope_of(channel.channel_id, outsider.agent_id, "app.custom", {}))
    assert await wal(a, channel.channel_id) == before


async def test_payloads_survive_exactly(party):
    a, b = await party.silent("a"), await party.silent("b")
    channel = await a.open(type="conversation", target=b.passport.name, knobs={"any": {"deep": [1, 2.0, None]}})
    data = {
        "big": 2**80,
        "int": 1,
        "float": 1.0,
        "tiny": 1e-300,
        "text": "naïve 漢字 🜚 \u0000 \u2028",
        "empty": {},
        "nested": [[], [{}], [{"a": [None, True, False]}]],
    }
    sent = await a.send_envelope(
        envelope_of(
            channel.channel_id,
            a.agent_id,
            "app.data",
            data,
            priority="urgent",
            depth=3,
            idempotency_key="k-1",
            task_id="t-1",
            ttl_seconds=600,
        )
    )
    got = await b.wait_for_channel_event(
        channel_id=channel.channel_id, predicate=lambda e: e.event_type == "app.data", timeout=5
    )
    assert got.envelope_id == sent
    assert got.event_data == data
    assert [type(got.event_data[k]) for k in ("big", "int", "float")] == [int, int, float]
    assert (got.priority, got.depth, got.idempotency_key, got.task_id, got.ttl_seconds) == (
        "urgent",
        3,
        "k-1",
        "t-1",
        600,
    )
    assert (await wal(b, channel.channel_id))[-1] == got
    assert (await channel.info()).knobs == {"any": {"deep": [1, 2.0, None]}}
