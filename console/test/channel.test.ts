import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Page } from "playwright-core";
import { closeAll, done, Hub, open } from "./rig.ts";

after(closeAll);

async function discussion(hub: Hub, title = "Talk"): Promise<{ id: string; ada: string; bob: string }> {
  const ada = await hub.agent("ada");
  const bob = await hub.agent("bob");
  const channel = await hub.call<{ channel_id: string }>("POST", "channels", { creator: "ada", type: "discussion", participants: ["bob"], required_acks: 0, labels: { title } });
  return { id: channel.channel_id, ada, bob };
}

const say = (hub: Hub, id: string, sender: string, text: string) => hub.call("POST", `channels/${id}/events`, { sender, text });

/** The sequences that are on the page. */
async function shown(page: Page): Promise<number[]> {
  return page.locator("article[data-sequence]").evaluateAll((rows) => rows.map((r) => Number((r as HTMLElement).dataset.sequence)));
}

test("what is said appears, in the list and on the timeline", async () => {
  const hub = await new Hub().start();
  const { id } = await discussion(hub);
  const list = await open(hub, "#/channels");
  await list.getByRole("link", { name: /Talk/ }).waitFor();
  const page = await open(hub, `#/channels/${id}`);
  await page.getByRole("heading", { name: /Talk/ }).waitFor();
  await say(hub, id, "ada", "Good morning, **bob**.");
  await page.getByText("Good morning,").waitFor();
  assert.equal(await page.locator("article strong", { hasText: "bob" }).count(), 1);
  await list.getByText("Good morning, **bob**.").waitFor();
  await done(page);
  await done(list);
  await hub.end();
});

