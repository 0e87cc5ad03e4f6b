// The part of a channel's log that the page holds: one run of envelopes without a
// gap, of bounded size. It slides as the reader scrolls. Pure.
import type { Envelope } from "./types.ts";

export const most = 1000;

export interface Held {
  readonly events: readonly Envelope[];
  /** How many events the channel has. */
  readonly length: number;
}

export const nothing: Held = { events: [], length: 0 };

export function first(h: Held): number {
  return h.events[0]?.sequence ?? 0;
}

export function last(h: Held): number {
  return h.events[h.events.length - 1]?.sequence ?? 0;
}

/** Whether the newest event of the channel is held. */
export function atEnd(h: Held): boolean {
  return last(h) >= h.length;
}

/** Adds events behind the last; what is known already is left out. */
export function append(h: Held, events: readonly Envelope[], length = 0): Held {
  const from = last(h);
  const fresh = events.filter((e) => e.sequence > from);
  const all = fresh.length ? [...h.events, ...fresh] : h.events;
  return { events: all.slice(-most), length: Math.max(h.length, length, fresh[fresh.length - 1]?.sequence ?? 0) };
}

/** Forgets what is behind a sequence: history was restored to there. */
export function cut(h: Held, sequence: number): Held {
  return { events: h.events.filter((e) => e.sequence <= sequence), length: sequence };
}

/** Makes room for more events before the first, or behind the last. A list on the page
 * sees what is dropped at one end and what is added at the other as two changes, and
 * keeps its place in both. */
export function room(h: Held, more: number, where: "before" | "behind"): Held {
  const over = h.events.length + more - most;
  if (over <= 0) return h;
  return { events: where === "before" ? h.events.slice(0, -over) : h.events.slice(over), length: h.length };
}

/** Adds events before the first. */
export function prepend(h: Held, events: readonly Envelope[]): Held {
  const to = first(h);
  const fresh = events.filter((e) => e.sequence < to);
  return { events: [...fresh, ...h.events].slice(0, most), length: h.length };
}
