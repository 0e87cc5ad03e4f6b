import assert from "node:assert/strict";
import { after, before } from "node:test";
import { ApiError, Client, type Event, type Generation, parseBlock, type TransportName } from "../src/client.js";
import { check, Hub } from "../src/hub.js";
import { echo, Producer, type Work } from "../src/producer.js";

let hub: Hub;
const producers: Producer[] = [];
async function produce(agentId: string, run: (p: Producer, w: Work) => Promise<void>) {
  const p = new Producer(hub.url, agentId, run);
  await p.start();
  producers.push(p);
}
before(async () => {
  hub = await Hub.start();
  await produce("echo", echo);
  await produce("asker", async (p, w) => {
    const call = { callId: "c-" + w.runtimeRunId, name: "open", messageId: "m-" + w.runtimeRunId };
    await p.publish(w, { type: "TOOL_CALL_START", ...call }, { type: "TOOL_CALL_ARGS", callId: call.callId, argsJson: "{}" }, { type: "TOOL_CALL_END", callId: call.callId });
    const a = await p.ask(w, { type: "CLIENT_TOOL_INVOKE_REQUEST", requestId: "q-" + w.runtimeRunId, toolName: "Door.open", callId: call.callId, arguments: {} });
    const text = a.success ? a.content.map((c: any) => c.text ?? JSON.stringify(c.value)).join("") : a.errorMessage;
    await p.publish(w, { type: "TOOL_CALL_RESULT", callId: call.callId, result: { text, json: text } });
  });
  await produce("waits", async (p, w) => {
    const messageId = "m-" + w.runtimeRunId;
    await p.publish(w, { type: "TEXT_MESSAGE_START", messageId, role: "assistant" }, { type: "TEXT_DELTA", messageId, text: "partial" });
    await new Promise<void>((stop) => p.interrupted.set(w.runtimeRunId, stop));
    await p.complete(w, { status: "cancelled" });
  });
});
after(async () => { for (const p of producers) p.stop(); await hub.stop(); });

// until waits for an event among those a client has seen.
function recorder(client: Client) {
  const seen: Event[] = [];
  const waiting: { type: string; done: (e: Event) => void }[] = [];
  client.onAny((e) => {
    seen.push(e);
    for (const w of waiting.splice(0)) w.type === e.type ? w.done(e) : waiting.push(w);
  });
  const until = (type: string) => new Promise<Event>((done) => {
    const found = seen.find((e) => e.type === type);
    found ? done(found) : waiting.push({ type, done });
  });
  return { seen, until };
}

check("hpd-events#115", "the parser takes blocks with comments and ids, and drops data without a type", async () => {
  const got: Event[] = [];
  for (const block of [": keepalive", "id: 1.2.3\ndata: {\"type\":\"A\"}", "data: {\"x\":1}", "data: nonsense", "event: x\ndata:{\"type\":\"B\"}"]) parseBlock(block, (e) => got.push(e));
  assert.deepEqual(got.map((e) => e.type), ["A", "B"]);
});

