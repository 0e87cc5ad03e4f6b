"""Tasks: run by agents, observed by the hub; checkpoints that outlive it."""

import pytest
from ag2 import Agent, Context
from ag2.network import EV_TEXT, AccessDeniedError, HubBackedCheckpointStore, NotFoundError, Resume
from ag2.task import TaskMetadata, TaskSpec, TaskState

from harness.conformance import spec
from harness.model import Script, call
from harness.party import envelope_of, eventually, turns, types, until_turns, wal


async def worker(party, capability, *lines):
    """An agent whose tool runs a task in its turn, as AG2's agents do."""
    ran = []

    async def work(outcome: str, tagged: bool, context: Context) -> str:
        """Run one task."""
        try:
            async with agent.task("scan", capability=capability if tagged else None, context=context) as task:
                ran.append(task.task_id)
                await task.progress({"pages": 3})
                await task.progress({"pages": 4, "last": True})
                if outcome == "fail":
                    raise RuntimeError("unreadable")
                if outcome == "cancel":
                    await task.cancel("not needed")
                else:
                    await task.complete({"text": outcome})
        except RuntimeError as failure:
            return str(failure)
        return "ok"

    name = party.name("worker")
    agent = Agent(name, config=Script(*lines), tools=[work])
    client = await party.client().register(agent, resume=Resume(claimed_capabilities=[capability]))
    client.ran = ran
    return client


def steps(*outcomes, tagged=True):
    """A turn for each: call the tool, then answer."""
    return [turn for n, o in enumerate(outcomes) for turn in (call("work", outcome=o, tagged=tagged), f"done {n}")]


async def drive(boss, channel, count):
    for n in range(count):
        await channel.send(f"task {n}, please")
        await boss.wait_for_channel_event(
            channel_id=channel.channel_id, predicate=lambda e: e.event_type == EV_TEXT, timeout=10
        )


@spec("ag2-hub#40", clause="completed and failed count, n totals, one sample is that sample")
@spec("ag2-hub#100")
@spec("ag2-hub#44")
async def test_tasks_are_observed_into_the_resume(party):
    capability = party.name("ocr")
    boss = await party.silent("boss")
    scan = await worker(party, capability, *steps("a page", "fail", "cancel"), *steps("untagged", tagged=False))
    channel = await boss.open(type="conversation", target=scan.agent_id)
    await drive(boss, channel, 1)
    observed = (await boss._hub_client.get_resume(scan.agent_id)).observed
    assert set(observed) == {capability}
    stat = observed[capability]
    assert (stat.n, stat.completed, stat.failed, stat.expired) == (1, 1, 0, 0)
    assert isinstance(stat.p50_latency_ms, int) and 0 <= stat.p50_latency_ms < 10_000

    await drive(boss, channel, 1)
    stat = (await boss._hub_client.get_resume(scan.agent_id)).observed[capability]
    assert (stat.n, stat.completed, stat.failed, stat.expired) == (2, 1, 1, 0)
    await drive(boss, channel, 1)
    stat = (await boss._hub_client.get_resume(scan.agent_id)).observed[capability]
    assert (stat.n, stat.completed, stat.failed, stat.expired) == (3, 1, 1, 0), "cancelled raises only n"
    await drive(boss, channel, 1)
    after = (await boss._hub_client.get_resume(scan.agent_id)).observed
    assert after == {capability: stat}, "an untagged task changed the resume"

    # The records, as a participant of the channel sees them.
    tasks = [await boss._hub_client.get_task(task_id) for task_id in scan.ran]
    assert [t.state.value for t in tasks] == ["completed", "failed", "cancelled", "completed"]
    assert [t.result for t in tasks] == [{"text": "a page"}, None, None, {"text": "untagged"}]
    assert [t.error for t in tasks] == ["", "unreadable", "not needed", ""]
    assert {(t.owner_id, t.channel_id, t.spec.title) for t in tasks} == {
        (scan.agent_id, channel.channel_id, "scan"),
    }
    assert [t.progress for t in tasks] == [{"pages": 4, "last": True}] * 4
    assert all(t.completed_at and t.last_progress_at for t in tasks)
    listed = await boss._hub_client.list_tasks(channel_id=channel.channel_id)
    assert [t.task_id for t in listed] == scan.ran
    failed = await boss._hub_client.list_tasks(agent_id=scan.agent_id, state=TaskState.FAILED)
    assert [t.task_id for t in failed] == scan.ran[1:2]


@spec("ag2-hub#41")
@spec("ag2-hub#43")
@spec("ag2-hub#42")
async def test_observations(party):
    agent = await party.silent("agent")
    capability = party.name("surprise")
    hub = agent._hub_client

    async def observe(outcome, task_id):
        await hub.record_observation(
            owner_id=agent.agent_id, capability=capability, outcome=outcome, latency_ms=840, task_id=task_id
        )
        return (await hub.get_resume(agent.agent_id)).observed.get(capability)

    assert await observe(TaskState.RUNNING, "t0") is None
    assert [p.agent_id for p in await hub.list_agents(capability=capability)] == []
    first = await observe(TaskState.COMPLETED, "t1")
    assert (first.n, first.completed, first.p50_latency_ms) == (1, 1, 840)
    assert [p.agent_id for p in await party.client().list_agents(capability=capability)] == [agent.agent_id]
    assert await observe(TaskState.COMPLETED, "t1") == first
    assert (await observe(TaskState.COMPLETED, "t2")).n == 2


