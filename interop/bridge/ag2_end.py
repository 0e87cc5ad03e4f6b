"""One end of the test: an agent with AG2's own client. It reads one command a line,
as JSON, and answers each with one line."""

import asyncio
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "ag2"))

from ag2.network import AgentTarget, FromSpeaker, TerminateTarget, Transition, TransitionGraph  # noqa: E402

from harness.party import Party, text_of, turns, wal  # noqa: E402


class End:
    def __init__(self, url: str, name: str) -> None:
        self.url, self.name = url, name
        self.party: Party | None = None
        self.agent = None
        self.told: list = []  # texts of others that its client was handed, each once

    async def connect(self, attach: bool) -> dict:
        """Register, or come back after the hub was away."""
        if self.party is not None:
            await self.party.close()
        self.party = Party(self.url, plain_names=True)
        self.agent = await self.party.agent(self.name, tooled=False, attach=attach)
        default = self.agent._run_default_handler

        async def note(envelope) -> None:
            if envelope.event_type.startswith("ag2.channel."):
                await default(envelope)
            elif envelope.event_type == "ag2.msg.text" and envelope.envelope_id not in [e.envelope_id for e in self.told]:
                self.told.append(envelope)

        self.agent.on_envelope(note)
        return {"agent_id": self.agent.agent_id}

    async def do(self, op: str, **args) -> dict:
        hub = self.agent._hub_client if self.agent else None
        match op:
            case "register" | "attach":
                return await self.connect(op == "attach")
            case "find":
                return {"id": (await hub.get_agent(args["name"])).agent_id}
            case "open":
                # Each speaks after the one before; then it ends.
                ids = args["ids"]
                steps = [Transition(when=FromSpeaker(a), then=AgentTarget(b)) for a, b in zip(ids, ids[1:])]
                graph = TransitionGraph(initial_speaker=ids[0], transitions=steps, default_target=TerminateTarget("moored"))
                channel = await self.agent.open(
                    type="workflow", target=args["names"], knobs={"graph": graph.to_dict()}, intent="moor the hull"
                )
                return {"channel": channel.channel_id}
            case "say":
                await hub.post_envelope(text_of(args["channel"], self.agent.agent_id, args["text"]))
                return {}
            case "watched":
                told = [e for e in self.told if e.channel_id == args["channel"]]
                return {"said": [[(await hub.get_agent(e.sender_id)).name, e.event_data["text"]] for e in told]}
            case "read":
                said = turns(await wal(self.agent, args["channel"]))
                return {"said": [[(await hub.get_agent(sender)).name, text] for sender, text in said]}
        raise ValueError(op)


async def main() -> None:
    end = End(sys.argv[1], sys.argv[2])
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        try:
            answer = await end.do(**json.loads(line))
        except Exception as failed:  # the other side decides
            answer = {"error": f"{type(failed).__name__}: {failed}"}
        print(json.dumps(answer), flush=True)
    if end.party is not None:
        await end.party.close()


asyncio.run(main())
