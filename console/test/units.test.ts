import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { backoff } from "../src/lib/backoff.ts";
import { eventOf, read } from "../src/lib/branch.ts";
import { labelOf, meant } from "../src/lib/choice.ts";
import { further, type From } from "../src/lib/further.ts";
import { hue, initials } from "../src/lib/hue.ts";
import { markdown, safe, type Block, type Inline } from "../src/lib/markdown.ts";
import { format, parse } from "../src/lib/route.ts";
import { EventReader } from "../src/lib/sse.ts";
import { line, visible } from "../src/lib/text.ts";
import { count, many, span, times } from "../src/lib/time.ts";
import { rows, said } from "../src/lib/timeline.ts";
import type { Envelope } from "../src/lib/types.ts";
import * as held from "../src/lib/window.ts";

function envelope(sequence: number, sender: string, type: string, data: Record<string, unknown> = {}): Envelope {
  return { position: `1.2.${sequence}`, sequence, envelope_id: `e${sequence}`, channel_id: "c", sender_id: sender, audience: null, event_type: type, event_data: data, causation_id: null, task_id: null, depth: 0, idempotency_key: null, trace_id: null, ttl_seconds: null, priority: "normal", created_at: "2026-01-01T00:00:00Z" };
}

test("an event stream cut at every place gives the same events", () => {
  const text = '\uFEFF: hello\r\nid: 1\nevent: row\ndata: {"a":"é😀"}\ndata: second\n\ndata:none\r\n\r\nid: 2\revent: x\rdata\r\r: end\n\n';
  const whole = new EventReader();
  const expected = whole.push(text + "\n");
  assert.deepEqual(expected.map((e) => [e.id, e.event, e.data]), [["1", "row", '{"a":"é😀"}\nsecond'], ["1", "message", "none"], ["2", "x", ""]]);
  for (let cut = 0; cut <= text.length; cut++) {
    const reader = new EventReader();
    const events = [...reader.push(text.slice(0, cut)), ...reader.push(text.slice(cut)), ...reader.push("\n")];
    assert.deepEqual(events, expected, `cut at ${cut}`);
  }
  const single = new EventReader();
  assert.deepEqual([...text + "\n"].flatMap((c) => single.push(c)), expected);
});

test("comments are a sign of life and no event", () => {
  const reader = new EventReader();
  assert.deepEqual(reader.push(": keep\n\n"), []);
  assert.equal(reader.lines, 2);
});

test("rows of a timeline: headings where the speaker changes, bookkeeping folded", () => {
  const items = rows([
    envelope(1, "a", "ag2.channel.invite"),
    envelope(2, "b", "ag2.channel.invite.ack"),
    envelope(3, "a", "ag2.channel.opened"),
    envelope(4, "a", "ag2.msg.text", { text: "one" }),
    envelope(5, "a", "ag2.msg.text", { text: "two" }),
    envelope(6, "b", "ag2.packet", { routing: { kind: "handoff", target: "c", reason: "why" }, body: "over" }),
    envelope(7, "a", "ag2.task.progress"),
  ]);
  assert.deepEqual(items.map((i) => (i.kind === "event" ? i.says.text : i.kind === "turn" ? `turn ${i.sender}` : i.says)), ["invited, accepted, opened", "turn a", "one", "two", "turn b", "over", "task progress"]);
  assert.deepEqual(said(envelope(6, "b", "ag2.packet", { routing: { kind: "handoff", target: "c", reason: "why" }, body: "over" })), { text: "over", chip: "handoff", target: "c", reason: "why" });
  assert.equal(said(envelope(1, "a", "ag2.packet", { routing: { kind: "text" }, body: { x: 1 } })).text, '```\n{\n "x": 1\n}\n```');
  assert.equal(said(envelope(1, "a", "ag2.context.set", { set: { area: "db" }, delete: ["old"] })).text, '`area = "db", old removed`');
});

