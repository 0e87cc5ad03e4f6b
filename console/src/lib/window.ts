// The part of a channel's log that the page holds: one run of envelopes without a
// gap, of bounded size. It slides as the reader scrolls. Pure.
import type { Envelope } from "./types.ts";

export const most = 1000;

export interface Held {
  readonly events: readonly Envelope[];
  /** How many were dropped from its beginning and its end when it slid. */
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

/** Adds events before the first. */
export function prepend(h: Held, events: readonly Envelope[]): Held {
  const to = first(h);
  const fresh = events.filter((e) => e.sequence < to);
  return { events: [...fresh, ...h.events].slice(0, most), length: h.length };
}
