// Lists page both ways, keep their place, and say how many there are in all.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Page } from "playwright-core";
import { closeAll, done, Hub, open } from "./rig.ts";

after(closeAll);

/** Turns to the next page, reloads it, and turns back: each says how many there are. */
async function turns(page: Page, list: { first: string; next: string; rows: (part: number) => Promise<void>; within?: string }): Promise<void> {
  const place = list.within ? page.locator("section", { has: page.getByRole("heading", { name: list.within, exact: true }) }) : page.locator("main");
  const says = (words: string) => place.getByText(words, { exact: true }).waitFor();
  await says(list.first);
  await list.rows(0);
  assert.ok(await place.getByRole("button", { name: "Previous page" }).isDisabled(), "there is none before the first");
  await place.getByRole("button", { name: "Next page" }).click();
  await says(list.next);
  await list.rows(1);
  await page.reload();
  await says(list.next);
  await list.rows(1);
  assert.ok(await place.getByRole("button", { name: "Next page" }).isDisabled(), "there is none behind the last");
  await place.getByRole("button", { name: "Previous page" }).click();
  await says(list.first);
  await list.rows(0);
}

test("tasks, audit, channels, requests, keys and an agent's turns say how many there are, and page both ways", async () => {
  const hub = new Hub();
  hub.seed("tasks", 60);
  await hub.start();
  for (let n = 0; n < 60; n++) {
    const { channel_id: id } = await hub.call<{ channel_id: string }>("POST", "channels", { creator: "ada", type: "discussion", participants: ["bob"], required_acks: 0, labels: { title: `Talk ${n}` } });
    await hub.call("POST", `channels/${id}/requests`, { asked_by: "ada", kind: "approval", title: `May I ${n}?`, choices: [{ id: "approve" }, { id: "deny" }] });
  }
  const page = await open(hub, "#/tasks");
  const link = (name: string | RegExp) => page.getByRole("link", { name }).first().waitFor();
  const go = (hash: string) => page.goto(`${hub.url}/console/#/${hash}`);
  await turns(page, { first: "50 of 60 tasks", next: "10 of 60 tasks", rows: (n) => link(n ? /^Task 0$/ : /^Task 59$/) });
  // What is opened on a page is opened there.
  await page.getByRole("button", { name: "Next page" }).click();
  await page.getByRole("link", { name: /^Task 0$/ }).click();
  await page.getByRole("heading", { name: /^Task \w/ }).waitFor();
  await page.getByText("10 of 60 tasks").waitFor();
  await go("tasks?state=failed");
  await page.getByText("20 tasks", { exact: true }).waitFor();
  await go("channels?q=Talk");
  await turns(page, { first: "50 of 60 channels", next: "10 of 60 channels", rows: (n) => link(n ? /^Talk 0 / : /^Talk 59 /) });
  await go("channels");
  await page.getByText("50 of 60 open channels").waitFor();
  await go("inbox");
  await turns(page, { first: "50 of 60 requests", next: "10 of 60 requests", rows: async (n) => void (await page.getByRole("heading", { name: n ? "May I 59?" : "May I 0?" }).waitFor()) });
  const { agents } = await hub.call<{ agents: { passport: { agent_id: string } }[] }>("GET", "agents?query=ada");
  await go(`agents/${agents[0]!.passport.agent_id}`);
  await turns(page, { within: "Turns waiting", first: "50 of 60 turns", next: "10 of 60 turns", rows: async () => {} });
  await go("nowhere");
  await go(`agents/${agents[0]!.passport.agent_id}`);
  await turns(page, { within: "Has read", first: "50 of 60 open channels", next: "10 of 60 open channels", rows: async () => {} });
  for (let n = 0; n < 60; n++) await hub.key(n ? "reader" : "operator");
  await page.getByLabel("Token").fill(hub.token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await go("access");
  await turns(page, { within: "Keys", first: "50 of 60 keys", next: "10 of 60 keys", rows: async () => {} });
  await page.getByText("1 session", { exact: true }).waitFor();
  const { total } = await hub.call<{ total: number }>("GET", "audit?count");
  await go("audit");
  await turns(page, { first: `100 of ${total} records`, next: `${total - 100} of ${total} records`, rows: async () => {} });
  await done(page);
  await hub.end();
});

test("what is more than can be counted is said to be at least so many", async () => {
  const hub = new Hub();
  hub.seed("tasks", 1200);
  await hub.start();
  const page = await open(hub, "#/tasks");
  await page.getByText("50 of 1,000+ tasks", { exact: true }).waitFor();
  await page.getByLabel("State").selectOption("failed");
  await page.getByText("50 of 400 tasks", { exact: true }).waitFor();
  await done(page);
  await hub.end();
});

test("what a filter selects is found behind more than one answer looks at", async () => {
  const hub = new Hub();
  hub.seed("tasks", 4200);
  await hub.start();
  const page = await open(hub, "#/tasks?state=cancelled");
  await page.getByRole("link", { name: "Task 1", exact: true }).waitFor();
  await page.getByText("1+ tasks", { exact: true }).waitFor(); // what was counted is the newest 4,096
  await page.getByLabel("State").selectOption("expired");
  await page.getByText("No task is expired.").waitFor();
  await done(page);
  await hub.end();
});

test("rooms, threads, messages and peers of a workspace page both ways", async () => {
  const hub = await new Hub().start();
  for (const name of ["crane", "tug"]) await hub.agent(name);
  const at = `${hub.url}/agh/workspaces/ws_harbor/network`;
  const post = async <T>(path: string, body: unknown): Promise<T> => {
    const answer = await fetch(`${at}/${path}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
    const text = await answer.text();
    assert.ok(answer.ok, `${path}: ${answer.status} ${text}`);
    return JSON.parse(text) as T;
  };
  let dock: { session_id: string } | undefined;
  for (let n = 0; n < 55; n++) {
    const { channel } = await post<{ channel: { sessions: { session_id: string }[] } }>("channels", { channel: `dock-${n}`, purpose: "unloading", agent_names: ["crane"] });
    if (n === 0) dock = channel.sessions[0];
  }
  const say = (thread: number, n: number) => post("send", { session_id: dock!.session_id, channel: "dock-0", kind: "say", surface: "thread", thread_id: `thread_no${thread}`, id: `m-${thread}-${n}`, body: { text: `words ${n}` } });
  for (let n = 0; n < 55; n++) await say(n, 0);
  for (let n = 1; n < 55; n++) await say(7, n);
  const page = await open(hub, "#/peers");
  await page.getByText("1 workspace", { exact: true }).waitFor();
  await page.getByRole("link", { name: "ws_harbor" }).click();
  await turns(page, { within: "Channels", first: "50 of 55 channels", next: "5 of 55 channels", rows: async () => {} });
  await turns(page, { within: "Peers", first: "50 of 55 peers", next: "5 of 55 peers", rows: async () => {} });
  await page.goto(`${hub.url}/console/#/peers?workspace=ws_harbor&channel=dock-0`);
  const threads = page.locator("section", { has: page.getByRole("heading", { name: "Threads of dock-0" }) });
  const seen = async () => { const links = threads.locator("a[data-row]"); await links.first().waitFor(); return links.evaluateAll((all) => all.map((a) => /thread=(\w+)/.exec(a.getAttribute("href")!)![1]!)); };
  let first: string[] = [];
  let second: string[] = [];
  await turns(page, { within: "Threads of dock-0", first: "50 of 55 threads", next: "5 of 55 threads", rows: async (n) => void (n ? (second = await seen()) : (first = await seen())) });
  assert.equal(new Set([...first, ...second]).size, 55, "each thread is on one of the pages");
  await page.goto(`${hub.url}/console/#/peers?workspace=ws_harbor&channel=dock-0&thread=thread_no7`);
  await turns(page, { within: "thread_no7", first: "50 of 55 messages", next: "5 of 55 messages", rows: (n) => page.getByRole("article").filter({ hasText: n ? "words 54" : /words 0$/ }).first().waitFor() });
  await done(page);
  await hub.end();
});