test("a window of the log keeps its order, its bound and no event twice", () => {
  const event = (n: number) => envelope(n, "a", "ag2.msg.text");
  const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => event(from + i));
  let h = held.append(held.nothing, range(500, 700), 2000);
  assert.equal(held.atEnd(h), false);
  h = held.append(h, range(650, 900));
  assert.deepEqual([held.first(h), held.last(h), h.events.length, h.length], [500, 900, 401, 2000]);
  h = held.prepend(h, range(300, 520));
  assert.deepEqual([held.first(h), h.events.length], [300, 601]);
  h = held.append(h, range(901, 2000));
  assert.deepEqual([h.events.length, held.first(h), held.last(h), held.atEnd(h)], [held.most, 1001, 2000, true]);
  h = held.prepend(h, range(500, 1000));
  assert.deepEqual([h.events.length, held.first(h), held.last(h), held.atEnd(h)], [held.most, 500, 1499, false]);
  assert.ok(h.events.every((e, i) => e.sequence === 500 + i));
});

function flat(blocks: Block[]): string {
  const inline = (of: Inline[]): string => of.map((p) => ("text" in p ? p.text : "of" in p ? inline(p.of) : "")).join("");
  return blocks.map((b) => ("text" in b ? b.text : b.kind === "quote" ? flat(b.of) : "of" in b ? inline(b.of) : b.kind === "list" ? b.items.map(flat).join("") : "")).join("\n");
}

test("Markdown becomes a tree, and HTML in it stays text", () => {
  const tree = markdown("# Head\n\nSome **bold** and `code`.\n\n- one\n- two\n\n<img src=x onerror=alert(1)>\n\n```\na<b\n```\n")!;
  assert.deepEqual(tree.map((b) => b.kind), ["heading", "paragraph", "list", "paragraph", "code"]);
  assert.match(flat(tree), /<img src=x onerror=alert\(1\)>/);
  assert.match(flat(markdown("a <b>x</b> c")!), /<b>x<\/b>/);
});

test("links lead only where they say, and images are never loaded", () => {
  const tree = markdown("[here](https://example.org/a) [bad](javascript:alert(1)) ![pic](https://evil.example/p.png) [d](data:text/html,x)")!;
  const pieces = (tree[0] as { of: Inline[] }).of;
  assert.deepEqual(pieces.filter((p) => p.kind === "link").map((p) => (p as { href: string; host: string }).host), ["example.org"]);
  assert.equal(pieces.filter((p) => p.kind === "image").length, 1);
  assert.equal(safe("vbscript:x"), null);
  assert.equal(safe("//evil.example"), null);
  assert.equal(safe("mailto:a@b.example")?.host, "a@b.example");
});

test("what is too large for Markdown is plain text", () => {
  for (const text of ["x".repeat(65 * 1024), "> ".repeat(20_000) + "x", "[".repeat(5_000), "*".repeat(30_000), "|a".repeat(1000) + "\n" + "|-".repeat(1000) + ("\n" + "|b".repeat(1000)).repeat(10)]) assert.equal(markdown(text), null, text.slice(0, 20));
});

test("hidden characters are shown", () => {
  assert.equal(visible("a\u202eb\u0000c\u200d\u{e0041}"), "a\\u{202e}b\\u{0}c\\u{200d}\\u{e0041}");
  assert.equal(visible("tab\tline\n"), "tab\tline\n");
  assert.equal(line("a\n b\u0007  c"), "a b\\u{7} c");
  assert.equal([...line("😀".repeat(300), 10)].length, 10);
});

test("addresses go there and back", () => {
  for (const hash of ["#/channels/abc?at=10&why", "#/now", "#/channels?q=a%2Fb&state=active&state=pending", "#/agents/a%2Fb"]) {
    const route = parse(hash);
    assert.equal(format(route.path, route.query), hash);
  }
  assert.deepEqual(parse("#/%zz").path, ["%zz"]);
});

