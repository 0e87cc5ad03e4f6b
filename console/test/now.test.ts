import assert from "node:assert/strict";
import { connect } from "node:net";
import { after, test } from "node:test";
import { closeAll, cluster, done, failing, Hub, open } from "./rig.ts";

after(closeAll);

test("a reader that takes nothing is cut off, and Now says so while it is looked at", async () => {
  const hub = await new Hub(["--set", "limits.follower_write=500ms"]).start();
  const ada = await hub.agent("ada");
  await hub.agent("bob");
  const { channel_id: id } = await hub.call<{ channel_id: string }>("POST", "channels", { creator: "ada", type: "discussion", participants: ["bob"], required_acks: 0 });
  const page = await open(hub, "#/now");
  await page.locator("header").getByText("● live").waitFor();
  await page.getByText(/active channel/).waitFor();
  assert.equal(await page.getByText("cut off in ten minutes").count(), 0);
  const at = new URL(hub.url);
  const slow = connect(Number(at.port), at.hostname);
  slow.on("error", () => {}); // it is cut off
  await new Promise((resolve) => slow.once("connect", resolve));
  slow.pause();
  slow.write(`GET /v1/channels/${id}/events HTTP/1.1\r\nHost: ${at.host}\r\nAccept: text/event-stream\r\n\r\n`);
  // More than the kernel takes for it.
  for (let n = 0; n < 24; n++) await hub.call("POST", `channels/${id}/events`, { sender: "ada", audience: [ada], event_type: "app.note", event_data: { text: "x".repeat(1_000_000) } });
  await page.getByRole("link", { name: "▲ 1 slow reader cut off in ten minutes" }).click();
  await page.getByRole("heading", { name: "Health", level: 1 }).waitFor();
  slow.destroy();
  await done(page);
  await hub.end();
});

test("a turn that fails is on Now at once, though nothing else there has changed", async () => {
  const hub = await new Hub().start();
  await hub.agent("ada");
  const page = await open(hub, "#/now");
  await page.locator("header").getByText("● live").waitFor();
  await page.getByText("Nobody waits for a person, and nothing is overdue.").waitFor();
  assert.equal(await page.getByRole("heading", { name: "Turns that failed lately" }).count(), 0);
  failing(hub, "dan");
  await page.getByText("1 of 2 agents online").waitFor();
  const { channel_id: id } = await hub.call<{ channel_id: string }>("POST", "channels", { creator: "ada", type: "discussion", participants: ["dan"], required_acks: 0, labels: { title: "Talk" } });
  await hub.call("POST", `channels/${id}/events`, { sender: "ada", text: "Over to you, dan." });
  const section = page.locator("section", { has: page.getByRole("heading", { name: "Turns that failed lately" }) });
  await section.getByText("dan", { exact: true }).waitFor();
  await section.getByRole("link").first().click();
  await page.locator("article[data-sequence]", { hasText: "Over to you, dan." }).waitFor();
  await done(page);
  await hub.end();
});

test("Health shows who serves the cluster, who stands by and how far behind, and says so when nobody is left to take over", async () => {
  const { hub, lose, end } = await cluster();
  const page = await open(hub, "#/health");
  const nodes = page.getByRole("table", { name: "Nodes" });
  await page.getByRole("heading", { name: "Cluster parley" }).waitFor();
  await nodes.getByRole("row", { name: /^ann ● serving up to date/ }).waitFor();
  await nodes.getByRole("row", { name: /^ben ○ stands by up to date/ }).waitFor();
  assert.equal(await page.getByText("No other node lives").count(), 0);
  await page.setViewportSize({ width: 320, height: 640 });
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= 320), "nothing scrolls sideways");
  lose();
  await page.getByText("▲ No other node lives: nobody takes over if ann fails.").waitFor();
  await nodes.getByRole("row", { name: /^ben/ }).waitFor({ state: "detached" });
  await done(page);
  await end();
  const alone = await new Hub().start();
  const other = await open(alone, "#/health");
  await other.getByRole("heading", { name: "As the hub sees itself" }).waitFor();
  assert.equal(await other.getByRole("heading", { name: /^Cluster/ }).count(), 0, "a hub alone has no cluster");
  await done(other);
  await alone.end();
});

test("a plot does not say of an old value that it is now, and draws it although nothing is known beside it", async () => {
  const hub = await new Hub().start();
  await hub.agent("alice");
  const page = await open(hub, "#/health");
  const syncs = page.locator("figure", { has: page.getByText("sync_p50", { exact: true }) });
  await syncs.getByText(/^none now, [\d.]+ ms last, [\d.]+ ms at most$/).waitFor();
  assert.match((await syncs.locator("path").getAttribute("d"))!, /^M[\d. ]+h0/);
  await syncs.getByText("table", { exact: true }).click();
  assert.ok((await syncs.locator("tr").count()) > 0, "the table has the values of a sparse series");
  await done(page);
  await hub.end();
});
