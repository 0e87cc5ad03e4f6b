// A program with the client that openapi-typescript makes of the hub's document.
import createClient from "openapi-fetch";
import type { paths } from "./v1.js";

const hub = createClient<paths>({ baseUrl: process.env.PARLEY_HUB! });

function held<T>(what: string, value: T | undefined, error?: unknown): T {
  if (value === undefined) throw new Error(`${what}: ${JSON.stringify(error)}`);
  return value;
}

const opened = await hub.POST("/v1/channels", {
  body: { creator: "alice", type: "conversation", participants: ["parrot"], labels: { title: "from TypeScript" } },
});
const id = held("open", opened.data, opened.error).channel_id;
const sent = await hub.POST("/v1/channels/{id}/events", {
  params: { path: { id } },
  body: { sender: "alice", text: "hello" },
});
held("send", sent.data, sent.error);
const page = await hub.GET("/v1/channels/{id}/events", { params: { path: { id }, query: { limit: 100 } } });
const read = held("read", page.data, page.error);
if (typeof read === "string") throw new Error("a page was asked for, and a stream came");
const last = read.events.at(-1);
if (last?.event_type !== "ag2.msg.text" || (last.event_data as { text?: string }).text !== "hello") {
  throw new Error(`the last event is ${JSON.stringify(last)}`);
}
const missing = await hub.GET("/v1/agents/{id}", { params: { path: { id: "ghost" } } });
if (missing.response.status !== 404 || missing.error?.code !== "not_found") {
  throw new Error(`nobody is ${JSON.stringify(missing)}`);
}
console.log("typescript: fine");
