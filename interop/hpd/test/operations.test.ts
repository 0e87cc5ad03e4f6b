// The rest of the stock client's operations, how it handles refusals, and the
// quirks that a server must tolerate.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { ApiError, Client, type Event, type Generation, type TransportName } from "../src/client.js";
import { Hub } from "../src/hub.js";
import { echo, Producer, type Work } from "../src/producer.js";

let hub: Hub;
const producers: Producer[] = [];
before(async () => {
  hub = await Hub.start();
  const ask = async (p: Producer, w: Work) => {
    const a = await p.ask(w, { type: "PERMISSION_REQUEST", permissionId: "p-" + w.runtimeRunId, sourceName: "guard", functionName: "wipe", callId: "c" });
    await p.publish(w, { type: "TEXT_DELTA", messageId: "m-" + w.runtimeRunId, text: `${a.approved} ${a.choice ?? ""}` });
  };
  for (const [id, run] of [["echo", echo], ["guard", ask]] as [string, (p: Producer, w: Work) => Promise<void>][]) {
    const p = new Producer(hub.url, id, run);
    await p.start();
    producers.push(p);
  }
});
after(async () => { for (const p of producers) p.stop(); await hub.stop(); });

const seenBy = (c: Client) => {
  const seen: Event[] = [];
  const waiting: (() => void)[] = [];
  c.onAny((e) => { seen.push(e); for (const w of waiting.splice(0)) w(); });
  const until = async (type: string): Promise<Event> => {
    for (;;) {
      const found = seen.find((e) => e.type === type);
      if (found) return found;
      await new Promise<void>((r) => waiting.push(r));
    }
  };
  return { seen, until };
};
const patient = { timeout: 30_000 };

for (const generation of ["branches", "threads"] as Generation[]) {
  const thread = generation === "threads";
  const ended = thread ? "THREAD_RUN_COMPLETED" : "BRANCH_RUN_COMPLETED";

  test(`${generation}: lists, forks, siblings, runs, definitions`, patient, async () => {
    const c = new Client(hub.url, generation, "sse");
    const s = await c.createSession();
    assert.deepEqual((await c.listSessions({ limit: 1, offset: 0, sortBy: "createdAt", sortDirection: "desc" })).map((x: any) => x.id), [s.id]);
    const scope = { agentId: "echo", sessionId: s.id };
    const { until } = seenBy(c);
    await c.start(scope);
    await assert.rejects(c.start(scope), /already connected/);
    await c.text("one two");
    await until(ended);
    c.stop();
    const [run] = await c.getRuns(scope);
    assert.equal(run.status, "completed");
    assert.deepEqual(run.backgroundTasks, []);
    assert.deepEqual(await c.getRun(scope, run.runtimeRunId), run);
    assert.equal(await c.getRun(scope, "none"), null);
    assert.equal(await c.getActiveRun(scope), null);

    const history = await c.getBranchEvents(s.id, "main");
    const message = history.find((e) => e.type === "MESSAGE_STARTED")!.messageId;
    const fork = await c.forkBranch(scope, { [thread ? "newThreadId" : "newBranchId"]: "tone/b", fromMessageId: message });
    assert.equal(fork.forkedFrom, "main");
    assert.equal(fork[thread ? "originalThreadId" : "originalBranchId"], "main");
    const main = await c.getBranch(s.id, "main");
    assert.deepEqual(main[thread ? "childThreads" : "childBranches"], ["tone/b"]);
    assert.equal(main.nextSiblingId, "tone/b");
    assert.equal((await c.getBranch(s.id, main.nextSiblingId)).previousSiblingId, "main");
    assert.deepEqual((await c.getSiblings(s.id, "tone/b")).map((b: any) => b.id), ["main", "tone/b"]);
    await assert.rejects(c.forkBranch(scope, { fromMessageId: "none" }), (e: ApiError) => e.code === "BAD_REQUEST" && Object.keys(e.details ?? {})[0] === "ForkMessageNotPresent");
    await assert.rejects(c.getBranchEvents(s.id, "none"), (e: ApiError) => e.status === 404);

    const agent = await c.createAgent({ name: "n", config: { z: 1, a: [null] } });
    assert.ok((await c.listAgents()).some((x: any) => x.id === agent.id && x.config === undefined));
    assert.deepEqual((await c.updateAgent(agent.id, { y: 2 })).config, { y: 2 });
    await c.deleteAgent(agent.id);
    await assert.rejects(c.updateAgent(agent.id, {}), (e: ApiError) => e.code === "NOT_FOUND");
    await assert.rejects(c.deleteAgent(agent.id), (e: ApiError) => e.status === 404);
    await assert.rejects(c.json("GET", "/evals/scores"), (e: ApiError) => e.code === "NOT_FOUND");
  });

  test(`${generation}: what becomes of an answer`, patient, async () => {
    const c = new Client(hub.url, generation, "sse");
    const s = await c.createSession();
    const scope = { agentId: "guard", sessionId: s.id };
    const { until } = seenBy(c);
    await c.start(scope);
    const answer = (id: string): Event => ({ type: "PERMISSION_RESPONSE", permissionId: id, sourceName: "guard", approved: true, choice: "allow_always" });
    await c.text("go");
    const id = (await until("PERMISSION_REQUEST")).permissionId;
    assert.equal((await c.submit(answer("other")))!.status, "notFound");
    assert.equal((await c.submit({ type: "CLARIFICATION_RESPONSE", requestId: id, sourceName: "x", question: "?", answer: "!" }))!.status, "responseTypeMismatch");
    // It can come in another branch's scope: the request stays open.
    await c.createBranch("guard", s.id, { [thread ? "threadId" : "branchId"]: "elsewhere" });
    assert.equal((await c.submit(answer(id), { ...scope, branchId: "elsewhere" }))!.accepted, false);
    assert.deepEqual(await c.submit(answer(id), scope), { status: "accepted", requestId: id, message: undefined, accepted: true });
    assert.equal((await until("TEXT_DELTA")).text, "true allow_always");
    await until(ended);
    const late = await c.submit(answer(id));
    assert.equal(late!.accepted, false);
    c.stop();
  });

  for (const transport of ["sse", "websocket"] as TransportName[]) {
    test(`${generation} over ${transport}: a handler that throws poisons the client's queue, and the run goes on`, patient, async () => {
      const c = new Client(hub.url, generation, transport);
      const s = await c.createSession();
      const scope = { agentId: "echo", sessionId: s.id };
      let handed = 0;
      c.onAny(() => { handed++; throw new Error("handler"); });
      await c.start(scope);
      await c.text("one two three").catch(() => {}); // the client's own queue rejects it; the hub took it
      const other = new Client(hub.url, generation, "sse");
      for (;;) {
        const [run] = await other.getRuns(scope);
        if (run?.status === "completed") break;
      }
      assert.equal(handed, 1);
      if (transport === "sse") await assert.rejects(c.text("again"), /handler/); // taken, and rejected all the same
      c.stop();
    });
  }
}