@pytest.mark.parley
async def test_start_and_end_are_mirrored_into_the_channel(party):
    """AG2's own hub keeps tasks out of the log."""
    boss = await party.silent("boss")
    scan = await worker(party, party.name("ocr"), *steps("a page"))
    channel = await boss.open(type="conversation", target=scan.agent_id)
    await drive(boss, channel, 1)
    log = await wal(boss, channel.channel_id)
    assert types(log)[3:] == [EV_TEXT, "ag2.task.started", "ag2.task.completed", EV_TEXT]
    for mirrored in log[4:6]:
        assert (mirrored.sender_id, mirrored.task_id) == (scan.agent_id, scan.ran[0])
        assert mirrored.event_data["task_id"] == scan.ran[0]
    assert [text for _, text in turns(log)] == ["task 0, please", "done 0"]


@spec("ag2-channels#100", clause="cancel posts exactly one request with data and audience")
async def test_a_peer_asks_to_cancel(party):
    results = []

    def remember(messages):
        results.append(str(messages[-1].results[0].result.parts[0].content))
        return "asked"

    owner, boss = await party.silent("owner"), await party.silent("boss")
    task_id = f"long-{party.tag}"
    peer = await party.agent("peer", call("tasks", action="cancel", task_id=task_id, reason="enough"), remember)
    shared = await owner.open(type="conversation", target=peer.agent_id)
    await owner._hub_client.observe_task(
        TaskMetadata(
            task_id=task_id,
            owner_id=owner.agent_id,
            spec=TaskSpec(title="long"),
            state=TaskState.RUNNING,
            channel_id=shared.channel_id,
        )
    )
    talk = await boss.open(type="conversation", target=peer.agent_id)
    await talk.send("stop it")
    await until_turns(boss, talk.channel_id, 2)
    request = await owner.wait_for_channel_event(
        channel_id=shared.channel_id, predicate=lambda e: e.event_type.startswith("ag2.task."), timeout=5
    )
    assert results == [f"cancel_request posted to {owner.agent_id} for task {task_id}"]
    assert (request.event_type, request.audience, request.task_id) == (
        "ag2.task.cancel_request",
        [owner.agent_id],
        task_id,
    )
    assert request.event_data == {"task_id": task_id, "reason": "enough"}
    log = await wal(owner, shared.channel_id)
    assert types(log).count("ag2.task.cancel_request") == 1


@spec("ag2-hub#95", clause="tasks under a closing channel become expired")
async def test_a_closing_channel_expires_its_tasks(party):
    owner, peer = await party.silent("owner"), await party.silent("peer")
    channel = await owner.open(type="conversation", target=peer.agent_id)
    task_id = f"cut-{party.tag}"
    await owner._hub_client.observe_task(
        TaskMetadata(
            task_id=task_id,
            owner_id=owner.agent_id,
            spec=TaskSpec(title="cut short"),
            state=TaskState.RUNNING,
            channel_id=channel.channel_id,
        )
    )
    await channel.close("done")
    task = await peer._hub_client.get_task(task_id)
    assert (task.state.value, task.error) == ("expired", "channel_closed")
    await owner._hub_client.update_task(task_id, state=TaskState.COMPLETED)
    assert (await owner._hub_client.get_task(task_id)).state.value == "expired"


@spec("ag2-channels#15")
@spec("ag2-hub#10")
async def test_task_envelopes_do_not_take_turns(party):
    asker, expert = await party.silent("asker"), await party.silent("expert")
    channel = await asker.open(type="consulting", target=expert.agent_id)
    await channel.send("?")
    for who in (expert, asker, expert):
        await who.send_envelope(
            envelope_of(channel.channel_id, who.agent_id, "ag2.task.progress", {"task_id": "t"}, task_id="t")
        )
    assert (await channel.info()).state.value == "active"
    await expert.send_envelope(
        envelope_of(channel.channel_id, expert.agent_id, EV_TEXT, {"text": "!"}),
    )

    async def closed():
        return (await channel.info()).close_reason == "consulting_complete"

    await eventually(closed)


@spec("ag2-hub#24")
@spec("ag2-hub#99")
async def test_a_checkpoint(party):
    agent, other = await party.silent("agent"), await party.silent("other")
    hub, task_id = agent._hub_client, f"ckpt-{party.tag}"
    assert await hub.read_task_checkpoint(task_id) is None
    first = {"page": 1, "big": 2**70, "float": 1.0, "deep": {"é": [None, []]}}
    await hub.checkpoint_task(task_id, first)
    assert await hub.read_task_checkpoint(task_id) == first
    await hub.checkpoint_task(task_id, {"page": 2})
    assert await hub.read_task_checkpoint(task_id) == {"page": 2}
    with pytest.raises((AccessDeniedError, NotFoundError)):
        await other._hub_client.checkpoint_task(task_id, {"page": 0})
    assert await hub.read_task_checkpoint(task_id) == {"page": 2}


async def test_work_is_taken_up_again_after_a_crash(own_hub, own_party):
    """A task checkpoints through the hub; the hub is killed; a new run resumes."""
    client = await own_party.silent("worker")
    store = HubBackedCheckpointStore(client._hub_client)
    async with client.agent.task("index", checkpoint_store=store) as task:
        for page in range(1, 4):
            await task.checkpoint({"page": page, "seen": list(range(page))})
        prior = task.task_id
    await own_hub.restart()

    back = await own_party.silent("worker", attach=True)
    store = HubBackedCheckpointStore(back._hub_client)
    async with back.agent.task("index", checkpoint_store=store, resume_from=prior) as resumed:
        assert resumed.resumed_state == {"page": 3, "seen": [0, 1, 2]}
        await resumed.checkpoint({"page": 4})
        assert await back._hub_client.read_task_checkpoint(resumed.task_id) == {"page": 4}
    assert await back._hub_client.read_task_checkpoint(prior) == {"page": 3, "seen": [0, 1, 2]}
