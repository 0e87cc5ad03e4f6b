import assert from "node:assert/strict";
import { after, test } from "node:test";
import { goByKeys } from "./places.ts";
import { closeAll, done, Hub, open, parley, producer } from "./rig.ts";

after(closeAll);

const deep = (levels: number): unknown => JSON.parse('{"a":'.repeat(levels) + "1" + "}".repeat(levels));

const texts = [
  "<script>alert(1)</script>",
  "<img src=x onerror=alert(1)>",
  "[x](javascript:alert(1))",
  "[x](JaVaScRiPt&colon;alert(1))",
  "<javascript:alert(1)>",
  "![p](http://127.0.0.1:1/p.png)",
  "[![p](http://127.0.0.1:1/p.png)](http://127.0.0.1:1/)",
  "[d](data:text/html,<script>alert(1)</script>)",
  "<svg onload=alert(1)><animate onbegin=alert(1)>",
  "<style>@import 'http://127.0.0.1:1/x.css'</style><link rel=stylesheet href=http://127.0.0.1:1/x>",
  "<form id=app><input name=textContent><input name=attributes></form><a id=location href=x>",
  "<iframe srcdoc='<script>parent.alert(1)</script>'></iframe><base href=http://127.0.0.1:1/>",
  "\u202ereversed\u202c \u2066isolated\u2069 \u0007bell \u001b[2J \u200bzero \u{e0041}tag",
  "__proto__ constructor prototype",
  "{{constructor.constructor('alert(1)')()}} ${alert(1)} {@html '<img src=x onerror=alert(1)>'}",
];

test("hostile text is shown as text on every screen, and the page still answers a key", async () => {
  const hub = await new Hub().start();
  const evil = "<img src=x onerror=alert(1)>";
  const ada = await hub.agent("ada");
  const bob = await hub.agent(`bob ${evil} \u202e`, "human").catch(() => hub.agent("bob<b onclick=alert(1)>", "human"));
  const graph = { initial_speaker: ada, transitions: [{ when: { name: "context_equals", args: { key: evil, value: evil } }, then: { name: "terminate", args: { reason: evil } } }], default_target: { name: "agent", args: { agent_id: ada } } };
  const { channel_id: flow } = await hub.call<{ channel_id: string }>("POST", "channels", { creator: "ada", type: "workflow", participants: [bob], required_acks: 0, knobs: { graph }, labels: { title: `${evil}\u202e`, ["__proto__x"]: evil } });
  const say = (body: unknown) => hub.call("POST", `channels/${flow}/events`, { sender: "ada", event_type: "ag2.packet", event_data: body });
  for (const text of texts) await hub.call("POST", `channels/${flow}/events`, { sender: "ada", text });
  await hub.call("POST", `channels/${flow}/events`, { sender: "ada", event_type: "ag2.context.set", event_data: { set: { ["__proto__"]: evil, "<b>": evil, constructor: { prototype: evil } } } });
  await say({ routing: { kind: "handoff", target: ada, reason: evil }, body: evil });
  await say({ routing: { kind: "text" }, body: { [evil]: evil, nested: deep(200) } });
  await hub.call("POST", `channels/${flow}/events`, { sender: "ada", event_type: `app.${evil}`, event_data: JSON.parse(`{"__proto__":{"polluted":1},"text":"${evil}"}`) });
  await hub.call("POST", `channels/${flow}/requests`, { asked_by: "ada", kind: "approval", title: evil, body: texts.join("\n\n"), action: { name: evil, arguments: { [evil]: evil, a: deep(100) } }, choices: [{ id: "approve", label: evil, consequence: evil }, { id: "deny" }] });
  const page = await open(hub, `#/channels/${flow}?reading`);
  await page.getByText("<svg onload=alert(1)>").first().waitFor();
  await page.getByText("\\u{202e}reversed").first().waitFor();
  assert.equal(await page.locator("li script, li img, li form, li svg, li iframe, li style, li link, li base").count(), 0);
  assert.equal(await page.locator('a[href^="javascript:" i], a[href^="data:" i]').count(), 0);
  for (const tab of ["raw", "why", "state", "graph", "people", "thread", "expectations"]) {
    await page.goto(`${hub.url}/console/#/channels/${flow}?${tab}`);
    await page.getByRole("complementary").waitFor();
    await page.getByRole("complementary").locator("p, li, div").first().waitFor();
    await page.getByRole("complementary").evaluate((pane) => { for (const details of pane.querySelectorAll("details")) details.open = true; });
  }
  for (const screen of ["now", "inbox", "channels", "agents", `agents/${bob}`, "tasks", "audit", "health", "access", "sessions", "peers"]) {
    await page.goto(`${hub.url}/console/#/${screen}`);
    await page.getByRole("heading", { level: 1 }).first().waitFor();
    await page.waitForFunction(() => !document.querySelector(".bones"));
    assert.equal(await page.locator("main script, main img, main iframe, main style").count(), 0, screen);
  }
  assert.equal(await page.evaluate(() => (({}) as any).polluted), undefined);
  await page.keyboard.press("?");
  await page.getByRole("heading", { name: "Keys" }).waitFor();
  await done(page);
  await hub.end();
});