test("waits between tries grow to 15 s and vary", () => {
  assert.equal(backoff(0, () => 1), 500);
  assert.equal(backoff(0, () => 0), 250);
  assert.equal(backoff(40, () => 1), 15_000);
});

test("words for spans and numbers", () => {
  assert.deepEqual([span(72_000), span(59_999), span(3_600_000), span(-5), span(200_000_000)], ["1 min 12 s", "59 s", "1 h", "0 s", "2 d 7 h"]);
  assert.deepEqual([count(9999), count(12_345), count(2_500_000)], ["9,999", "12.3 k", "2.5 M"]);
  assert.deepEqual([many(1, "event"), many(2, "event")], ["1 event", "2 events"]);
  assert.deepEqual([0, 1, 2].map(times), ["never", "once", "2 times"]);
  assert.deepEqual([initials("ada lovelace"), initials("x"), initials("")], ["AL", "X", "?"]);
  assert.ok(hue("abc") >= 0 && hue("abc") < 8 && hue("abc") === hue("abc"));
});

test("what is installed is what the lock file's hashes say", () => {
  const packages = (file: string) => (JSON.parse(readFileSync(join(import.meta.dirname, "..", file), "utf8")) as { packages: Record<string, { integrity?: string }> }).packages;
  const locked = packages("package-lock.json");
  const installed = Object.keys(packages("node_modules/.package-lock.json"));
  assert.ok(installed.length > 50, `${installed.length} packages`);
  assert.deepEqual(installed.filter((name) => !locked[name]), []);
  // Builds of tools for other systems too.
  for (const [name, entry] of Object.entries(locked)) assert.ok(!name || entry.integrity?.startsWith("sha512-"), `${name} has no hash`);
});

test("a window makes room at its other end", () => {
  const all = Array.from({ length: held.most }, (_, i) => envelope(i + 1001, "a", "app.note"));
  const full: held.Held = { events: all, length: 5000 };
  const before = held.prepend(held.room(full, 200, "before"), Array.from({ length: 200 }, (_, i) => envelope(i + 801, "a", "app.note")));
  assert.deepEqual([held.first(before), held.last(before), before.events.length], [801, 1800, held.most]);
  const behind = held.append(held.room(full, 200, "behind"), Array.from({ length: 200 }, (_, i) => envelope(i + 2001, "a", "app.note")));
  assert.deepEqual([held.first(behind), held.last(behind), behind.events.length], [1201, 2200, held.most]);
  assert.equal(held.room(before, 0, "before"), before);
});

test("a key approves or denies by the ids that the hub counts, or by a label's first word; never by a part of one", () => {
  const keys = (...choices: { id: string; label?: string }[]) => [meant("a", choices), meant("d", choices)];
  assert.deepEqual(keys({ id: "approve" }, { id: "approve_always" }, { id: "deny" }, { id: "deny_always" }), ["approve", "deny"]);
  assert.deepEqual(keys({ id: "deny_always" }, { id: "approve_always" }), ["approve_always", "deny_always"]);
  assert.deepEqual(keys({ id: "approve", label: "Do it now" }, { id: "later", label: "Not now" }), ["approve", ""]);
  assert.deepEqual(keys({ id: "1", label: "Approve now" }, { id: "2", label: "Discontinue" }, { id: "3", label: "No" }), ["1", "3"]);
  assert.deepEqual(keys({ id: "approve", label: "Deny" }, { id: "deny", label: "Approve" }), ["approve", "deny"]);
  assert.deepEqual(keys({ id: "red" }, { id: "green" }), ["", ""]);
  assert.deepEqual([{ id: "approve_always" }, { id: "x", label: "Go" }].map(labelOf), ["Approve always", "Go"]);
});

