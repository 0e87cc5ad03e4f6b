"""api_key: right and wrong, at register and at attach."""

import pytest
from ag2 import Agent
from ag2.network import EV_TEXT, AccessDeniedError, AuthBlock, AuthError, NotFoundError, Passport
from ag2.network.transport import HelloFrame

from harness.conformance import spec
from harness.party import Party, turns, until_closed, wal


@pytest.fixture(scope="module")
def keyed_hub(new_hub):
    return new_hub(keys_for=("quill", "rita", "sol", "tess"))


@pytest.fixture
async def guests(keyed_hub, ours, anyio_backend):
    guests = Party(keyed_hub.url, plain_names=True)
    guests.tokens, guests.ours = keyed_hub.tokens, ours
    yield guests
    await guests.close()


def key(token):
    return AuthBlock(scheme="api_key", claim={"token": token} if token is not None else {})


def passport(name, token):
    return Passport(name=name, auth=key(token))


async def hello(client, name, scheme, claim, since=None):
    return await client._handshake(HelloFrame(name=name, auth_scheme=scheme, auth_claim=claim, since_envelope_id=since))


@spec("ag2-hub#3")
@spec("ag2-hub#1")
async def test_the_right_token_binds_and_the_wrong_one_does_not(guests):
    quill = await guests.silent("quill", auth=key(guests.tokens["quill"]))
    sender = await guests.silent("sender")
    channel = await sender.open(type="conversation", target="quill")
    await guests.leave(quill)

    thief = guests.client()
    await thief.open()
    with pytest.raises(AuthError, match="mismatch"):
        await hello(thief, "quill", "api_key", {"token": guests.tokens["rita"]})
    assert thief._client_link.endpoint_id == ""
    with pytest.raises(AccessDeniedError):  # not bound: it may not act for quill
        await thief.pending_turns_for(quill.agent_id)

    back = await guests.silent("quill", attach=True, auth=key(guests.tokens["quill"]))
    assert back.agent_id == quill.agent_id
    assert back._hub_client._client_link.endpoint_id != ""
    sent = await channel.send("for quill only")
    heard = await back.wait_for_channel_event(
        channel_id=channel.channel_id, predicate=lambda e: e.event_type == EV_TEXT, timeout=5
    )
    assert heard.envelope_id == sent
    assert thief._clients == {}


@spec("ag2-hub#4")
async def test_no_token_and_an_unknown_scheme(guests):
    tess = await guests.silent("tess", auth=key(guests.tokens["tess"]))
    stranger = guests.client()
    await stranger.open()
    with pytest.raises(AuthError, match="missing required string field 'token'"):
        await hello(stranger, "tess", "api_key", {})
    with pytest.raises(AuthError) as refused:
        await hello(stranger, "tess", "carrier_pigeon", {"token": guests.tokens["tess"]})
    if guests.ours:
        assert "unknown auth scheme" in str(refused.value)
    assert stranger._client_link.endpoint_id == ""
    with pytest.raises(AccessDeniedError):
        await stranger.pending_turns_for(tess.agent_id)
    peer = await guests.silent("tesspeer")
    channel = await peer.open(type="conversation", target="tess")
    sent = await channel.send("still yours")
    heard = await tess.wait_for_channel_event(
        channel_id=channel.channel_id, predicate=lambda e: e.event_type == EV_TEXT, timeout=5
    )
    assert heard.envelope_id == sent


@spec("ag2-hub#21")
@spec("ag2-hub#6", clause="at register: missing, empty and non-string token, unknown name")
async def test_a_bad_claim_at_register(guests):
    for name, token, fragment in (
        ("rita", "wrong", "mismatch"),
        ("rita", None, "missing required string field 'token'"),
        ("rita", "", "missing required string field 'token'"),
        ("rita", 7, "missing required string field 'token'"),
        ("unheard-of", guests.tokens["rita"], "no api_key registered"),
    ):
        with pytest.raises(AuthError, match=fragment):
            await guests.client().register_human(passport(name, token))
    with pytest.raises(NotFoundError):
        await guests.client().get_agent("rita")
    rita = await guests.silent("rita", auth=key(guests.tokens["rita"]))
    assert (await rita._hub_client.get_agent("rita")).agent_id == rita.agent_id


async def test_claims_are_never_given_out(guests):
    sol = await guests.silent("sol", auth=key(guests.tokens["sol"]))
    assert (sol.passport.auth.scheme, sol.passport.auth.claim) == ("api_key", {})
    onlooker = guests.client()
    fetched = await onlooker.get_agent("sol")
    assert (fetched.auth.scheme, fetched.auth.claim) == ("api_key", {})
    listed = [p for p in await onlooker.list_agents(limit=1000) if p.name == "sol"]
    assert [p.auth.claim for p in listed] == [{}]
    # Without its passport nobody attaches to an api_key identity.
    with pytest.raises(AuthError, match="token"):
        await guests.client().attach(Agent("sol"), "sol")
    # Nor with the scheme none.
    with pytest.raises(AuthError):
        await hello(guests.client(), "sol", "none", {})


@spec("ag2-hub#2")
async def test_hello_for_an_unknown_name(guests):
    stranger = guests.client()
    for claim in ({}, {"token": guests.tokens["quill"]}):
        with pytest.raises(NotFoundError):
            await hello(stranger, "nobody-at-all", "api_key", claim)
    # The connection still works.
    assert await stranger.list_agents(limit=1) != []


async def test_keyed_agents_work_together(guests):
    """A whole consultation between identities that have keys."""
    boss = await guests.silent("boss")
    quill = await guests.agent("quill", "signed and sealed", attach=True, auth=key(guests.tokens["quill"]))
    channel = await boss.open(type="consulting", target="quill")
    await channel.send("?")
    await until_closed(boss, channel.channel_id)
    assert turns(await wal(boss, channel.channel_id)) == [(boss.agent_id, "?"), (quill.agent_id, "signed and sealed")]
