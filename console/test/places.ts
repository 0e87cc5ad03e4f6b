// Every screen, with what it asks for and what it says in each state.
import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { Hub, parley, producer } from "./rig.ts";

export interface Place {
  hash: string;
  /** The request without which it has nothing to show. */
  asks: string;
  /** With data. */
  says: string | RegExp;
  /** On a hub where nothing was done yet; a screen of one thing has none. */
  empty?: string;
  /** To a reader, where that differs; and to somebody with a key of their own. */
  reader?: string | RegExp;
  own: string | RegExp;
}

/** Ends what a full hub holds open. */
export type Ending = () => void;

/** A hub on which every screen has something to show. */
export async function full(): Promise<{ hub: Hub; all: Place[]; end: Ending }> {
  const hub = new Hub();
  const story = hub.seed<{ channel_id: string; request_id: string; talk_id: string; task_id: string }>("story");
  await hub.start();
  const post = async (path: string, body: unknown) => {
    const answer = await fetch(`${hub.url}/${path}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
    assert.ok(answer.ok, `${path}: ${answer.status} ${await answer.clone().text()}`);
    return (await answer.json()) as any;
  };
  await post("hpd/sessions", { sessionId: "s-1" });
  const bot = await producer(hub, "network");
  const { runtimeRunId } = await post("hpd/agents/network/sessions/s-1/branches/main/inputs", { text: "Is rack 7 drained?" });
  await bot.publish("sessions/s-1/branches/main", runtimeRunId, [{ type: "TOOL_CALL_START", callId: "c1", name: "links", messageId: "m1" }, { type: "TOOL_CALL_ARGS", callId: "c1", argsJson: '{"rack":7}' }, { type: "TOOL_CALL_END", callId: "c1" }, { type: "TOOL_CALL_RESULT", callId: "c1", result: { text: "1 of 2", json: "1" } }]);
  const { channel } = await post("agh/workspaces/ws_harbor/network/channels", { channel: "dock", purpose: "unloading", agent_names: ["triage", "network"] });
  parley("agh", "send", "--session", channel.sessions[0].session_id, "--channel", "dock", "--surface", "thread", "--thread", "thread_tide", "--to", channel.sessions[1].peer_id, "--work", "work_tide_1", "--id", "ask-1", "--body", '{"text":"When is high water?","intent":"request"}', "--hub", hub.url, "--workspace", "ws_harbor");
  const { agents } = await hub.call<{ agents: { passport: { agent_id: string; name: string } }[] }>("GET", "agents");
  const hana = agents.find((a) => a.passport.name === "hana")!.passport.agent_id;
  const all: Place[] = [
    { hash: "now", asks: "**/v1/requests?*", says: "Drain link 2 of rack 7?", empty: "Nobody waits for a person, and nothing is overdue.", own: "Drain link 2 of rack 7?" },
    { hash: "inbox", asks: "**/v1/requests?*", says: "Drain link 2 of rack 7?", empty: "Nobody waits for an answer.", own: "Drain link 2 of rack 7?" },
    { hash: "channels", asks: "**/v1/channels?*", says: "Checkout is slow", empty: "No channel yet.", own: "Checkout is slow" },
    { hash: `channels/${story.channel_id}`, asks: `**/v1/channels/${story.channel_id}`, says: "Found it: one of two links", own: "It is hana's turn" },
    ...["why", "state", "graph", "people", "thread", "raw", "reading"].map((tab) => ({ hash: `channels/${story.channel_id}?${tab}`, asks: `**/v1/channels/${story.channel_id}`, says: "Found it: one of two links", own: "Found it: one of two links" })),
    { hash: `channels/${story.channel_id}?expectations`, asks: `**/v1/channels/${story.channel_id}`, says: /within 15 min, else audit/, own: /within 15 min, else audit/ },
    { hash: `channels/${story.channel_id}?at=6&state`, asks: `**/v1/channels/${story.channel_id}`, says: "After event 6: active.", own: "After event 6: active." },
    { hash: "agents", asks: "**/v1/agents?*", says: "triage", empty: "Nobody is registered yet.", own: "triage" },
    { hash: `agents/${hana}`, asks: `**/v1/agents/${hana}`, says: "The inbox", own: "hana" },
    { hash: "tasks", asks: "**/v1/tasks?*", says: "Look at link 2", empty: "No task yet.", own: "Look at link 2" },
    { hash: "audit", asks: "**/v1/audit?*", says: "channel_created", empty: "Nothing was recorded yet.", own: /operator or reader/ },
    { hash: "health", asks: "**/v1/stats?*", says: "admitted", own: /operator or reader/ },
    { hash: "access", asks: "**/v1/keys", says: /^Make (a key|the first key, an operator's)$/, empty: "No key exists: everyone on this machine is operator.", reader: "Only an operator's key sees the keys.", own: "Only an operator's key sees the keys." },
    { hash: "access", asks: "**/v1/sessions", says: "Nobody is signed in with a key.", reader: "Only an operator's key sees the keys.", own: "Only an operator's key sees the keys." },
    { hash: "sessions", asks: "**/hpd/sessions?*", says: "s-1", empty: "No session yet.", own: "Sessions" },
    { hash: "sessions/s-1/main", asks: "**/hpd/sessions/s-1/branches", says: "Is rack 7 drained?", own: "s-1" },
    { hash: "peers", asks: "**/v1/channels?*", says: "ws_harbor", empty: "Name a workspace to see who is in it.", own: "Peers and work" },
    { hash: "peers?workspace=ws_harbor&channel=dock&thread=thread_tide", asks: "**/agh/workspaces/ws_harbor/network/channels", says: "When is high water?", own: "Peers and work" },
  ];
  return { hub, all, end: bot.end };
}

export async function settled(page: Page): Promise<void> {
  // The address that was typed is taken up a moment later.
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  await page.locator("#main h1").first().waitFor(); // the page has one of its own until it knows who asks
  await page.waitForFunction(() => !document.querySelector(".bones, [data-loading]"));
}

export async function signIn(page: Page, token: string): Promise<void> {
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.locator("header").waitFor();
}

/** Goes to a screen by its keys: g, then a letter, soon enough after it for the page, which a busy machine may miss. */
export async function goByKeys(page: Page, letter: string, heading: string): Promise<void> {
  const there = page.getByRole("heading", { name: heading, level: 1 });
  for (let n = 1; (await there.count()) === 0; n++) {
    await page.keyboard.press("g");
    await page.keyboard.press(letter);
    await there.waitFor(n < 5 ? { timeout: 5000 } : {}).catch((err) => { if (n >= 5) throw err; });
  }
}

/** Goes to a screen as somebody does who types its address. */
export async function visit(page: Page, hub: Hub, place: Pick<Place, "hash">): Promise<void> {
  await page.goto(`${hub.url}/console/#/nowhere`);
  await page.getByRole("heading", { name: "Nothing is here" }).waitFor(); // what was shown before is gone
  await page.goto(`${hub.url}/console/#/${place.hash}`);
}

/** Holds every answer of a kind until it is let go. */
export async function hold(page: Page, pattern: string): Promise<() => Promise<void>> {
  let free = () => {};
  const held = new Promise<void>((resolve) => (free = resolve));
  const holding: Promise<void>[] = [];
  await page.route(pattern, (route) => void holding.push(held.then(() => route.continue().catch(() => {}))));
  return async () => {
    free();
    await Promise.all(holding);
    await page.unroute(pattern);
  };
}

/** Refuses every request of a kind. */
export const refuse = (page: Page, pattern: string): Promise<unknown> =>
  page.route(pattern, (route) => route.fulfill({ status: 503, contentType: "application/problem+json", body: JSON.stringify({ title: "Service Unavailable", status: 503, code: "unavailable", detail: "the store is being repaired" }) }));
