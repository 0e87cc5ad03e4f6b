"""Nobody acts for another: what a connection may do follows from who is bound to it."""

import pytest
from ag2.network import AccessDeniedError, NetworkError, NotFoundError, Resume, Rule
from ag2.task import TaskMetadata, TaskSpec, TaskState

from harness.conformance import spec
from harness.party import Party, eventually, text_of

AS_ANOTHER = {
    "post": lambda hub, v: hub.post_envelope(text_of(v.channel, v.alice, "I am Alice")),
    "create": lambda hub, v: hub.create_channel(creator_id=v.alice, manifest_type="conversation", participants=[v.bob]),
    "set_resume": lambda hub, v: hub.set_resume(v.alice, Resume(summary="stolen")),
    "set_skill": lambda hub, v: hub.set_skill(v.alice, "# stolen"),
    "set_rule": lambda hub, v: hub.set_rule(v.alice, Rule()),
    "unregister": lambda hub, v: hub.unregister_agent(v.alice),
    "pending_turns": lambda hub, v: hub.pending_turns_for(v.alice),
    "turn_failure": lambda hub, v: hub.report_turn_failure(
        channel_id=v.channel, agent_id=v.alice, envelope_id="e", exc=RuntimeError("x")
    ),
    "observation": lambda hub, v: hub.record_observation(owner_id=v.alice, capability="c", outcome=TaskState.COMPLETED),
    "observe_task": lambda hub, v: hub.observe_task(
        TaskMetadata(task_id="stolen", owner_id=v.alice, spec=TaskSpec(title="t"), state=TaskState.RUNNING)
    ),
    "update_task": lambda hub, v: hub.update_task(v.task, state=TaskState.FAILED, error="sabotage"),
    "checkpoint": lambda hub, v: hub.checkpoint_task(v.task, {"state": "stolen"}),
}

FROM_OUTSIDE = {
    "get_channel": lambda hub, v: hub.get_channel(v.channel),
    "read_wal": lambda hub, v: hub.read_wal(v.channel),
    "close": lambda hub, v: hub.close_channel(v.channel, reason="sabotage"),
    "causation": lambda hub, v: hub.find_envelope_by_causation(v.channel, sender_id=v.alice, causation_id="e"),
}


class Victim:
    """Alice, her channel with Bob, and her task."""

    @classmethod
    async def invite(cls, party):
        self = cls()
        self.client, peer = await party.silent("alice"), await party.silent("bob")
        opened = await self.client.open(type="conversation", target=peer.agent_id)
        self.alice, self.bob, self.channel = self.client.agent_id, peer.agent_id, opened.channel_id
        self.task = f"task-{party.tag}"
        self.hub = self.client._hub_client
        await self.client.set_skill("# mine")
        await self.hub.observe_task(
            TaskMetadata(
                task_id=self.task,
                owner_id=self.alice,
                spec=TaskSpec(title="mine"),
                state=TaskState.RUNNING,
                channel_id=self.channel,
            )
        )
        await self.hub.checkpoint_task(self.task, {"mine": True})
        return self

    async def everything(self):
        return (
            (await self.hub.get_agent(self.alice)).to_dict(),
            (await self.hub.get_resume(self.alice)).to_dict(),
            (await self.hub.get_rule(self.alice)).to_dict(),
            await self.hub.get_skill(self.alice),
            [m.to_dict() for m in await self.hub.list_channels(agent_id=self.alice, include_terminal=True)],
            [e.to_dict() for e in await self.hub.read_wal(self.channel)],
            [t.to_dict() for t in await self.hub.list_tasks(agent_id=self.alice)],
            await self.hub.read_task_checkpoint(self.task),
        )


@pytest.fixture(scope="module")
def claimed_hub(new_hub):
    """A hub with a key: until there is one, everyone on this machine is operator."""
    return new_hub(keys_for=("somebody",))


@pytest.fixture
async def strangers(claimed_hub, anyio_backend):
    strangers = Party(claimed_hub.url)
    yield strangers
    await strangers.close()


@pytest.mark.parametrize("bound", [True, False], ids=["as-mallory", "as-nobody"])
@pytest.mark.parametrize("act", sorted(AS_ANOTHER))
async def test_acting_for_another_is_refused(party, act, bound):
    victim = await Victim.invite(party)
    before = await victim.everything()
    hub = (await party.silent("mallory"))._hub_client if bound else party.client()
    with pytest.raises(AccessDeniedError):
        await AS_ANOTHER[act](hub, victim)
    assert await victim.everything() == before


@pytest.mark.parametrize("act", sorted(FROM_OUTSIDE))
async def test_a_channel_is_its_participants_own(strangers, act):
    victim = await Victim.invite(strangers)
    before = await victim.everything()
    mallory = await strangers.silent("mallory")
    with pytest.raises(AccessDeniedError):
        await FROM_OUTSIDE[act](mallory._hub_client, victim)
    assert await victim.everything() == before


async def test_lists_show_only_what_one_may_see(strangers):
    victim = await Victim.invite(strangers)
    mallory = await strangers.silent("mallory")
    assert await mallory._hub_client.list_channels(limit=1000) == []
    assert await mallory._hub_client.list_tasks(limit=1000) == []
    with pytest.raises((NotFoundError, AccessDeniedError)):
        await mallory._hub_client.get_task(victim.task)
    mine = await victim.hub.list_channels(agent_id=victim.alice)
    assert [m.channel_id for m in mine] == [victim.channel]


@pytest.mark.parley
@spec("ag2-hub#8")
async def test_closing_a_connection_frees_its_identities(party):
    """While it is bound nobody else may unregister it. Once it is not, anyone may
    take its name, because its scheme is none."""
    guest, other = await party.silent("guest"), await party.silent("other")
    with pytest.raises(AccessDeniedError):
        await other._hub_client.unregister_agent(guest.agent_id)
    await party.leave(guest)

    async def freed():
        try:
            await other._hub_client.unregister_agent(guest.agent_id)
        except AccessDeniedError:
            return False
        return True

    await eventually(freed, timeout=5)
    with pytest.raises(NotFoundError):
        await other._hub_client.get_agent(guest.agent_id)


async def test_refusals_are_network_errors(party):
    """The client raises its own kind of error for whatever the hub refuses."""
    lone = party.client()
    with pytest.raises(NetworkError, match="unknown control-plane op"):
        await lone._rpc("make_coffee", {})
    with pytest.raises(NetworkError):
        await lone._rpc("get_agent", {})
    assert await lone.list_agents(limit=1) is not None
