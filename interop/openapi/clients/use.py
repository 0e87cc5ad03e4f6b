"""A program with the client that openapi-python-client makes of the hub's document."""

import os

from parley_v1 import Client
from parley_v1.api.agents import show_agent
from parley_v1.api.channels import channel_events, open_channel, send
from parley_v1.models import Channel, ChannelEventPage, Opening, Problem, Send

hub = Client(base_url=os.environ["PARLEY_HUB"])

opened = open_channel.sync(client=hub, body=Opening(creator="alice", type_="conversation", participants=["parrot"]))
assert isinstance(opened, Channel), opened
send.sync(opened.channel_id, client=hub, body=Send(sender="alice", text="hello"))
page = channel_events.sync(opened.channel_id, client=hub, limit=100)
assert isinstance(page, ChannelEventPage), page
last = page.events[-1]
assert last.event_type == "ag2.msg.text" and last.event_data["text"] == "hello", last
missing = show_agent.sync_detailed("ghost", client=hub)
assert missing.status_code == 404 and isinstance(missing.parsed, Problem) and missing.parsed.code == "not_found", missing
print("python: fine")
