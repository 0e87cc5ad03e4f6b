"""Workflow: the graph decides, agents hand over, finish, and set context."""

import pytest
from ag2.network import (
    EV_CONTEXT_SET,
    EV_PACKET,
    EV_TEXT,
    AgentTarget,
    Always,
    ChannelInject,
    ChannelStateInject,
    ContextEquals,
    Finish,
    FromSpeaker,
    Handoff,
    ProtocolError,
    RevertToInitiatorTarget,
    TerminateTarget,
    ToolCalled,
    Transition,
    TransitionGraph,
)
from ag2.network.workflow_helpers import set_context

from harness.conformance import spec
from harness.model import call
from harness.party import envelope_of, script, text_of, turns, types, until_closed, until_turns, wal


def to_eng(reason: str) -> str:
    """Hand over to engineering; the graph knows to whom."""
    return "ok"


async def open_workflow(creator, others, graph, **knobs):
    return await creator.open(
        type="workflow", target=[o.passport.name for o in others], knobs={"graph": graph.to_dict(), **knobs}
    )


async def folded(client, channel):
    return await client._hub_client.adapter_state(channel.channel_id)


@spec("ag2-channels#57")
async def test_a_static_handoff_goes_where_the_graph_says(party):
    triage = await party.agent("triage", "thanks, closing")
    desk = await party.agent("desk", call("to_eng", reason="stack trace"), "See the trace.", tools=(to_eng,))
    eng = await party.agent("eng", "Fixed in main.")
    graph = TransitionGraph(
        initial_speaker=triage.agent_id,
        transitions=[
            Transition(when=ToolCalled("to_eng"), then=AgentTarget(eng.agent_id)),
            Transition(when=FromSpeaker(eng.agent_id), then=RevertToInitiatorTarget()),
            Transition(when=ContextEquals("never", True), then=TerminateTarget("never")),
        ],
        default_target=AgentTarget(desk.agent_id),
        max_turns=4,
    )
    channel = await open_workflow(triage, [desk, eng], graph)
    await channel.send("It crashes.")

    metadata = await until_closed(triage, channel.channel_id)
    log = await wal(triage, channel.channel_id)
    assert metadata.close_reason == "max_turns"
    assert turns(log) == [
        (triage.agent_id, "It crashes."),
        (desk.agent_id, "See the trace."),
        (eng.agent_id, "Fixed in main."),
        (triage.agent_id, "thanks, closing"),
    ]
    packet = next(e for e in log if e.event_type == EV_PACKET)
    assert packet.event_data == {
        "routing": {"kind": "handoff", "tool": "to_eng", "reason": "stack trace"},
        "context_updates": {"set": {}, "delete": []},
        "body": "See the trace.",
    }
    assert script(eng).prompts == [f"[{desk.passport.name}]: [Handed off via to_eng] stack trace\nSee the trace."]


@spec("ag2-channels#61")
async def test_a_dynamic_target_beats_the_graph(party):
    creator = await party.silent("creator")

    def to_eng(reason: str) -> Handoff:
        """Pick somebody at run time; the graph would send it elsewhere."""
        return Handoff(target=party.name("picked"), reason=reason)

    desk = await party.agent("desk", call("to_eng", reason="by load"), "over to you", tools=(to_eng,))
    fixed, picked = await party.agent("fixed", "no"), await party.agent("picked", "taken")
    graph = TransitionGraph(
        initial_speaker=creator.agent_id,
        transitions=[
            Transition(when=FromSpeaker(creator.agent_id), then=AgentTarget(desk.agent_id)),
            Transition(when=ToolCalled("to_eng"), then=AgentTarget(fixed.agent_id)),
        ],
        default_target=TerminateTarget("served"),
    )
    channel = await open_workflow(creator, [desk, fixed, picked], graph)
    await channel.send("help")
    metadata = await until_closed(creator, channel.channel_id)
    log = await wal(creator, channel.channel_id)
    assert turns(log) == [
        (creator.agent_id, "help"),
        (desk.agent_id, "over to you"),
        (picked.agent_id, "taken"),
    ]
    assert metadata.close_reason == "served"
    routing = [e.event_data["routing"] for e in log if e.event_type == EV_PACKET]
    assert routing[0] == {"kind": "handoff", "tool": "to_eng", "reason": "by load", "target": picked.agent_id}
    assert script(fixed).seen == []


