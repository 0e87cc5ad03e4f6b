#!/usr/bin/env python3
"""An agent that asks before it acts: asker.py URL NAME TOKEN

AG2's own approval_required gates its tool, and its hook puts the question to the
hub as a request, for whoever answers it there. Says "ready AGENT_ID" once it is
bound, and ends when its standard input does.
"""

import asyncio
import json
import sys
import urllib.request

import harness.beta  # noqa: F401, I001 (names the package that is imported next)
from ag2 import Agent, Context, tool
from ag2.events import HumanInputRequest
from ag2.middleware import approval_required
from ag2.network import AuthBlock, HubClient, Passport
from ag2.network.policies import CHANNEL_DEP
from ag2.network.transport import WsLink

from harness.model import Script, call


class Inbox:
    """The requests of a hub, for an agent with a key."""

    def __init__(self, url: str, token: str) -> None:
        self.url, self.token = url, token

    def open(self, path: str, body: dict | None = None, accept: str = "application/json"):
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json", "Accept": accept}
        data = None if body is None else json.dumps(body).encode()
        return urllib.request.urlopen(urllib.request.Request(f"{self.url}/v1/{path}", data, headers))

    def ask(self, channel: str, name: str, question: dict) -> str:
        """Asks, and returns the choice once somebody made it."""
        with self.open(f"requests?channel={channel}&limit=1") as page:
            position = json.load(page)["position"]
        with self.open(f"channels/{channel}/requests", {"asked_by": name, **question}) as answer:
            asked = json.load(answer)["request_id"]
        with self.open(f"requests?channel={channel}&after={position}", accept="text/event-stream") as events:
            for line in events:
                told = json.loads(line[6:]) if line.startswith(b"data: {") else {}
                if told.get("request_id") == asked and told["state"] != "open":
                    return (told.get("answer") or {}).get("choice", "")
        raise ConnectionError("the hub ended the stream")


@tool(middleware=[approval_required("{tool_name} {tool_arguments}", allow_always=False)])
def release(version: int) -> str:
    """Releases a version."""
    return f"version {version} is out"


async def main(url: str, name: str, token: str) -> None:
    inbox = Inbox(url, token)

    async def hook(event: HumanInputRequest, context: Context) -> str:
        action, _, arguments = event.content.partition(" ")
        question = {
            "kind": "approval",
            "title": f"May {name} call {action}?",
            "action": {"name": action, "arguments": json.loads(arguments)},
            "choices": [
                {"id": "approve", "label": "Approve", "consequence": "It is called."},
                {"id": "deny", "label": "Deny"},
            ],
        }
        channel = context.dependencies[CHANNEL_DEP].channel_id
        return "yes" if await asyncio.to_thread(inbox.ask, channel, name, question) == "approve" else "no"

    def tell(messages):
        return "It is out." if "is out" in str(messages[-1]) else "I was not allowed to."

    model = Script(call("release", version=7), tell, call("release", version=8), tell)
    agent = Agent(name, config=model, tools=[release], hitl_hook=hook)
    async with HubClient(WsLink(url.replace("http", "ws", 1))) as hub:
        client = await hub.register(
            agent, Passport(name=name, auth=AuthBlock(scheme="api_key", claim={"token": token}))
        )
        print("ready", client.agent_id, flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