test("a branch is read alike from its events and from the envelopes of its channel", () => {
  const data: [string, Record<string, unknown>][] = [
    ["BRANCH_RUN_STARTED", { runtimeRunId: "r" }], ["TEXT_MESSAGE_START", { messageId: "m", role: "assistant" }], ["TEXT_DELTA", { messageId: "m", text: "It is " }], ["TEXT_DELTA", { messageId: "m", text: "done" }],
    ["REASONING_DELTA", { messageId: "m", text: "hm" }], ["TOOL_CALL_START", { callId: "c", name: "links" }], ["TOOL_CALL_ARGS", { callId: "c", argsJson: '{"rack":7}' }], ["TOOL_CALL_RESULT", { callId: "c", result: "1 of 2" }], ["TEXT_MESSAGE_END", { messageId: "m" }],
  ];
  const events = data.map(([type, fields], i) => ({ type, eventId: `e${i + 1}`, sequenceNumber: i + 1, ...fields }));
  const envelopes = data.map(([type, fields], i) => envelope(i + 1, "a", `hpd.${type}`, fields));
  const whole = read([], events);
  assert.deepEqual(whole.map((s) => [s.kind, s.text, s.done]), [["message", "It is done", true], ["reasoning", "hm", false], ["tool", "", true]]);
  assert.deepEqual([whole[2]!.arguments, whole[2]!.result], [{ rack: 7 }, "1 of 2"]);
  // The history up to any event, and the rest from the channel.
  for (let n = 0; n <= data.length; n++) assert.deepEqual(read(read([], events.slice(0, n)), envelopes.slice(n).map((e) => eventOf(e)!)), whole);
  assert.equal(eventOf(envelope(1, "a", "hpd.session")), null);
  assert.equal(eventOf(envelope(1, "a", "ag2.msg.text", { text: "x" })), null);
});

test("where filters select nothing of a page, the next pages are looked at, so many at most", async () => {
  // A hub that looks at 10 of 1,000 entries for a page, and shows 2 at most.
  const hub = (selects: number[]) => {
    const asked: (From & { first: boolean })[] = [];
    const ask = async (at: From, first: boolean) => {
      asked.push({ ...at, first });
      const back = at.before !== undefined;
      const from = back ? Number(at.before) - 1 : Number(at.after ?? -1) + 1;
      const seen: number[] = [];
      let last = from;
      for (let n = 0; n < 10 && seen.length < 2; n++) {
        last = back ? from - n : from + n;
        if (selects.includes(last)) seen.push(last);
      }
      const on = (back ? last > 0 : last < 999) ? String(last) : "";
      const start = seen[0] === undefined ? "" : String(seen[0]);
      const page = back ? { rows: seen.reverse(), prev: on, next: start } : { rows: seen, next: on, prev: at.after === undefined ? "" : start };
      return { ...page, total: first ? 7 : null, total_exact: false };
    };
    return { asked, from: (at: From) => further(at, ask, (page) => page.rows.length) };
  };
  const rare = hub([3, 5, 34, 99]);
  assert.deepEqual(await rare.from({}), { rows: [3, 5], next: "5", prev: "", total: 7, total_exact: false });
  assert.equal(rare.asked.length, 1, "a page with rows is enough");
  const on = await rare.from({ after: "5" });
  assert.deepEqual([on.rows, on.next, on.prev, on.total], [[34], "35", "34", 7]);
  assert.deepEqual(rare.asked.slice(1), [{ after: "5", first: true }, { after: "15", first: false }, { after: "25", first: false }], "counted once");
  const back = await rare.from({ before: "99" });
  assert.deepEqual([back.rows, back.next], [[34], "34"]);
  const deep = hub([205]);
  assert.deepEqual((await deep.from({})).rows, [205]);
  assert.equal((await deep.from({})).prev, "", "there is nothing before it");
  deep.asked.length = 0;
  assert.deepEqual((await deep.from({ before: "205" })).rows, [205], "back leads to the beginning, and from there onward");
  const none = hub([]);
  const far = await none.from({});
  assert.deepEqual([far.rows, far.next], [[], "259"], "it says that there is more");
  assert.equal(none.asked.length, 26);
});
