import assert from "node:assert/strict";
import { after, test } from "node:test";
import { closeAll, done, Hub, open, parley, participant, registered } from "./rig.ts";

after(closeAll);

const json = { "Content-Type": "application/json" };

test("an AG2 client speaks: the row and the timeline follow, and presence too", async () => {
  const hub = await new Hub().start();
  const parrot = participant(hub, "parrot");
  await registered(hub, "parrot");
  await hub.agent("hana", "human");
  const agents = await open(hub, "#/agents");
  await agents.getByRole("row", { name: /parrot/ }).getByText("● online").waitFor();
  const { channel_id: id } = await hub.call<{ channel_id: string }>("POST", "channels", { creator: "hana", type: "conversation", participants: ["parrot"], labels: { title: "Talk" } });
  const list = await open(hub, "#/channels");
  await list.getByRole("link", { name: /Talk/ }).waitFor();
  await list.locator("header").getByText("● live").waitFor();
  const page = await open(hub, `#/channels/${id}`);
  await page.locator("#compose").fill("Good morning");
  await page.locator("#compose").press("Control+Enter");
  await page.locator("article[data-sequence]", { hasText: "Good morning" }).nth(1).waitFor(); // what the client answers
  await list.getByRole("row", { name: /Talk/ }).getByText("Good morning").waitFor();
  await page.keyboard.press("Escape"); // out of what is written
  await page.getByRole("button", { name: "People" }).click();
  const people = page.getByRole("complementary", { name: "People" });
  await people.getByRole("listitem").filter({ hasText: /parrot.*, online/ }).waitFor();
  parrot.kill("SIGKILL");
  await people.getByRole("listitem").filter({ hasText: /parrot.*, away/ }).waitFor();
  await agents.getByRole("row", { name: /parrot/ }).getByText("○ away").waitFor();
  for (const p of [agents, list, page]) await done(p);
  await hub.end();
});

test("streaming text becomes the stored event in place", async () => {
  const hub = await new Hub().start();
  await hub.agent("ada");
  await hub.agent("bob");
  const { channel_id: id } = await hub.call<{ channel_id: string }>("POST", "channels", { creator: "ada", type: "discussion", participants: ["bob"], required_acks: 0, labels: { title: "Talk" } });
  await hub.call("POST", `channels/${id}/events`, { sender: "ada", text: "Tell me." });
  const page = await open(hub, `#/channels/${id}`);
  await page.getByText("Tell me.").waitFor();
  await page.locator("header").getByText("● live").waitFor();
  for (const delta of ["It ", "is ", "**done**"]) await hub.call("POST", `channels/${id}/live`, { sender: "bob", event_data: { delta } });
  const live = page.locator("[data-live]");
  await live.locator("strong", { hasText: "done" }).waitFor();
  const above = await live.boundingBox();
  await hub.call("POST", `channels/${id}/events`, { sender: "bob", text: "It is **done**." });
  const stored = page.locator("article[data-sequence]", { hasText: "It is done." });
  await stored.waitFor();
  await live.waitFor({ state: "detached" });
  assert.equal(await page.getByText("It is done").count(), 1, "it is there once");
  const now = await stored.boundingBox();
  assert.ok(Math.abs(now!.y - above!.y) < 80, `it jumped from ${above!.y} to ${now!.y}`);
  await done(page);
  await hub.end();
});

test("an HPD branch is read as it is written, with its forks; a peer's thread and work too", async () => {
  const hub = await new Hub().start();
  participant(hub, "parrot", "--stream", "--pause", "1ms");
  await registered(hub, "parrot");
  const post = async (path: string, body: unknown) => {
    const answer = await fetch(`${hub.url}/${path}`, { method: "POST", headers: json, body: JSON.stringify(body) });
    assert.ok(answer.ok, `${path}: ${answer.status} ${await answer.clone().text()}`);
    return answer.text();
  };
  await post("hpd/sessions", { sessionId: "s-1" });
  const page = await open(hub, "#/sessions");
  const streams: string[] = [];
  page.on("request", (request) => { if (request.headers().accept === "text/event-stream") streams.push(new URL(request.url()).pathname); });
  await page.getByRole("link", { name: "s-1" }).click();
  await page.getByRole("link", { name: /main/ }).click();
  await page.getByText("Nothing was said on this branch yet.").waitFor();
  await post("hpd/agents/parrot/sessions/s-1/branches/main/inputs", { text: "hello wide world" });
  const transcript = page.getByRole("region", { name: "Transcript" });
  await transcript.getByText("hello wide world").nth(1).waitFor(); // the input, and what the producer streams
  assert.deepEqual([...new Set(streams)], ["/v1/watch"], "the tab has one stream");
  const events = (await (await fetch(`${hub.url}/hpd/sessions/s-1/branches/main/events`)).json()) as { messageId?: string }[];
  parley("sessions", "fork", "s-1", events.find((e) => e.messageId)!.messageId!, "--id", "other-tone", "--hub", hub.url);
  await page.reload();
  await transcript.getByText("hello wide world").nth(1).waitFor();
  const fork = page.getByRole("list", { name: "Branches" }).getByRole("listitem").filter({ hasText: "other-tone" });
  await fork.waitFor();
  assert.equal(await fork.evaluate((li) => li.style.paddingLeft), "16px", "a fork stands under its branch");
  await fork.getByRole("link").click();
  await transcript.getByText("hello wide world").first().waitFor();

  for (const name of ["crane", "tug"]) await hub.agent(name);
  const { channel } = JSON.parse(await post("agh/workspaces/ws_harbor/network/channels", { channel: "dock", purpose: "unloading", agent_names: ["crane", "tug"] })) as { channel: { sessions: { session_id: string; peer_id: string }[] } };
  const [crane, tug] = channel.sessions;
  const agh = (...args: string[]) => parley("agh", ...args, "--hub", hub.url, "--workspace", "ws_harbor");
  agh("send", "--session", crane!.session_id, "--channel", "dock", "--surface", "thread", "--thread", "thread_tide", "--to", tug!.peer_id, "--work", "work_tide_1", "--id", "ask-1", "--body", '{"text":"When is high water?","intent":"request"}');
  await page.goto(`${hub.url}/console/#/peers`);
  await page.getByRole("region", { name: "Workspaces" }).getByRole("link", { name: "ws_harbor" }).click();
  await page.getByText(tug!.peer_id).first().waitFor();
  await page.getByRole("link", { name: "dock" }).click();
  await page.getByText(/1 open work/).waitFor();
  await page.getByRole("link", { name: /thread_tide|When is high water/ }).first().click();
  await page.getByRole("article").filter({ hasText: "When is high water?" }).waitFor();
  await page.getByRole("article").getByRole("link", { name: "work_tide_1" }).click();
  await page.getByRole("heading", { name: "Work work_tide_1" }).waitFor();
  await done(page);
  await hub.end();
});
