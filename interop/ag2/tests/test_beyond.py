"""What our hub does beyond AG2's own, as the real client meets it."""

import asyncio

import pytest
from ag2.network import EV_EXPECTATION_VIOLATED, EV_TEXT, AccessDeniedError, ProtocolError, RateBlock, Rule
from ag2.network.rule import ChannelTypeAccess

from harness.conformance import spec
from harness.party import Party, envelope_of, eventually, script, text_of, turns, types, until_turns, wal

pytestmark = pytest.mark.parley


@pytest.fixture(scope="module")
def brisk_hub(new_hub):
    """A hub that checks deadlines often."""
    return new_hub(settings={"hub.ttl_sweep_interval": "100ms", "hub.expectation_sweep_interval": "100ms"})


@pytest.fixture
async def brisk(brisk_hub, anyio_backend):
    party = Party(brisk_hub.url)
    yield party
    await party.close()


async def heard(client, channel_id, last):
    got = []
    while not got or got[-1].event_type != last:
        got.append(await client.wait_for_channel_event(channel_id=channel_id, predicate=lambda e: True, timeout=10))
    return got


@spec("ag2-hub#93", clause="state expired, reason ttl_expired, waiting peers see it")
async def test_a_channel_past_its_time(brisk):
    a, b = await brisk.silent("a"), await brisk.silent("b")
    channel = await a.open(type="conversation", target=b.agent_id, ttl="1s")
    for who in (a, b):
        got = await heard(who, channel.channel_id, "ag2.channel.expired")
        assert got[-1].event_data == {"reason": "ttl_expired", "channel_id": channel.channel_id}
    metadata = await channel.info()
    assert (metadata.state.value, metadata.close_reason) == ("expired", "ttl_expired")
    with pytest.raises(ProtocolError, match="expired"):
        await channel.send("too late")


async def test_a_violated_expectation_has_the_name_the_client_knows(brisk):
    expectations = [{"name": "turn_within", "on_violation": "warn", "params": {"seconds": 0}, "applies_to": None}]
    a = await brisk.silent("a")
    b = await brisk.agent("b")
    channel = await a.open(type="discussion", target=b.agent_id, knobs={"expectations": expectations})
    violated = (await heard(b, channel.channel_id, EV_EXPECTATION_VIOLATED))[-1]
    assert (violated.event_data["expectation"], violated.event_data["violators"]) == ("turn_within", [a.agent_id])
    log = await wal(a, channel.channel_id)
    assert types(log)[3] == "ag2.expectation.violated"
    # It is nobody's turn, and the discussion continues.
    assert script(b).seen == []
    await channel.send("here I am")
    assert turns(await wal(b, channel.channel_id)) == [(a.agent_id, "here I am")]


async def test_the_same_post_with_the_same_key_is_one_post(party):
    a, b = await party.silent("a"), await party.silent("b")
    channel = await a.open(type="conversation", target=b.agent_id)
    first = await a.send_envelope(text_of(channel.channel_id, a.agent_id, "once", idempotency_key="k"))
    again = await a.send_envelope(text_of(channel.channel_id, a.agent_id, "once", idempotency_key="k"))
    assert first == again
    with pytest.raises(ProtocolError):
        await a.send_envelope(text_of(channel.channel_id, a.agent_id, "twice", idempotency_key="k"))
    await b.send_envelope(text_of(channel.channel_id, b.agent_id, "mine", idempotency_key="k"))
    assert turns(await wal(a, channel.channel_id)) == [(a.agent_id, "once"), (b.agent_id, "mine")]


async def test_a_forged_close_closes_nothing(party):
    a, b = await party.silent("a"), await party.silent("b")
    channel = await a.open(type="conversation", target=b.agent_id)
    data = {"reason": "forged", "channel_id": channel.channel_id}
    await a.send_envelope(envelope_of(channel.channel_id, a.agent_id, "ag2.channel.closed", data))
    sent = await channel.send("still open")
    got = await heard(b, channel.channel_id, EV_TEXT)
    assert got[-1].envelope_id == sent
    assert "ag2.channel.closed" not in types(got)
    assert (await channel.info()).state.value == "active"


async def test_a_taken_name_points_to_attach(party):
    await party.silent("taken")
    with pytest.raises(ProtocolError, match="already registered.*attach"):
        await party.silent("taken")


async def test_the_rate_is_enforced(party):
    rule = Rule()
    rule.limits.rate = RateBlock(per_minute=60, burst=3)
    a, b = await party.silent("a", rule=rule), await party.silent("b")
    channel = await a.open(type="conversation", target=b.agent_id)
    outcomes = await asyncio.gather(*(channel.send(str(n)) for n in range(10)), return_exceptions=True)
    refused = [o for o in outcomes if isinstance(o, AccessDeniedError)]
    assert 6 <= len(refused) <= 7
    accepted = [o for o in outcomes if isinstance(o, str)]
    assert [e.envelope_id for e in await wal(b, channel.channel_id) if e.event_type == EV_TEXT] == accepted


async def test_channel_types_are_enforced(party):
    mute_rule, deaf_rule = Rule(), Rule()
    mute_rule.access.channel_types = ChannelTypeAccess(initiate=["consulting"], accept=["*"])
    deaf_rule.access.channel_types = ChannelTypeAccess(initiate=["*"], accept=["consulting"])
    a, b = await party.silent("a", rule=mute_rule), await party.silent("b", rule=deaf_rule)
    with pytest.raises(AccessDeniedError):
        await a.open(type="conversation", target=b.agent_id)
    c = await party.silent("c")
    with pytest.raises(AccessDeniedError):
        await c.open(type="conversation", target=b.agent_id)
    assert (await a.open(type="consulting", target=b.agent_id)).state.value == "active"


async def test_a_stop_is_orderly(new_hub, anyio_backend):
    """SIGTERM with channels open and turns in flight: it ends by itself, and
    calls fail at once instead of waiting for their time-out."""
    hub = new_hub()
    party = Party(hub.url)
    thinking = asyncio.Event()

    async def think(_messages):
        thinking.set()
        await asyncio.sleep(3600)

    a, b = await party.silent("a"), await party.agent("b", think)
    channel = await a.open(type="conversation", target=b.agent_id)
    await channel.send("think")
    await asyncio.wait_for(thinking.wait(), 10)
    process = hub.process
    await asyncio.get_running_loop().run_in_executor(None, hub.stop)
    assert process.returncode == 0

    async def noticed():
        return a._hub_client._receive_task.done() and b._hub_client._receive_task.done()

    await eventually(noticed, timeout=5)
    await asyncio.get_running_loop().run_in_executor(None, hub.start)
    back = await party.silent("a", attach=True)
    assert turns(await until_turns(back, channel.channel_id, 1)) == [(a.agent_id, "think")]
    for client in party._clients:
        for task in client._notify_tasks:
            task.cancel()
    await party.close()
