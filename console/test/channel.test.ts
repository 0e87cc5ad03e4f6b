import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Page } from "playwright-core";
import { closeAll, done, Hub, open } from "./rig.ts";

after(closeAll);

async function discussion(hub: Hub, title = "Talk"): Promise<{ id: string; ada: string; bob: string }> {
  const ada = await hub.agent("ada");
  const bob = await hub.agent("bob");
  const channel = await hub.call<{ channel_id: string }>("POST", "channels", { creator: "ada", type: "discussion", participants: ["bob"], required_acks: 0, knobs: { expectations: [] }, labels: { title } }); // nothing is due, however slow the machine
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
  await page.locator("article", { hasText: "bookkeeping" }).waitFor(); // what was there before
  await say(hub, id, "ada", "Good morning, **bob**.");
  await page.getByText("Good morning,").waitFor();
  await page.locator('.timeline [aria-live="polite"]', { hasText: /^1 new event; bob's turn\.$/ }).waitFor({ state: "attached" });
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
  await page.getByText("It is not ada's turn: it is bob's, since").waitFor();
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
  // Scrolling goes on where it was, also when what is held slides: nothing is left out.
  await page.goto(`${hub.url}/console/#/channels/${id}`);
  const { length } = await hub.call<{ length: number }>("GET", `channels/${id}`);
  await page.locator(`article[data-sequence="${length}"]`).waitFor();
  for (const by of [-300, 300]) {
    const seen = await page.locator('[role="feed"]').evaluate(async (list, dy) => {
      const seen = new Set<number>();
      const shown = () => [...list.querySelectorAll<HTMLElement>("article[data-sequence]")].map((a) => Number(a.dataset.sequence));
      for (let still = 0, top = -1; still < 20; ) {
        for (const n of shown()) seen.add(n);
        list.scrollTop += dy;
        await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
        still = list.scrollTop === top && list.getAttribute("aria-busy") !== "true" ? still + 1 : 0;
        top = list.scrollTop;
      }
      return [...seen].sort((a, b) => a - b);
    }, by);
    // The first ones are bookkeeping, which is folded away.
    assert.deepEqual(seen, Array.from({ length: seen.length }, (_, i) => length - seen.length + 1 + i), by < 0 ? "up" : "down");
    assert.ok(seen.length >= 1500, `${seen.length} of ${length}`);
  }
  await done(page);
  await hub.end();
});

test("an address without an event goes back to the newest", async () => {
  const hub = await new Hub().start();
  const { id } = await discussion(hub);
  for (let n = 0; n < 600; n += 50) await lines(hub, id, n);
  const { length } = await hub.call<{ length: number }>("GET", `channels/${id}`);
  const page = await open(hub, `#/channels/${id}`);
  const end = page.locator(`article[data-sequence="${length}"]`);
  await end.waitFor();
  for (const sequence of [100, length - 60]) { // one that is fetched, one that is held
    await page.evaluate((hash) => void (location.hash = hash), `#/channels/${id}?event=${sequence}`);
    await page.locator(`article[data-sequence="${sequence}"]`).waitFor();
    await end.waitFor({ state: "detached" });
    await page.evaluate((hash) => void (location.hash = hash), `#/channels/${id}`);
    await end.waitFor();
  }
  // It follows again, too.
  await hub.call("POST", `channels/${id}/events`, { sender: "ada", event_type: "app.note", event_data: { text: "the very last" } });
  await page.getByText("the very last", { exact: true }).waitFor();
  await done(page);
  await hub.end();
});

test("a supervisor speaks out of turn, and the page says beforehand that it may", async () => {
  const hub = await new Hub().start();
  const [ada, bob] = [await hub.agent("ada"), await hub.agent("bob")];
  await hub.agent("sue", "human");
  const graph = { initial_speaker: ada, transitions: [], default_target: { name: "round_robin", args: {} } };
  const { channel_id: id } = await hub.call<{ channel_id: string }>("POST", "channels", { creator: "ada", type: "workflow", participants: ["bob", "sue"], required_acks: 0, knobs: { graph, supervisors: ["sue"] }, labels: { title: "Flow" } });
  const page = await open(hub, `#/channels/${id}`);
  await page.getByText(/It is ada's turn \(away\) since/).waitFor();
  const voice = page.getByLabel("Speak as", { exact: true }).last();
  await voice.selectOption({ label: "bob" });
  await page.getByText(/It is not bob's turn: it is ada's, since/).waitFor();
  assert.equal(await page.getByText("as a supervisor").count(), 0);
  await voice.selectOption({ label: "sue" });
  await page.getByText(/It is ada's turn, since .*; sue may speak as a supervisor\./).waitFor();
  await page.locator("#compose").fill("Mind the budget.");
  await page.getByRole("button", { name: "Send" }).click();
  await page.locator("article", { hasText: "Mind the budget." }).waitFor();
  assert.equal(await page.getByRole("alert").count(), 0);
  await page.locator(".whose", { hasText: "It is ada's turn" }).waitFor();
  const { turn } = await hub.call<{ turn: { agent_id: string } }>("GET", `channels/${id}`);
  assert.deepEqual([turn.agent_id, bob === ada], [ada, false], "whose turn it is has not changed");
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

test("words are found in a channel one place after another, and the live view is held and let go", async () => {
  const hub = await new Hub().start();
  const { id } = await discussion(hub);
  for (let n = 0; n < 300; n += 50) await lines(hub, id, n);
  const page = await open(hub, `#/channels/${id}`);
  await page.locator("header").getByText("● live").waitFor();
  const { events } = await hub.call<{ events: { sequence: number; event_data: { text?: string } }[] }>("GET", `channels/${id}/events?limit=1000`);
  const wanted = events.filter((e) => e.event_data.text?.includes("line 29")).map((e) => e.sequence);
  assert.equal(wanted.length, 11); // 29, and 290 to 299
  const find = page.getByLabel("Find in channel");
  await find.fill("LINE 29");
  for (const sequence of wanted) {
    await find.press("Enter");
    await page.getByRole("status").getByText(`event ${sequence}`, { exact: true }).waitFor();
    await page.locator(`article[data-sequence="${sequence}"]`).waitFor();
    assert.match(page.url(), new RegExp(`[?&]event=${sequence}(&|$)`));
  }
  await find.press("Enter");
  await page.getByText("no more", { exact: true }).waitFor();
  await find.fill("nonsense");
  await find.press("Enter");
  await page.getByText("not found", { exact: true }).waitFor();
  await find.blur();
  await page.keyboard.press("End");
  await page.locator(`article[data-sequence="${events.at(-1)!.sequence}"]`).waitFor();
  await page.keyboard.press(".");
  for (const text of ["held 1", "held 2", "held 3"]) await hub.call("POST", `channels/${id}/events`, { sender: "ada", event_type: "app.note", event_data: { text } });
  await page.getByRole("button", { name: "Held. 3 new. Show" }).click();
  await page.getByText("held 3", { exact: true }).waitFor();
  await page.getByRole("button", { name: /^Held/ }).waitFor({ state: "detached" });
  await done(page);
  await hub.end();
});
