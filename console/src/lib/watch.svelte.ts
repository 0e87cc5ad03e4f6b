// The one stream of this tab. Screens name what they watch; the stream resumes
// by itself, without a gap, and ends while nobody looks.
import { backoff } from "./backoff.ts";
import { call, get, Refused, send, words } from "./api.ts";
import { EventReader, type ServerEvent } from "./sse.ts";
import type { Summary } from "./types.ts";

export type Status =
  | { kind: "connecting"; slow: boolean }
  | { kind: "live" }
  | { kind: "lost"; since: number; retryAt: number; why: string };

type Take = (event: string, body: any) => void;

interface Exact {
  topic: string;
  position: string;
  take: Take;
}

let status = $state.raw<Status>({ kind: "connecting", slow: false });
let away = $state.raw<{ events: number; at: number } | null>(null);
let ticking = $state(Date.now());
let stoppedAt = 0;

const exact = new Set<Exact>();
const conflated = new Map<string, Set<Take>>();

let skew = 0;
let keepAlive = 15_000;
let id = ""; // of the watch, for PUT
let lastID = ""; // of the last event, for resuming
let openedWith = ""; // the exact topics of the open stream
let asked = ""; // the conflated topics that it was asked for
let abort: AbortController | null = null;
let tries = 0;
let paused = false;
let catchingUp = 0;
let helloAt = 0;

export const watch = {
  get status() {
    return status;
  },
  /** How many events came while the stream was away; null once it was told. */
  get away() {
    return away;
  },
  /** The hub's clock. It stands still while the stream is away. */
  get now() {
    return ticking;
  },
  /** Every event of a topic after a position, in order. */
  exactly(topic: string, position: string, take: Take): () => void {
    const entry = { topic, position, take };
    exact.add(entry);
    reopen();
    return () => {
      exact.delete(entry);
      reopen();
    };
  },
  /** The newest of a topic. */
  newest(topic: string, take: Take): () => void {
    const takers = conflated.get(topic) ?? new Set();
    takers.add(take);
    conflated.set(topic, takers);
    replace();
    return () => {
      takers.delete(take);
      if (takers.size === 0) conflated.delete(topic);
      replace();
    };
  },
  /** Tries again at once. */
  tryAgain(): void {
    tries = 0;
    begin();
  },
  start(): void {
    paused = false;
    if (resting) {
      rest();
      void ask();
    } else begin();
  },
  stop(): void {
    paused = true;
    clearInterval(asking);
    abort?.abort();
    abort = null;
  },
};

let reopening = false;
function reopen(): void {
  if (reopening) return;
  reopening = true;
  queueMicrotask(() => {
    reopening = false;
    if (!paused && topicsKey() !== openedWith) begin();
  });
}

let replacing = 0;
function replace(): void {
  clearTimeout(replacing);
  replacing = window.setTimeout(() => {
    const topics = [...conflated.keys()];
    if (!id || topics.join("\n") === asked) return; // a stream that opens asks for them
    asked = topics.join("\n");
    void send("PUT", `v1/watch/${encodeURIComponent(id)}`, { topics }).catch(() => begin());
  }, 50);
}

function topicsKey(): string {
  return [...exact].map((e) => e.topic).sort().join("\n");
}

function lose(why: string, atLeast = 0): void {
  id = "";
  const wait = Math.max(backoff(tries++), atLeast);
  const since = status.kind === "lost" ? status.since : watch.now;
  status = { kind: "lost", since, retryAt: Date.now() + wait, why };
  stoppedAt = since;
  clearTimeout(retry);
  retry = window.setTimeout(begin, wait);
}
let retry = 0;

function begin(): void {
  clearTimeout(retry);
  abort?.abort();
  abort = null;
  id = "";
  if (paused || resting) return;
  const mine = new AbortController();
  abort = mine;
  void run(mine).catch((err: unknown) => {
    if (abort !== mine) return;
    if (err instanceof Refused && err.status === 401) return;
    lose(words(err), err instanceof Refused ? Math.min(60, err.retryAfter) * 1000 : 0);
  });
}

