// A branch's events as what a person reads: messages, reasoning, tool calls. Pure.
import type { Envelope } from "./types.ts";

export interface BranchEvent {
  type: string;
  sequenceNumber?: number;
  timestamp?: string;
  [key: string]: unknown;
}

/** An envelope of a branch's channel as the event that it is; null if it is none. */
export function eventOf(e: Pick<Envelope, "event_type" | "event_data" | "envelope_id">): BranchEvent | null {
  const type = /^hpd\.([A-Z_]+)$/.exec(e.event_type)?.[1];
  return type ? { ...e.event_data, type, eventId: e.envelope_id } : null;
}

export interface Spoken {
  key: string;
  kind: "message" | "reasoning" | "tool" | "note";
  role: string;
  text: string;
  done: boolean;
  name?: string;
  arguments?: unknown;
  result?: unknown;
}

const string = (value: unknown): string => (typeof value === "string" ? value : "");

/** A text that is JSON as what it says; anything else as it is. */
function parsed(value: unknown): unknown {
  try {
    return typeof value === "string" ? JSON.parse(value) : value;
  } catch {
    return value;
  }
}

/** Adds events to what was read before; the list is new, its entries too. */
export function read(before: readonly Spoken[], events: readonly BranchEvent[]): Spoken[] {
  const out = before.map((s) => ({ ...s }));
  const by = new Map(out.map((s) => [s.key, s]));
  const at = (key: string, make: () => Omit<Spoken, "key">): Spoken => {
    let found = by.get(key);
    if (!found) {
      found = { key, ...make() };
      by.set(key, found);
      out.push(found);
    }
    return found;
  };
  for (const e of events) {
    const id = string(e.messageId) || string(e.eventId);
    switch (e.type) {
      case "TEXT_MESSAGE_START":
      case "TEXT_DELTA":
      case "TEXT_MESSAGE_END": {
        const s = at(`m${id}`, () => ({ kind: "message", role: string(e.role) || "assistant", text: "", done: false }));
        s.text += string(e.text) || string(e.delta);
        s.done ||= e.type === "TEXT_MESSAGE_END";
        break;
      }
      case "REASONING_MESSAGE_START":
      case "REASONING_DELTA":
      case "REASONING_MESSAGE_END": {
        const s = at(`r${id}`, () => ({ kind: "reasoning", role: "assistant", text: "", done: false }));
        s.text += string(e.text) || string(e.delta);
        s.done ||= e.type === "REASONING_MESSAGE_END";
        break;
      }
      case "TOOL_CALL_START":
      case "TOOL_CALL_ARGS":
      case "TOOL_CALL_END":
      case "TOOL_CALL_RESULT": {
        const s = at(`t${string(e.callId)}`, () => ({ kind: "tool", role: "tool", text: "", done: false }));
        if (string(e.name)) s.name = string(e.name);
        if (e.argsJson !== undefined || e.arguments !== undefined) s.arguments = parsed(e.argsJson ?? e.arguments);
        if (e.result !== undefined) s.result = e.result;
        s.done ||= e.type === "TOOL_CALL_RESULT";
        break;
      }
      case "MESSAGE_STARTED":
        at(`m${id}`, () => ({ kind: "message", role: string(e.role) || "user", text: "", done: false }));
        break;
      case "CONTENT_ADDED": {
        const content = (e.content ?? {}) as Record<string, unknown>;
        at(`m${id}`, () => ({ kind: "message", role: "user", text: "", done: false })).text += string(content.text);
        break;
      }
      case "MESSAGE_COMPLETED":
        at(`m${id}`, () => ({ kind: "message", role: "user", text: "", done: false })).done = true;
        break;
      default:
        if (/_(ERROR|FAILED)$/.test(e.type)) at(`n${string(e.eventId)}`, () => ({ kind: "note", role: "", text: `${e.type.toLowerCase().replaceAll("_", " ")}: ${string(e.message) || string(e.errorMessage)}`, done: true }));
    }
  }
  return out;
}