test("frames are split by LF LF alone: no CR, one data line, and JSON content types on GET are fine", patient, async () => {
  const c = new Client(hub.url, "branches", "sse");
  const s = await c.createSession();
  const abort = new AbortController();
  const res = await fetch(`${hub.url}/agents/echo/sessions/${s.id}/branches/main/events/live`, { headers: { "Content-Type": "application/json" }, signal: abort.signal });
  assert.equal(res.headers.get("content-type"), "text/event-stream");
  assert.equal(res.headers.get("cache-control"), "no-cache");
  await c.text("line one\r\nline two\n\nline three", { agentId: "echo", sessionId: s.id });
  let text = "";
  const reader = res.body!.getReader();
  while (!/BRANCH_RUN_COMPLETED[^\n]*\n\n/.test(text)) text += new TextDecoder().decode((await reader.read()).value);
  abort.abort();
  assert.ok(!text.includes("\r"));
  for (const block of text.split("\n\n").filter((b) => b !== "")) {
    const lines = block.split("\n").filter((l) => !l.startsWith("id: ") && !l.startsWith(":"));
    assert.ok(lines.length <= 1 && lines.every((l) => l.startsWith('data: {"version":"1.0","type":"')), block);
  }
});

test("the input is posted as {text, runConfig}, and runConfig reaches the producer only", patient, async () => {
  let got: Work | undefined;
  const p = new Producer(hub.url, "config", async (_, w) => { got = w; });
  await p.start();
  producers.push(p);
  const c = new Client(hub.url, "branches", "sse");
  const s = await c.createSession();
  const { seen, until } = seenBy(c);
  await c.start({ agentId: "config", sessionId: s.id });
  await c.text("hi", undefined, { apiKey: "sk-secret", chat: { temperature: 0 } });
  await until("BRANCH_RUN_COMPLETED");
  assert.deepEqual(got!.runConfig, { apiKey: "sk-secret", chat: { temperature: 0 } });
  assert.ok(!JSON.stringify([seen, await c.getBranchEvents(s.id, "main")]).includes("sk-secret"));
  c.stop();
});

test("the line to copy from README is this client's", patient, async () => {
  const readme = readFileSync(join(resolve(import.meta.dirname ?? ".", "../../../.."), "README.md"), "utf8");
  const line = /new AgentClient\(\{ baseUrl: "http:\/\/127\.0\.0\.1:7440([^"]*)", transport: "(sse|websocket)" \}\)/.exec(readme);
  assert.ok(line, "README shows how the client is made");
  const c = new Client(new URL(line[1], hub.url).href, "branches", line[2] as TransportName);
  const s = await c.createSession();
  const { until } = seenBy(c);
  await c.start({ agentId: "echo", sessionId: s.id });
  await c.text("kiwi");
  assert.equal((await until("TEXT_DELTA")).text, "kiwi");
  c.stop();
});