test("text that is too large to be drawn is cut, and the page still answers a key", async () => {
  const hub = await new Hub().start();
  await hub.agent("ada");
  await hub.agent("bob");
  const { channel_id: id } = await hub.call<{ channel_id: string }>("POST", "channels", { creator: "ada", type: "discussion", participants: ["bob"], required_acks: 0 });
  const note = (data: unknown) => hub.call("POST", `channels/${id}/events`, { sender: "ada", event_type: "app.note", event_data: data });
  const cells = "|" + "a|".repeat(100) + "\n|" + "-|".repeat(100) + ("\n|" + "b|".repeat(100)).repeat(1000);
  const large = ["x".repeat((1 << 20) - 2000), "> ".repeat(100_000) + "deep", cells, "[".repeat(100_000), "* ".repeat(50_000), "`".repeat(100_001), "a\n".repeat(200_000)];
  for (const text of large) await note({ text });
  await note({ text: "deep", data: deep(248) });
  await note({ text: "the end" });
  const page = await open(hub, `#/channels/${id}?raw`);
  await page.getByText("the end").first().waitFor();
  for (let n = 0; n < 40; n++) await page.locator('[role="feed"]').evaluate((node) => (node.scrollTop -= 2000));
  for (let n = 0; n < 12; n++) {
    const closed = page.getByRole("complementary").locator("details:not([open]) > summary");
    if ((await closed.count()) === 0) break;
    await closed.last().click();
  }
  assert.ok((await page.locator("*").count()) < 5000, "few elements");
  await goByKeys(page, "n", "Now");
  await done(page);
  await hub.end();
});

test("hostile results and reasons are shown as text: of tasks, tools, failed turns, closed channels and requests, and of AGH", async () => {
  const hub = new Hub();
  const told = hub.seed<{ channel_id: string; task_ids: string[] }>("hostile");
  await hub.start();
  const evil = "<img src=x onerror=alert(1)>";
  const post = async <T>(path: string, body: unknown): Promise<T> => {
    const answer = await fetch(`${hub.url}/${path}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
    const text = await answer.text();
    assert.ok(answer.ok, `${path}: ${answer.status} ${text}`);
    return JSON.parse(text) as T;
  };
  // A branch whose tool has a hostile name, arguments and result, and hostile reasoning.
  await post("hpd/sessions", { sessionId: "s-1" });
  const bot = await producer(hub, "cleo");
  const { runtimeRunId: run } = await post<{ runtimeRunId: string }>("hpd/agents/cleo/sessions/s-1/branches/main/inputs", { text: evil });
  await bot.publish("sessions/s-1/branches/main", run, [
    { type: "REASONING_MESSAGE_START", messageId: "r1", role: "assistant" }, { type: "REASONING_DELTA", messageId: "r1", text: `${evil} thought` }, { type: "REASONING_MESSAGE_END", messageId: "r1" },
    { type: "TOOL_CALL_START", callId: "c1", name: evil, messageId: "m1" }, { type: "TOOL_CALL_ARGS", callId: "c1", argsJson: JSON.stringify({ [evil]: evil }) }, { type: "TOOL_CALL_END", callId: "c1" },
    { type: "TOOL_CALL_RESULT", callId: "c1", result: { text: `${evil} result`, json: '{"__proto__":{"polluted":1}}' } },
  ]);
  // A channel and a request that ended for hostile reasons.
  await hub.call("POST", `channels/${told.channel_id}/requests`, { asked_by: "cleo", kind: "approval", title: evil, choices: [{ id: "approve" }, { id: "deny" }] });
  await hub.call("POST", `channels/${told.channel_id}/close`, { reason: `${evil} reason` });
  // A room with a hostile purpose, and a hostile message in its thread.
  const { channel } = await post<{ channel: { sessions: { session_id: string; peer_id: string }[] } }>("agh/workspaces/ws_harbor/network/channels", { channel: "dock", purpose: evil, agent_names: ["cleo", "dan"] });
  parley("agh", "send", "--session", channel.sessions[0]!.session_id, "--channel", "dock", "--surface", "thread", "--thread", "thread_tide", "--to", channel.sessions[1]!.peer_id, "--work", "work_tide_1", "--id", "ask-1", "--body", JSON.stringify({ text: `${evil} message`, intent: "request" }), "--hub", hub.url, "--workspace", "ws_harbor");

  const page = await open(hub, "#/now");
  const shown = async (hash: string, words: string | RegExp) => {
    await page.goto(`${hub.url}/console/#/${hash}`);
    await page.getByRole("heading", { level: 1 }).first().waitFor();
    await page.waitForFunction(() => !document.querySelector(".bones"));
    // What is folded away is drawn when it is opened.
    await page.locator("main").evaluate((main) => {
      const unfold = () => { for (const details of main.querySelectorAll("details")) details.open = true; };
      new MutationObserver(unfold).observe(main, { childList: true, subtree: true });
      unfold();
    });
    await page.getByText(words).first().waitFor({ state: "attached" });
    assert.equal(await page.locator("main script, main img, main iframe, main style, main form[action]").count(), 0, hash);
    assert.equal(await page.locator('a[href^="javascript:" i], a[href^="data:" i]').count(), 0, hash);
  };
  await shown("now", evil); // the turn that failed
  await shown(`tasks?id=${told.task_ids[0]}`, /javascript:alert/); // payload, progress and result
  await shown(`tasks?id=${told.task_ids[1]}`, /"error"|error/);
  await shown("sessions/s-1/main", `${evil} result`);
  await shown(`channels/${told.channel_id}`, `${evil} reason`);
  await shown("channels?state=closed&sort=created", evil);
  await shown("inbox?state=cancelled", evil);
  await shown("audit", "channel_created");
  await shown("peers?workspace=ws_harbor", evil);
  await shown("peers?workspace=ws_harbor&channel=dock&thread=thread_tide", `${evil} message`);
  assert.equal(await page.evaluate(() => (({}) as any).polluted), undefined);
  await page.keyboard.press("?");
  await page.getByRole("heading", { name: "Keys" }).waitFor();
  bot.end();
  await done(page);
  await hub.end();
});