test("a person speaks, and is told whose turn it is when it is not theirs", async () => {
  const hub = await new Hub().start();
  const ada = await hub.agent("ada");
  await hub.agent("bob");
  const graph = { initial_speaker: ada, transitions: [], default_target: { name: "round_robin", args: {} } };
  const { channel_id: id } = await hub.call<{ channel_id: string }>("POST", "channels", { creator: "ada", type: "workflow", participants: ["bob"], required_acks: 0, knobs: { graph }, labels: { title: "Flow" } });
  const page = await open(hub, `#/channels/${id}`);
  await page.getByText(/It is ada's turn \(away\) since/).waitFor();
  await page.locator("#compose").fill("First words");
  await page.getByRole("button", { name: "Send" }).click();
  await page.locator("article", { hasText: "First words" }).waitFor();
  await page.getByText(/It is bob's turn/).waitFor();
  await page.getByLabel("Speak as", { exact: true }).last().selectOption({ label: "ada" });
  await page.getByText("It is not ada's turn: it is bob's.").waitFor();
  await page.locator("#compose").fill("Again");
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByRole("alert").filter({ hasText: "expects" }).waitFor();
  assert.equal(await page.locator("#compose").inputValue(), "Again", "what was typed stays");
  await done(page);
  await hub.end();
});

test("the graph shows the path and whose turn it is", async () => {
  const hub = await new Hub().start();
  const ada = await hub.agent("ada");
  const bob = await hub.agent("bob");
  const graph = { initial_speaker: ada, transitions: [{ when: { name: "from_speaker", args: { agent_id: ada } }, then: { name: "agent", args: { agent_id: bob } } }] };
  const { channel_id: id } = await hub.call<{ channel_id: string }>("POST", "channels", { creator: "ada", type: "workflow", participants: ["bob"], required_acks: 0, knobs: { graph }, labels: { title: "Flow" } });
  await say(hub, id, "ada", "over to bob");
  const page = await open(hub, `#/channels/${id}?graph`);
  await page.locator("svg .current", { hasText: "bob" }).waitFor();
  await page.locator("svg g.taken path.edge").first().waitFor({ state: "attached" });
  await page.getByRole("button", { name: "Why", exact: true }).click();
  await page.getByText("is next because rule 0 fired.").waitFor();
  await done(page);
  await hub.end();
});

test("time travel: the address has the moment, and nothing is sent from the past", async () => {
  const hub = await new Hub().start();
  const { id } = await discussion(hub);
  for (const n of [1, 2, 3, 4]) await say(hub, id, n % 2 ? "ada" : "bob", `words ${n}`);
  const { length } = await hub.call<{ length: number }>("GET", `channels/${id}`);
  const page = await open(hub, `#/channels/${id}?at=${length - 2}`);
  await page.getByText(`As of event ${length - 2} of ${length}.`).waitFor();
  await page.getByText("words 2").waitFor();
  assert.equal(await page.getByText("words 3").count(), 0);
  await page.getByText("This is the past: nothing can be sent from here.").waitFor();
  await page.keyboard.press("]");
  await page.getByText("words 3").waitFor();
  assert.ok(page.url().endsWith(`?at=${length - 1}`));
  await page.keyboard.press("End");
  await page.getByText("words 4").waitFor();
  await done(page);
  await hub.end();
});

test("a hub that is killed and started again: the page says so, and every event is shown once", async () => {
  const hub = await new Hub().start();
  const { id } = await discussion(hub);
  const page = await open(hub, `#/channels/${id}`);
  await say(hub, id, "ada", "before the kill");
  await page.getByText("before the kill").waitFor();
  await hub.kill();
  await page.getByText(/Not connected since/).waitFor();
  await hub.start();
  for (let n = 0; n < 20; n++) await say(hub, id, n % 2 ? "ada" : "bob", `after ${n}`);
  await page.getByText("after 19", { exact: true }).waitFor();
  await page.getByText("Not connected since").waitFor({ state: "detached" });
  const sequences = await shown(page);
  assert.deepEqual(sequences, [...new Set(sequences)].sort((a, b) => a - b), "in order, none twice");
  const { length } = await hub.call<{ length: number }>("GET", `channels/${id}`);
  assert.equal(sequences.at(-1), length);
  await done(page);
  await hub.end();
});

test("hostile text is shown as text", async () => {
  const hub = await new Hub().start();
  const hostile = [
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "[x](javascript:alert(1))", "![p](http://127.0.0.1:1/p.png)", "<svg onload=alert(1)>", "[d](data:text/html,<script>alert(1)</script>)",
    "<form id=app><input name=textContent></form>", "\u202ereversed \u0007bell", "x".repeat(100_000), "> ".repeat(10_000) + "deep", "__proto__",
  ];
  const { id } = await discussion(hub, "<b onmouseover=alert(1)>title</b>");
  for (const [n, text] of hostile.entries()) await say(hub, id, n % 2 ? "bob" : "ada", text);
  await hub.call("POST", `channels/${id}/events`, { sender: "bob", event_type: "app.<img src=x onerror=alert(1)>", event_data: { __proto__: { x: 1 }, text: "<script>alert(2)</script>" } });
  const page = await open(hub, `#/channels/${id}?raw&reading`);
  await page.getByText("<svg onload=alert(1)>").first().waitFor();
  await page.getByText("\\u{202e}reversed").first().waitFor();
  assert.equal(await page.locator("li script, li img, li form, li svg").count(), 0);
  assert.equal(await page.locator('a[href^="javascript:"], a[href^="data:"]').count(), 0);
  await page.goto(`${hub.url}/console/#/channels/${id}`);
  await page.locator("article[data-sequence]").first().waitFor();
  await page.goto(`${hub.url}/console/#/channels`);
  await page.getByText("<b onmouseover=alert(1)>title</b>").waitFor();
  await page.keyboard.press("?");
  await page.getByRole("heading", { name: "Keys" }).waitFor();
  await done(page);
  await hub.end();
});

// Context is not a turn, so that many can be written at once.
async function lines(hub: Hub, id: string, from: number): Promise<void> {
  await Promise.all(Array.from({ length: 50 }, (_, i) => hub.call("POST", `channels/${id}/events`, { sender: "ada", event_type: "app.note", event_data: { text: `line ${from + i}` } })));
}

test("a long channel: few elements, and a jump anywhere costs one request", async () => {
  const hub = await new Hub().start();
  const { id } = await discussion(hub);
  for (let n = 0; n < 1500; n += 50) await lines(hub, id, n);
  const page = await open(hub, `#/channels/${id}`);
  await page.locator("article[data-sequence]").first().waitFor();
  assert.ok((await page.locator("*").count()) < 2500);
  const asked: string[] = [];
  page.on("request", (r) => { if (r.url().includes("/events?")) asked.push(r.url()); });
  await page.getByLabel("Moment").fill("300");
  await page.getByText("As of event 300 of").waitFor();
  await page.locator('article[data-sequence="300"]').waitFor();
  assert.ok(asked.length <= 1, asked.join("\n"));
  assert.ok((await page.locator("*").count()) < 2500);
  await done(page);
  await hub.end();
});

test("a reader sees no control that would be refused", async () => {
  const hub = await new Hub().start();
  const { id } = await discussion(hub);
  await hub.key("operator");
  const token = await hub.key("reader");
  const page = await open(hub, `#/channels/${id}`);
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: /Talk/ }).waitFor();
  assert.equal(await page.getByRole("button", { name: /Close channel/ }).count(), 0);
  assert.equal(await page.locator("#compose").count(), 0);
  assert.equal(await page.getByRole("link", { name: "Access" }).count(), 0);
  await done(page);
  await hub.end();
});

test("an approval is answered in the inbox; the second window is told who was first", async () => {
  const hub = await new Hub().start();
  const { id } = await discussion(hub);
  await hub.call("POST", `channels/${id}/requests`, { asked_by: "ada", kind: "approval", title: "Delete the volume?", action: { name: "rm", arguments: { path: "/x" } }, choices: [{ id: "approve", label: "Approve", consequence: "The volume is gone." }, { id: "deny", label: "Deny" }] });
  const one = await open(hub, "#/inbox");
  const two = await open(hub, "#/inbox");
  const row = (page: Page) => page.locator("[data-request]");
  await row(one).waitFor();
  await row(two).waitFor();
  await row(one).focus();
  await one.keyboard.press("a");
  await one.getByText("The volume is gone.").waitFor();
  await one.keyboard.press("Enter");
  await row(one).getByText("answered").waitFor();
  await row(two).getByText("answered").waitFor();
  const { requests } = await hub.call<{ requests: { state: string; answer: { choice: string } }[] }>("GET", "requests");
  assert.deepEqual([requests[0]!.state, requests[0]!.answer.choice], ["answered", "approve"]);
  await done(one);
  await done(two);
  await hub.end();
});