@spec("ag2-channels#74")
async def test_context_reroutes_the_next_turn(party):
    creator = await party.silent("creator")
    seen = []

    async def classify(topic: str, channel: ChannelInject, state: ChannelStateInject) -> str:
        """Set the topic that the graph routes on."""
        seen.append(dict(state.context_vars))
        await set_context(channel, "topic", topic)
        return "noted"

    sorter = await party.agent("sorter", call("classify", topic="bugs"), "sorted", tools=(classify,))
    bugs, misc = await party.agent("bugs", "a bug indeed"), await party.agent("misc", "no")
    graph = TransitionGraph(
        initial_speaker=creator.agent_id,
        transitions=[
            Transition(when=FromSpeaker(bugs.agent_id), then=TerminateTarget("bugs_done")),
            Transition(when=FromSpeaker(creator.agent_id), then=AgentTarget(sorter.agent_id)),
            Transition(when=ContextEquals("topic", "bugs"), then=AgentTarget(bugs.agent_id)),
        ],
        default_target=AgentTarget(misc.agent_id),
    )
    channel = await open_workflow(creator, [sorter, bugs, misc], graph, context_vars={"kind": "memo"})
    await channel.send("it broke")
    metadata = await until_closed(creator, channel.channel_id)
    log = await wal(creator, channel.channel_id)
    assert metadata.close_reason == "bugs_done"
    assert seen == [{"kind": "memo"}]
    assert types(log)[-5:] == [EV_TEXT, EV_CONTEXT_SET, EV_PACKET, EV_PACKET, "ag2.channel.closed"]
    assert [who for who, _ in turns(log)] == [creator.agent_id, sorter.agent_id, bugs.agent_id]
    assert (await folded(creator, channel)).context_vars == {"kind": "memo", "topic": "bugs"}
    assert script(misc).seen == []


@spec("ag2-channels#76")
async def test_context_may_be_there_from_the_start(party):
    a, b, c = [await party.silent(n) for n in ("a", "b", "c")]
    graph = TransitionGraph(
        initial_speaker=a.agent_id,
        transitions=[Transition(when=ContextEquals("go", {"to": ["c"]}), then=AgentTarget(c.agent_id))],
        default_target=AgentTarget(b.agent_id),
    )
    channel = await open_workflow(a, [b, c], graph, context_vars={"go": {"to": ["c"]}})
    assert (await folded(a, channel)).context_vars == {"go": {"to": ["c"]}}
    await channel.send("where to?")
    allowed = [await p._hub_client.can_send(channel.channel_id, p.agent_id) for p in (a, b, c)]
    assert allowed == [False, False, True]


@spec("ag2-channels#72")
@spec("ag2-channels#73")
async def test_any_participant_may_write_context_at_any_time(party):
    a, b = await party.silent("a"), await party.silent("b")
    channel = await open_workflow(a, [b], TransitionGraph.round_robin([a.agent_id, b.agent_id]))
    before = await folded(a, channel)
    await b.send_envelope(envelope_of(channel.channel_id, b.agent_id, EV_CONTEXT_SET, {"set": {"x": [1], "y": 2}}))
    await a.send_envelope(
        envelope_of(channel.channel_id, a.agent_id, EV_CONTEXT_SET, {"delete": ["x", "z"], "set": {"z": None}})
    )
    after = await folded(a, channel)
    assert after.context_vars == {"y": 2, "z": None}
    assert (after.turn_count, after.expected_next_speaker) == (before.turn_count, before.expected_next_speaker)
    assert await a._hub_client.can_send(channel.channel_id, a.agent_id) is True


@spec("ag2-channels#59")
async def test_finish_ends_it_with_its_reason(party):
    creator = await party.silent("creator")

    def settle(summary: str) -> Finish:
        """End the channel."""
        return Finish(summary=summary, reason="settled")

    worker = await party.agent("worker", call("settle", summary="all good"), "bye", tools=(settle,))
    graph = TransitionGraph.round_robin([creator.agent_id, worker.agent_id])
    channel = await open_workflow(creator, [worker], graph)
    await channel.send("go")
    metadata = await until_closed(creator, channel.channel_id)
    log = await wal(creator, channel.channel_id)
    assert (metadata.state.value, metadata.close_reason) == ("closed", "settled")
    assert log[-2].event_data["routing"] == {
        "kind": "finish",
        "tool": "settle",
        "reason": "settled",
        "summary": "all good",
    }
    assert log[-1].event_data == {"reason": "settled", "channel_id": channel.channel_id}
    state = await folded(creator, channel)
    assert (state.expected_next_speaker, state.pending_close_reason) == (None, "settled")


@spec("ag2-channels#60")
async def test_finish_without_a_reason(party):
    a, b = await party.silent("a"), await party.silent("b")
    channel = await open_workflow(a, [b], TransitionGraph.round_robin([a.agent_id, b.agent_id]))
    packet = {"routing": {"kind": "finish", "tool": "t", "reason": ""}, "body": "end"}
    await a.send_envelope(envelope_of(channel.channel_id, a.agent_id, EV_PACKET, packet))
    assert (await until_closed(a, channel.channel_id)).close_reason == "finished"


