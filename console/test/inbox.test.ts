import assert from "node:assert/strict";
import { after, test } from "node:test";
import { hold } from "./places.ts";
import { closeAll, done, Hub, open } from "./rig.ts";

after(closeAll);

const choices = [{ id: "approve", label: "Approve", consequence: "The release goes out." }, { id: "deny", label: "Deny" }];

async function asked(hub: Hub, title: string): Promise<{ channel: string; request: string }> {
  const { channel_id: channel } = await hub.call<{ channel_id: string }>("POST", "channels", { creator: "ada", type: "discussion", participants: ["bob"], required_acks: 0, labels: { title: "Release 7" } });
  const { request_id: request } = await hub.call<{ request_id: string }>("POST", `channels/${channel}/requests`, { asked_by: "ada", kind: "approval", title, choices, action: { name: "release", arguments: { version: 7 } } });
  return { channel, request };
}

test("a request is answered by keys alone, and the audit says who", async () => {
  const hub = await new Hub().start();
  await hub.agent("ada");
  await hub.agent("bob");
  const { request } = await asked(hub, "May I release?");
  const page = await open(hub, "#/inbox");
  const card = page.locator(`article[data-request="${request}"]`);
  await card.getByRole("link", { name: "Release 7" }).waitFor();
  await card.focus();
  await page.keyboard.press("a");
  await card.getByText("The release goes out.").waitFor();
  await page.keyboard.press("Enter");
  await card.getByText("answered").waitFor();
  const stored = await hub.call<{ state: string; answer: { choice: string } }>("GET", `requests/${request}`);
  assert.deepEqual([stored.state, stored.answer.choice], ["answered", "approve"]);
  const { records } = await hub.call<{ records: { kind: string; request_id?: string }[] }>("GET", "audit?kind=request_ended");
  assert.equal(records.filter((r) => r.request_id === request).length, 1);
  await done(page);
  await hub.end();
});

test("a request without choices is answered with a text, whatever its kind", async () => {
  const hub = await new Hub().start();
  await hub.agent("ada");
  await hub.agent("bob");
  const { channel } = await asked(hub, "May I release?");
  const { request_id: request } = await hub.call<{ request_id: string }>("POST", `channels/${channel}/requests`, { asked_by: "ada", kind: "permission", title: "Which rack?" });
  const page = await open(hub, `#/inbox?id=${request}`);
  const card = page.locator(`article[data-request="${request}"]`);
  await card.getByLabel("Answer").fill("Rack 7");
  assert.equal(await card.getByRole("button", { name: /Approve|Deny/ }).count(), 0);
  await card.getByRole("button", { name: "Answer" }).click();
  await card.getByText("answered").waitFor();
  await card.getByText("“Rack 7”").waitFor();
  await done(page);
  await hub.end();
});

test("two windows answer at once: one decides, the other is told", async () => {
  const hub = await new Hub().start();
  await hub.agent("ada");
  await hub.agent("bob");
  const { request } = await asked(hub, "May I release?");
  const pages = [await open(hub, "#/inbox"), await open(hub, "#/inbox")];
  const cards = pages.map((page) => page.locator(`article[data-request="${request}"]`));
  await cards[0]!.getByRole("button", { name: "Approve" }).click();
  await cards[1]!.getByRole("button", { name: "Deny" }).click();
  // Neither answer reaches the hub before both windows have sent theirs.
  let sent = 0;
  let both = () => {};
  const together = new Promise<void>((resolve) => (both = resolve));
  for (const page of pages)
    await page.route("**/answer", async (route) => {
      if (++sent === pages.length) both();
      await together;
      await route.continue();
    });
  await Promise.all(cards.map((card) => card.getByRole("button", { name: /^Decide/ }).click()));
  await Promise.all(cards.map((card) => card.getByText("answered").waitFor()));
  const { answer } = await hub.call<{ answer: { choice: string } }>("GET", `requests/${request}`);
  for (const card of cards) await card.getByText(new RegExp(`${answer.choice}.*by`)).waitFor();
  for (const page of pages) await done(page);
  await hub.end();
});

test("a person's turn stands in the inbox until it is taken", async () => {
  const hub = await new Hub().start();
  const ada = await hub.agent("ada");
  await hub.agent("hana", "human");
  const graph = { initial_speaker: ada, transitions: [], default_target: { name: "round_robin", args: {} } };
  const { channel_id: id } = await hub.call<{ channel_id: string }>("POST", "channels", { creator: "ada", type: "workflow", participants: ["hana"], required_acks: 0, knobs: { graph }, labels: { title: "Flow" } });
  await hub.call("POST", `channels/${id}/events`, { sender: "ada", text: "over to hana" });
  const page = await open(hub, "#/inbox");
  await page.getByRole("heading", { name: "hana is expected to speak" }).waitFor();
  await page.getByRole("navigation", { name: "Screens" }).getByRole("link", { name: "Inbox 1" }).waitFor();
  assert.equal(await page.title(), "(1) Parley");
  await page.getByRole("link", { name: "Take the turn" }).click();
  await page.locator("#compose").fill("Done.");
  await page.getByRole("button", { name: "Send" }).click();
  await page.locator("article", { hasText: "Done." }).waitFor();
  await page.goto(`${hub.url}/console/#/inbox?kind=turn`);
  await page.getByText("No request of the kind turn is open.").waitFor();
  await done(page);
  await hub.end();
});