for (const generation of ["branches", "threads"] as Generation[]) {
  const surface = generation === "threads" ? " hpd-events#143" : "";
  const ended = generation === "threads" ? "THREAD_RUN_COMPLETED" : "BRANCH_RUN_COMPLETED";
  const started = generation === "threads" ? "THREAD_RUN_STARTED" : "BRANCH_RUN_STARTED";

  check("hpd-events#139" + surface, `${generation}: resources, with a content type on GET`, async () => {
    const c = new Client(hub.url + "/", generation, "sse");
    const s = await c.createSession({ metadata: { n: 5 } });
    assert.equal((await c.getSession(s.id)).id, s.id);
    assert.equal(await c.getSession("nobody"), null);
    assert.ok((await c.searchSessions({ metadata: { n: "5" } })).some((x: any) => x.id === s.id));
    assert.deepEqual((await c.updateSession(s.id, { n: null, m: 1 })).metadata, { m: 1 });
    assert.deepEqual((await c.listBranches(s.id)).map((b: any) => b.id), ["main"]);
    const b = await c.createBranch("echo", s.id, { [generation === "threads" ? "threadId" : "branchId"]: "side/one", name: "Side" });
    assert.equal(b.id, "side/one");
    assert.equal((await c.getBranch(s.id, "side/one")).name, "Side"); // raw slash in the path
    assert.equal((await c.updateBranch(s.id, "side/one", { description: "d" })).description, "d");
    assert.equal(await c.getActiveRun({ agentId: "echo", sessionId: s.id }), null);
    await assert.rejects(c.createBranch("echo", s.id, { [generation === "threads" ? "threadId" : "branchId"]: "side/one" }), (e: ApiError) => e.status === 409);
    await c.deleteBranch(s.id, "side/one");
    await assert.rejects(c.deleteBranch(s.id, "main"), (e: ApiError) => e.status === 400);
    const agent = await c.createAgent({ name: "n", config: { b: 1, a: null } });
    assert.deepEqual((await c.getAgent(agent.id)).config, { b: 1, a: null });
    await c.deleteAgent(agent.id);
    assert.equal(await c.getAgent(agent.id), null);
    const content = await c.uploadContent(s.id, "main", new Blob(["hello"], { type: "text/plain" }), "h.txt");
    assert.equal(content.sizeBytes, 5);
    await c.deleteSession(s.id);
    assert.equal(await c.getSession(s.id), null);
  });

  for (const transport of ["sse", "websocket"] as TransportName[]) {
    const open = async (agentId: string) => {
      const c = new Client(hub.url, generation, transport);
      const s = await c.createSession();
      const scope = { agentId, sessionId: s.id };
      const r = recorder(c);
      await c.start(scope);
      return { c, scope, ...r };
    };

    check("hpd-events#140 seed-003#120 seed-003#121 seed-003#119" + surface, `${generation} over ${transport}: text in, text out, unknown events to onAny, history`, async () => {
      const { c, scope, seen, until } = await open("echo");
      await c.text("kiwi is green");
      await until(ended);
      const types = seen.map((e) => e.type);
      assert.equal(types[0], started);
      assert.equal(types.at(-1), ended);
      assert.equal(seen.filter((e) => e.type === "TEXT_DELTA").map((e) => e.text).join(""), "kiwi is green");
      assert.ok(seen.some((e) => e.type === "CARGO_MANIFEST_READY" && e.tons === 7));
      assert.ok(seen.every((e) => e.version === "1.0" && typeof e.type === "string"));
      const history = await c.getBranchEvents(scope.sessionId, "main");
      assert.deepEqual(history.map((e) => e.sequenceNumber), history.map((_, i) => i + 1));
      assert.ok(seen.filter((e) => e.eventId).every((e) => history.some((h) => h.eventId === e.eventId && h.sequenceNumber === e.sequenceNumber)));
      c.stop();
    });

    check("hpd-events#140" + surface, `${generation} over ${transport}: cancel`, async () => {
      const { c, scope, until } = await open("waits");
      await c.text("go");
      await until("TEXT_DELTA");
      await c.interrupt();
      assert.equal((await until(ended)).cancelled, true);
      assert.ok((await c.getBranchEvents(scope.sessionId, "main")).some((e) => e.text === "partial"));
      c.stop();
    });

    check("hpd-events#141 seed-003#122" + surface, `${generation} over ${transport}: a client tool answers by itself`, async () => {
      const { c, until } = await open("asker");
      c.registerTool("open", () => "opened");
      await c.text("go");
      assert.equal((await until("TOOL_CALL_RESULT")).result.text, "opened");
      assert.equal((await until(ended)).cancelled, false);
      c.stop();
    });

    check("hpd-events#142" + surface, `${generation} over ${transport}: an unknown client tool fails, the run continues`, async () => {
      const { c, until } = await open("asker");
      await c.text("go");
      assert.equal((await until("TOOL_CALL_RESULT")).result.text, "Unknown client tool: Door.open");
      await until(ended);
      c.stop();
    });
  }
}

check("hpd-events#14", "a registered custom type reaches onAny with its members", async () => {
  const c = new Client(hub.url, "branches", "sse");
  const s = await c.createSession();
  const { until } = recorder(c);
  await c.start({ agentId: "echo", sessionId: s.id });
  await c.text("x");
  assert.equal((await until("CARGO_MANIFEST_READY")).tons, 7);
  c.stop();
});