@spec("ag2-channels#53")
async def test_a_sequence_closes_complete(party):
    a = await party.silent("a")
    b, c = await party.agent("b", "two"), await party.agent("c", "three")
    graph = TransitionGraph.sequence([a.agent_id, b.agent_id, c.agent_id])
    channel = await open_workflow(a, [b, c], graph)
    await channel.send("one")
    metadata = await until_closed(a, channel.channel_id)
    assert graph.max_turns == 3
    assert metadata.close_reason == "sequence_complete"
    assert turns(await wal(a, channel.channel_id)) == [
        (a.agent_id, "one"),
        (b.agent_id, "two"),
        (c.agent_id, "three"),
    ]


@spec("ag2-channels#54")
async def test_round_robin_closes_at_its_cap(party):
    a = await party.agent("a", "3", "5")
    b = await party.agent("b", "2", "4", "6")
    channel = await open_workflow(a, [b], TransitionGraph.round_robin([a.agent_id, b.agent_id], max_turns=6))
    await channel.send("1")
    assert (await until_closed(a, channel.channel_id)).close_reason == "max_turns"
    assert [text for _, text in turns(await wal(a, channel.channel_id))] == ["1", "2", "3", "4", "5", "6"]


@spec("ag2-channels#52")
async def test_round_robin_follows_the_participants(party):
    a, b, c = everyone = [await party.silent(n) for n in ("alice", "bob", "carol")]
    graph = TransitionGraph.round_robin([a.agent_id])
    channel = await open_workflow(a, [b, c], graph)
    with pytest.raises(ProtocolError, match="expects"):
        await c.send_envelope(text_of(channel.channel_id, c.agent_id, "first!"))
    expected = []
    for who in everyone:
        expected.append((await folded(a, channel)).expected_next_speaker)
        await who.send_envelope(text_of(channel.channel_id, who.agent_id, "hm"))
    state = await folded(a, channel)
    assert [*expected, state.expected_next_speaker] == [a.agent_id, b.agent_id, c.agent_id, a.agent_id]
    assert state.turn_count == 3
    assert await a._hub_client.can_send(channel.channel_id, a.agent_id)
    assert not await b._hub_client.can_send(channel.channel_id, b.agent_id)


@spec("ag2-channels#58")
async def test_the_manager_pattern(party):
    mgr, a, b = [await party.silent(n) for n in ("mgr", "a", "b")]
    graph = TransitionGraph(
        initial_speaker=mgr.agent_id,
        transitions=[
            Transition(when=ToolCalled("ask_a"), then=AgentTarget(a.agent_id)),
            Transition(when=ToolCalled("ask_b"), then=AgentTarget(b.agent_id)),
        ],
        default_target=RevertToInitiatorTarget(),
    )
    channel = await open_workflow(mgr, [a, b], graph)
    expected = []
    for tool, who in (("ask_a", a), ("ask_b", b)):
        packet = {"routing": {"kind": "handoff", "tool": tool, "reason": ""}, "body": ""}
        await mgr.send_envelope(envelope_of(channel.channel_id, mgr.agent_id, EV_PACKET, packet))
        expected.append((await folded(mgr, channel)).expected_next_speaker)
        assert await who._hub_client.can_send(channel.channel_id, who.agent_id)
        await who.send_envelope(text_of(channel.channel_id, who.agent_id, "done"))
        expected.append((await folded(mgr, channel)).expected_next_speaker)
        assert await mgr._hub_client.can_send(channel.channel_id, mgr.agent_id)
    assert expected == [a.agent_id, mgr.agent_id, b.agent_id, mgr.agent_id]


@spec("ag2-channels#62")
async def test_a_packet_sees_its_own_context(party):
    a, b, c = [await party.silent(n) for n in ("a", "b", "c")]
    graph = TransitionGraph(
        initial_speaker=a.agent_id,
        transitions=[Transition(when=ContextEquals("go", "c"), then=AgentTarget(c.agent_id))],
        default_target=AgentTarget(b.agent_id),
    )
    channel = await open_workflow(a, [b, c], graph)
    packet = {"routing": {"kind": "text"}, "context_updates": {"set": {"go": "c"}, "delete": []}, "body": "x"}
    await a.send_envelope(envelope_of(channel.channel_id, a.agent_id, EV_PACKET, packet))
    assert await c._hub_client.can_send(channel.channel_id, c.agent_id)
    assert not await b._hub_client.can_send(channel.channel_id, b.agent_id)
    assert (await folded(b, channel)).expected_next_speaker == c.agent_id


