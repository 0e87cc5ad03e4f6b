"""Discussion: a rotation that each client folds for itself."""

import pytest
from ag2.network import ProtocolError

from harness.conformance import spec
from harness.party import eventually, script, text_of, turns, types, until_turns, wal


async def three(party, a=(), b=(), c=()):
    return (
        await party.agent("ada", *a),
        await party.agent("bo", *b),
        await party.agent("cy", *c),
    )


@spec("ag2-channels#28")
@spec("ag2-channels#29")
async def test_three_agents_drive_themselves_and_halt(party):
    ada, bo, cy = await three(party, a=["a2"], b=["b1", ""], c=["c1"])
    channel = await ada.open(type="discussion", target=[bo.passport.name, cy.passport.name])
    await channel.send("a1")
    await until_turns(ada, channel.channel_id, 4)

    async def asked():
        return len(script(bo).seen) == 2

    await eventually(asked)
    log = await wal(ada, channel.channel_id)
    assert turns(log) == [
        (ada.agent_id, "a1"),
        (bo.agent_id, "b1"),
        (cy.agent_id, "c1"),
        (ada.agent_id, "a2"),
    ]
    names = {who.agent_id: who.passport.name for who in (ada, bo, cy)}
    assert script(bo).prompts == [f"[{names[ada.agent_id]}]: a1", f"[{names[ada.agent_id]}]: a2"]
    assert script(cy).prompts == [f"[{names[bo.agent_id]}]: b1"]
    assert script(ada).prompts == [f"[{names[cy.agent_id]}]: c1"]
    for who in (ada, bo, cy):
        state = await who._hub_client.adapter_state(channel.channel_id)
        assert (state.expected_next_speaker, state.turn_count) == (bo.agent_id, 4)


@spec("ag2-channels#24")
async def test_out_of_turn_is_refused_by_name(party):
    ada, bo, cy = [await party.silent(n) for n in ("ada", "bo", "cy")]
    channel = await ada.open(type="discussion", target=[bo.agent_id, cy.agent_id])
    await channel.send("a1")
    before = await wal(ada, channel.channel_id)
    with pytest.raises(ProtocolError) as refused:
        await cy.send_envelope(text_of(channel.channel_id, cy.agent_id, "me"))
    assert f"expects '{bo.agent_id}' to speak" in str(refused.value)
    assert await wal(ada, channel.channel_id) == before


@spec("ag2-channels#25")
async def test_the_rotation_wraps(party):
    ada, bo, cy = everyone = [await party.silent(n) for n in ("ada", "bo", "cy")]
    channel = await ada.open(type="discussion", target=[bo.agent_id, cy.agent_id])
    expected = []
    for who in everyone:
        state = await ada._hub_client.adapter_state(channel.channel_id)
        expected.append(state.expected_next_speaker)
        await who.send_envelope(text_of(channel.channel_id, who.agent_id, "hm"))
    state = await ada._hub_client.adapter_state(channel.channel_id)
    expected.append(state.expected_next_speaker)
    assert expected == [ada.agent_id, bo.agent_id, cy.agent_id, ada.agent_id]
    assert state.turn_count == 3
    # The hub's own fold agrees with the client's.
    can = [await who._hub_client.can_send(channel.channel_id, who.agent_id) for who in everyone]
    assert can == [True, False, False]


@spec("ag2-channels#3")
async def test_five_parties(party):
    everyone = [await party.silent(f"p{i}") for i in range(5)]
    creator, rest = everyone[0], everyone[1:]
    channel = await creator.open(type="discussion", target=[p.passport.name for p in rest])
    log = await wal(creator, channel.channel_id)
    assert sorted(types(log)) == sorted(
        ["ag2.channel.invite"] * 4 + ["ag2.channel.invite.ack"] * 4 + ["ag2.channel.opened"]
    )
    assert types(log)[-1] == "ag2.channel.opened"
    assert [e.audience for e in log if e.event_type == "ag2.channel.invite"] == [[p.agent_id] for p in rest]
    state = await creator._hub_client.adapter_state(channel.channel_id)
    assert state.participant_order == [p.agent_id for p in everyone]
    assert state.expected_next_speaker == creator.agent_id


@spec("ag2-hub#16")
async def test_a_broadcast_reaches_all_but_its_sender(party):
    everyone = [await party.silent(f"p{i}") for i in range(4)]
    creator, rest = everyone[0], everyone[1:]
    channel = await creator.open(type="discussion", target=[p.agent_id for p in rest])
    sent = await channel.send("hear me")
    for who in rest:
        heard = await who.wait_for_channel_event(
            channel_id=channel.channel_id, predicate=lambda e: e.event_type == "ag2.msg.text", timeout=5
        )
        assert (heard.envelope_id, heard.audience) == (sent, None)
    own = creator.ensure_channel_inbox(channel.channel_id)
    assert types([own.get_nowait() for _ in range(own.qsize())]) == ["ag2.channel.opened"]


@spec("ag2-channels#30")
@spec("ag2-hub#88", clause="expected speaker, others, conversation, fresh discussion")
async def test_pending_turns(party):
    ada, bo, cy = [await party.silent(n) for n in ("ada", "bo", "cy")]
    channel = await ada.open(type="discussion", target=[bo.agent_id, cy.agent_id])
    talk = await ada.open(type="conversation", target=bo.agent_id)

    async def pending(who):
        return await who._hub_client.pending_turns_for(who.agent_id)

    (fresh,) = await pending(ada)
    assert (fresh.channel_id, fresh.triggering_envelope_id) == (channel.channel_id, None)
    assert fresh.expected_at != ""
    assert await pending(bo) == [] and await pending(cy) == []

    sent = await channel.send("a1")
    await talk.send("free-form, nobody is expected")
    trigger = (await wal(ada, channel.channel_id))[-1]
    (turn,) = await pending(bo)
    assert (turn.channel_id, turn.triggering_envelope_id, turn.expected_at) == (
        channel.channel_id,
        sent,
        trigger.created_at,
    )
    assert await pending(ada) == [] and await pending(cy) == []


@spec("ag2-channels#23")
async def test_orderings_and_sizes_that_do_not_exist(party):
    ada, bo = await party.silent("ada"), await party.silent("bo")
    for ordering in ("dynamic", "weighted"):
        with pytest.raises(ProtocolError, match="ordering"):
            await ada.open(type="discussion", target=bo.agent_id, knobs={"ordering": ordering})
    with pytest.raises(ProtocolError, match="at least 2"):
        await ada.open(type="discussion", target=ada.agent_id)
    assert await ada._hub_client.list_channels(agent_id=ada.agent_id, include_terminal=True) == []
