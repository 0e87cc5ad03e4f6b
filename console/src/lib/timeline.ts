// A channel's envelopes as rows of a timeline: headings where the speaker
// changes, words, and bookkeeping folded to one line. Pure.
import type { Envelope } from "./types.ts";

export type Item =
  | { kind: "turn"; key: string; sequence: number; sender: string; at: string }
  | { kind: "event"; key: string; envelope: Envelope; says: Said }
  | { kind: "books"; key: string; envelopes: Envelope[]; says: string };

export interface Said {
  /** The words, as Markdown. */
  text: string;
  /** What it is, where it is not plain words. */
  chip: string;
  /** Whom it hands over to. */
  target?: string;
  /** A reason given with it. */
  reason?: string;
}

const names: Record<string, string> = {
  "ag2.channel.invite": "invited",
  "ag2.channel.invite.ack": "accepted",
  "ag2.channel.invite.reject": "declined",
  "ag2.channel.opened": "opened",
  "ag2.channel.closed": "closed",
  "ag2.channel.expired": "expired",
  "ag2.channel.expectation_violated": "expectation not met",
  "ag2.context.set": "context",
  "ag2.task.started": "task started",
  "ag2.task.progress": "task progress",
  "ag2.task.completed": "task completed",
  "ag2.task.failed": "task failed",
  "ag2.task.expired": "task expired",
  "ag2.task.cancelled": "task cancelled",
  "ag2.task.cancel_request": "cancel asked",
};

const folded = new Set(["ag2.channel.invite", "ag2.channel.invite.ack", "ag2.channel.opened", "ag2.task.progress", "agh.join", "agh.leave"]);

/** Whether an envelope only keeps the books. */
export function isBookkeeping(e: Envelope): boolean {
  return folded.has(e.event_type) || /^hpd\.(TEXT_MESSAGE_(START|END)|REASONING_MESSAGE_(START|END)|MESSAGE_TURN_|BRANCH_RUN_|AGENT_TURN_|ITERATION_|STATE_|SESSION_)/.test(e.event_type);
}

/** A type in a word a person knows. */
export function called(type: string): string {
  return names[type] ?? type.replace(/^(ag2|agh|hpd|parley)\./, "").replaceAll(/[._]/g, " ").toLowerCase();
}

function string(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** What an envelope says. */
export function said(e: Envelope): Said {
  const data = e.event_data ?? {};
  if (e.event_type === "ag2.msg.text") return { text: string(data.text), chip: "" };
  if (e.event_type === "ag2.packet") return packet(data);
  if (e.event_type === "ag2.context.set") return { text: assignments(data), chip: "context" };
  const text = string(data.text) || string(data.body) || string(data.delta) || string(data.content) || string(data.message) || string(data.title) || string(data.reason) || string(data.summary);
  return { text, chip: called(e.event_type) };
}

function packet(data: Record<string, unknown>): Said {
  const routing = (data.routing ?? {}) as Record<string, unknown>;
  const kind = string(routing.kind);
  const body = data.body;
  const said: Said = {
    text: typeof body === "string" ? body : body === undefined || body === null ? "" : "```\n" + JSON.stringify(body, null, 1) + "\n```",
    chip: kind === "text" || kind === "" ? "" : kind,
  };
  if (string(routing.target)) said.target = string(routing.target);
  if (string(routing.reason)) said.reason = string(routing.reason);
  return said;
}

function assignments(data: Record<string, unknown>): string {
  const set = Object.entries((data.set ?? {}) as Record<string, unknown>).map(([key, value]) => `${key} = ${JSON.stringify(value)}`);
  const gone = ((data.delete ?? []) as unknown[]).map((key) => `${String(key)} removed`);
  return "`" + [...set, ...gone].join(", ").replaceAll("`", "'") + "`";
}

/** Folds envelopes into rows. Neighbours in a turn share their heading. */
export function rows(envelopes: readonly Envelope[]): Item[] {
  const out: Item[] = [];
  let speaker = "";
  for (const e of envelopes) {
    const last = out[out.length - 1];
    if (isBookkeeping(e)) {
      if (last?.kind === "books") last.envelopes.push(e);
      else out.push({ kind: "books", key: `b${e.sequence}`, envelopes: [e], says: "" });
      continue;
    }
    if (e.sender_id !== speaker) {
      out.push({ kind: "turn", key: `t${e.sequence}`, sequence: e.sequence, sender: e.sender_id, at: e.created_at });
      speaker = e.sender_id;
    }
    out.push({ kind: "event", key: `e${e.sequence}`, envelope: e, says: said(e) });
  }
  for (const item of out) if (item.kind === "books") item.says = summary(item.envelopes);
  return out;
}

function summary(envelopes: Envelope[]): string {
  const counts = new Map<string, number>();
  for (const e of envelopes) counts.set(called(e.event_type), (counts.get(called(e.event_type)) ?? 0) + 1);
  return [...counts].map(([name, n]) => (n > 1 ? `${n} ${name}` : name)).join(", ");
}

export interface Thread {
  /** What led to it, the first first. */
  causes: Envelope[];
  replies: Envelope[];
  /** The id of the cause that is not known. */
  missing: string;
}

/** What an envelope answers, and what answers it, among those that are known. */
export function thread(e: Envelope, known: ReadonlyMap<string, Envelope>): Thread {
  const causes: Envelope[] = [];
  const seen = new Set([e.envelope_id]);
  let missing = "";
  for (let id = e.causation_id; id && !seen.has(id); ) {
    seen.add(id);
    const cause = known.get(id);
    if (!cause) {
      missing = id;
      break;
    }
    causes.unshift(cause);
    id = cause.causation_id;
  }
  return { causes, missing, replies: [...known.values()].filter((k) => k.causation_id === e.envelope_id).sort((a, b) => a.sequence - b.sequence) };
}