test("what is on the list already is not told as new; what comes is", async () => {
  const hub = await new Hub().start();
  const ada = await hub.agent("ada");
  await hub.agent("hana", "human");
  const graph = { initial_speaker: ada, transitions: [], default_target: { name: "round_robin", args: {} } };
  const handOver = async (title: string) => {
    const { channel_id: id } = await hub.call<{ channel_id: string }>("POST", "channels", { creator: "ada", type: "workflow", participants: ["hana"], required_acks: 0, knobs: { graph }, labels: { title } });
    await hub.call("POST", `channels/${id}/events`, { sender: "ada", text: "over to hana" });
  };
  await handOver("First");
  const page = await open(hub, "#/now");
  await page.getByRole("link", { name: "First" }).waitFor();
  // Newcomers are looked for before the list has come.
  const go = await hold(page, "**/v1/requests?*count*");
  const looked = page.waitForResponse((r) => /kind=invite/.test(r.url()) && !/count/.test(r.url()));
  await page.evaluate(() => void (location.hash = "#/inbox"));
  await (await looked).finished();
  await go();
  await page.getByRole("heading", { name: "hana is expected to speak" }).waitFor();
  assert.equal(await page.getByRole("button", { name: /new request/ }).count(), 0);
  await handOver("Second");
  await page.getByRole("button", { name: "1 new request. Show" }).click();
  await page.getByRole("link", { name: "Second" }).waitFor();
  assert.equal(await page.getByRole("button", { name: /new request/ }).count(), 0);
  await done(page);
  await hub.end();
});

test("a request says how the same action was decided before", async () => {
  const hub = await new Hub().start();
  await hub.agent("ada");
  await hub.agent("bob");
  for (const choice of ["approve", "deny", "approve"]) await hub.call("POST", `requests/${(await asked(hub, "May I release?")).request}/answer`, { choice });
  const { request, channel } = await asked(hub, "May I release?");
  const { request_id: other } = await hub.call<{ request_id: string }>("POST", `channels/${channel}/requests`, { asked_by: "ada", kind: "approval", title: "May I delete?", choices, action: { name: "delete", arguments: {} } });
  const page = await open(hub, "#/inbox");
  await page.locator(`article[data-request="${request}"]`).getByText(/^The same action was approved 2 times and denied once before, last \d/).waitFor();
  const fresh = page.locator(`article[data-request="${other}"]`);
  await fresh.getByText("delete", { exact: true }).waitFor();
  assert.equal(await fresh.getByText("The same action").count(), 0);
  await done(page);
  await hub.end();
});

test("an invitation is accepted and declined in the inbox, by the one who is invited or for them", async () => {
  const hub = await new Hub().start();
  await hub.agent("ada");
  await hub.agent("hana", "human");
  await hub.key("operator");
  const hana = await hub.key("agent", "hana");
  for (const [token, button, state] of [[hana, "Accept the invitation", "active"], [hub.token, "Decline", ""]] as const) {
    const page = await open(hub, "#/inbox?kind=invite");
    await page.getByLabel("Token").fill(token);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("No request of the kind invite is open.").waitFor();
    await page.locator("header").getByText("● live").waitFor();
    // The hub answers who opens a channel when the invitations were answered.
    const opened = hub.call<{ channel_id: string }>("POST", "channels", { creator: "ada", type: "conversation", participants: ["hana"], labels: { title: "Come in" } }).then((c) => c.channel_id, (err: Error) => err);
    for (let n = 0; n === 0; n = (await hub.call<{ requests: unknown[] }>("GET", "requests?kind=invite")).requests.length) await new Promise((resolve) => setImmediate(resolve));
    await page.getByRole("button", { name: "1 new request. Show" }).click();
    const card = page.locator("article[data-request]", { hasText: "ada invites hana" });
    await card.getByRole("link", { name: "Come in" }).waitFor();
    await card.getByText("If nobody answers: the channel is not opened.").waitFor();
    await card.getByRole("button", { name: button }).click();
    await card.getByText("answered").waitFor();
    const got = await opened;
    if (state) assert.equal((await hub.call<{ state: string }>("GET", `channels/${String(got)}`)).state, state);
    else assert.ok(got instanceof Error, `declined, and opened as ${String(got)}`);
    await page.reload();
    await page.getByText("No request of the kind invite is open.").waitFor();
    await done(page);
  }
  await hub.end();
});