@pytest.mark.parley  # AG2's own hub logs it, and no client can fold the channel any more
@pytest.mark.parametrize("part", [{"context_updates": {"set": ["k"]}}, {"context_updates": ["k"]}, {"routing": "text"}])
async def test_a_packet_that_cannot_be_folded_is_refused(party, part):
    a, b = [await party.silent(n) for n in ("a", "b")]
    channel = await open_workflow(a, [b], TransitionGraph.round_robin([a.agent_id]))
    with pytest.raises(ProtocolError, match=next(iter(part))):
        await a.send_envelope(envelope_of(channel.channel_id, a.agent_id, EV_PACKET, {"body": "x", **part}))
    assert (await folded(b, channel)).turn_count == 0


@spec("ag2-channels#68")
async def test_a_bridge_without_an_agent(party):
    a, b, c = [await party.silent(n) for n in ("a", "b", "c")]
    graph = TransitionGraph(
        initial_speaker=a.agent_id,
        transitions=[Transition(when=Always(), then=AgentTarget(b.agent_id))],
    )
    channel = await open_workflow(a, [b, c], graph)
    adapter = a._hub_client.adapter_for_metadata(channel.metadata)
    plain = adapter.build_packet_envelope(channel.channel_id, a.agent_id, "first")
    await a.send_envelope(plain)
    assert (await folded(a, channel)).expected_next_speaker == b.agent_id
    directed = adapter.build_packet_envelope(
        channel.channel_id, b.agent_id, "over", handoff=Handoff(target=c.agent_id, reason="why")
    )
    await b.send_envelope(directed)
    assert (await folded(a, channel)).expected_next_speaker == c.agent_id
    assert await c._hub_client.can_send(channel.channel_id, c.agent_id)


@spec("ag2-channels#50")
@spec("ag2-channels#51")
async def test_a_graph_is_needed_and_checked(party):
    a, b, stranger = [await party.silent(n) for n in ("a", "b", "stranger")]
    with pytest.raises(ProtocolError, match="graph"):
        await a.open(type="workflow", target=b.agent_id)
    with pytest.raises(ProtocolError, match="not in participants"):
        await open_workflow(a, [b], TransitionGraph.sequence([stranger.agent_id, a.agent_id]))
    for key, value, fragment in (
        ("default_target", {"name": "nowhere", "args": {}}, "no transition target registered for 'nowhere'"),
        (
            "transitions",
            [{"when": {"name": "whim", "args": {}}, "then": {"name": "stay", "args": {}}}],
            "no transition condition registered for 'whim'",
        ),
    ):
        graph = {**TransitionGraph.sequence([a.agent_id, b.agent_id]).to_dict(), key: value}
        with pytest.raises(ProtocolError) as refused:
            await a.open(type="workflow", target=b.agent_id, knobs={"graph": graph})
        assert "invalid workflow graph" in str(refused.value) and fragment in str(refused.value)


@spec("ag2-channels#67")
async def test_context_from_outside_is_refused(party):
    a, b, outsider = [await party.silent(n) for n in ("a", "b", "outsider")]
    channel = await open_workflow(a, [b], TransitionGraph.round_robin([a.agent_id]))
    before = await wal(a, channel.channel_id)
    with pytest.raises(Exception) as refused:
        await outsider.send_envelope(
            envelope_of(channel.channel_id, outsider.agent_id, EV_CONTEXT_SET, {"set": {"x": 1}})
        )
    assert type(refused.value).__name__ in ("ProtocolError", "AccessDeniedError")
    assert await wal(a, channel.channel_id) == before


async def test_the_client_folds_what_the_hub_folds(party):
    """After each turn the hub's expected speaker is the client's."""
    a, b, c = everyone = [await party.silent(n) for n in ("a", "b", "c")]
    graph = TransitionGraph(
        initial_speaker=b.agent_id,
        transitions=[
            Transition(when=ContextEquals("n", 1.0), then=AgentTarget(c.agent_id), priority=5),
            Transition(when=FromSpeaker(c.agent_id), then=RevertToInitiatorTarget(), priority=-1),
        ],
        default_target=AgentTarget(b.agent_id),
        max_turns=12,
    )
    channel = await open_workflow(a, [b, c], graph, context_vars={"n": 0, "s": "é"})
    await a.send_envelope(envelope_of(channel.channel_id, a.agent_id, EV_CONTEXT_SET, {"set": {"n": 1}}))
    speakers = []
    for n in range(5):
        state = await folded(a, channel)
        speaker = next(p for p in everyone if p.agent_id == state.expected_next_speaker)
        allowed = [await p._hub_client.can_send(channel.channel_id, p.agent_id) for p in everyone]
        assert allowed == [p is speaker for p in everyone]
        speakers.append(speaker)
        await speaker.send_envelope(text_of(channel.channel_id, speaker.agent_id, str(n)))
    assert speakers == [b, c, a, c, a]
    await until_turns(a, channel.channel_id, 5)