async function run(mine: AbortController): Promise<void> {
  const key = topicsKey();
  const resumes = key === openedWith && lastID !== "";
  openedWith = key;
  asked = [...conflated.keys()].join("\n");
  const topics = [...[...exact].map((e) => `${e.topic}@${e.position}`), ...conflated.keys()];
  const slow = setTimeout(() => {
    if (abort === mine && status.kind !== "live") status = status.kind === "connecting" ? { kind: "connecting", slow: true } : status;
  }, 3000);
  let answer: Response;
  try {
    answer = await call("GET", "v1/watch", {
      query: { topic: topics },
      signal: mine.signal,
      headers: { Accept: "text/event-stream", ...(resumes ? { "Last-Event-ID": lastID } : {}) },
    });
  } finally {
    clearTimeout(slow);
  }
  const stream = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
  const reader = new EventReader();
  for (;;) {
    // A proxy can hold a dead stream open: silence ends it.
    const quiet = setTimeout(() => mine.abort(new Error("The stream fell silent.")), 2 * keepAlive);
    let part: ReadableStreamReadResult<string>;
    try {
      part = await stream.read();
    } finally {
      clearTimeout(quiet);
    }
    if (part.done) throw new Error("The hub ended the stream.");
    for (const event of reader.push(part.value)) dispatch(event);
  }
}

function dispatch(event: ServerEvent): void {
  if (event.id) lastID = event.id;
  let body: any;
  try {
    body = JSON.parse(event.data);
  } catch {
    return;
  }
  switch (event.event) {
    case "hello":
      hello(body);
      return;
    case "bye":
      throw new Error(body.reason === "revoked" ? "Your key was revoked." : body.reason === "slow" ? "This page fell behind." : "The hub is shutting down.");
  }
  const topic: string = body.topic ?? "";
  for (const entry of exact) {
    if (entry.topic !== bare(topic)) continue;
    if (typeof body.position === "string") entry.position = body.position;
    if (catchingUp && Date.parse(body.created_at ?? body.at ?? body.asked_at ?? "") <= helloAt) away = { events: (away?.events ?? 0) + 1, at: Date.now() };
    entry.take(event.event, body);
  }
  // A conflated topic is told by its kind: rows for rows:ID,ID.
  for (const [name, takers] of conflated) if (name === topic || name.startsWith(`${topic}:`)) for (const take of takers) take(event.event, body);
}

function bare(topic: string): string {
  const at = topic.indexOf("@");
  return at < 0 ? topic : topic.slice(0, at);
}

function hello(body: any): void {
  id = String(body.watch ?? body.id ?? "");
  helloAt = Date.parse(body.now);
  skew = helloAt - Date.now();
  const seconds = typeof body.keep_alive === "number" ? body.keep_alive : 15;
  keepAlive = Math.max(1000, seconds * 1000);
  const wasLost = status.kind === "lost";
  tries = 0;
  status = { kind: "live" };
  tick();
  replace(); // what was named while it opened
  if (wasLost) {
    catchingUp = 1;
    away = { events: 0, at: Date.now() };
    setTimeout(() => {
      catchingUp = 0;
      away = null;
    }, 3000);
  }
}

// One timer a second, and none while nobody looks or nothing is live.
let timer = 0;
function tick(): void {
  clearInterval(timer);
  timer = 0;
  if (document.hidden) return;
  ticking = status.kind === "live" ? Date.now() + skew : stoppedAt || ticking;
  timer = window.setInterval(() => {
    if (status.kind === "live") ticking = Date.now() + skew;
  }, 1000);
}

// A hidden tab ends its stream after a while, and asks for the summary instead: a
// browser opens six connections to a plain-HTTP hub, and a stream takes one. When
// several tabs are left behind one after another, only the last two wait so long.
const patience = 30_000;
const kept = 2;
const tabs = new BroadcastChannel(`parley-tabs ${new URL("..", document.baseURI).pathname}`);
let resting = document.hidden; // whether the stream is ended because nobody looks
let hiding = 0;
let asking = 0;
let leftSince = 0; // tabs that were left after this one

function rest(): void {
  clearTimeout(hiding);
  resting = true;
  abort?.abort();
  abort = null;
  id = "";
  clearTimeout(retry);
  if (status.kind === "live") status = { kind: "connecting", slow: false };
  clearInterval(asking);
  if (!paused) asking = window.setInterval(ask, patience);
}

tabs.onmessage = () => {
  if (document.hidden && !resting && ++leftSince >= kept) rest();
};

document.addEventListener("visibilitychange", () => {
  clearTimeout(hiding);
  clearInterval(asking);
  tick();
  if (document.hidden) {
    leftSince = 0;
    tabs.postMessage("left");
    hiding = window.setTimeout(rest, patience);
    return;
  }
  resting = false;
  if (!abort && !paused) begin();
});

async function ask(): Promise<void> {
  try {
    const summary = await get<Summary>("v1/summary");
    for (const take of conflated.get("summary") ?? []) take("summary", summary);
  } catch {
    // The title keeps its last number.
  }
}

addEventListener("online", () => {
  if (status.kind === "lost" && !paused) watch.tryAgain();
});
