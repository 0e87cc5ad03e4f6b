// One channel as the page holds it: its metadata, a window of its log that follows
// the stream, and the path it took.
import { tick } from "svelte";
import { get } from "./api.ts";
import { learn } from "./people.svelte.ts";
import type { Channel, Envelope, EventPage, PathPage, Step } from "./types.ts";
import { watch } from "./watch.svelte.ts";
import * as held from "./window.ts";

const page = 200;

export class ChannelLog {
  meta = $state.raw<Channel | null>(null);
  err = $state.raw<unknown>(null);
  log = $state.raw<held.Held>(held.nothing);
  /** Text that streams in and is not stored yet, by sender. */
  live = $state.raw(new Map<string, string>());
  /** Where history was restored to, and how many events that were shown are gone. */
  gap = $state.raw<{ after: number; lost: number } | null>(null);
  /** Whether the newest are shown as they come. */
  following = $state(true);
  unseen = $state(0);
  busy = $state(false);
  /** Set while older events are put before the first. */
  shifted = $state(false);
  steps = $state.raw<Step[]>([]);

  readonly id: string;
  #stop: (() => void) | null = null;
  #pending: Envelope[] = [];
  #told = 0; // the last sequence that the stream told, or that there was when it began
  #frame = 0;
  #refresh = 0;
  #refreshed = 0; // when metadata and path were asked for because events came

  constructor(id: string) {
    this.id = id;
  }

  async open(at?: number): Promise<void> {
    try {
      await this.refresh();
      await this.jump(at ?? this.meta!.length);
      this.#told = at === undefined ? held.last(this.log) : this.meta!.length;
      this.err = null;
    } catch (err) {
      this.err = err;
      return;
    }
    this.#stop?.();
    this.#stop = watch.exactly(`channel:${this.id}`, this.meta!.position, (event, body) => this.#take(event, body));
    void this.path();
  }

  close(): void {
    this.#stop?.();
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#refresh);
  }

  async refresh(): Promise<void> {
    const meta = await get<Channel>(`v1/channels/${this.id}`);
    learn(Object.entries(meta.names ?? {}));
    this.meta = meta;
    this.log = { events: this.log.events, length: Math.max(this.log.length, meta.length) };
  }

  /** The last turn up to a sequence, or the first one behind it. */
  async step(query: { before: number } | { after: number }, signal?: AbortSignal): Promise<Step | null> {
    return (await get<PathPage>(`v1/channels/${this.id}/path`, { ...query, limit: 1 }, signal)).steps[0] ?? null;
  }

  /** The envelope of an id, from what is held or from the hub. */
  async find(id: string): Promise<Envelope | null> {
    const known = this.log.events.find((e) => e.envelope_id === id);
    if (known) return known;
    const { events } = await get<EventPage>(`v1/channels/${this.id}/events`, { around: id, limit: 1 });
    return events.find((e) => e.envelope_id === id) ?? null;
  }

  async path(): Promise<void> {
    try {
      this.steps = (await get<PathPage>(`v1/channels/${this.id}/path`, { before: this.log.length + 1, limit: 200 })).steps;
    } catch {
      this.steps = [];
    }
  }

  /** Shows the log around a sequence: one request. */
  async jump(sequence: number): Promise<void> {
    if (this.log.events.length > 0 && sequence >= held.first(this.log) && sequence <= held.last(this.log)) return;
    this.busy = true;
    try {
      const length = this.meta!.length;
      const events = length === 0 ? [] : (await get<EventPage>(`v1/channels/${this.id}/events`, { around: Math.max(1, Math.min(sequence, length)), limit: page })).events;
      this.shifted = false;
      this.log = held.append({ events: [], length }, events, length);
    } finally {
      this.busy = false;
    }
  }

  async older(): Promise<void> {
    const first = this.log.events[0];
    if (this.busy || !first || first.sequence <= 1) return;
    this.busy = true;
    try {
      const got = await get<EventPage>(`v1/channels/${this.id}/events`, { before: first.position, limit: page });
      if (held.first(this.log) !== first.sequence) return; // somewhere else is looked at by now
      this.shifted = false;
      this.log = held.room(this.log, got.events.length, "before");
      await tick();
      this.shifted = true;
      this.log = held.prepend(this.log, got.events);
      if (!held.atEnd(this.log)) this.following = false;
    } finally {
      this.busy = false;
    }
  }

  async newer(): Promise<void> {
    const last = this.log.events[this.log.events.length - 1];
    if (this.busy || !last || held.atEnd(this.log)) return;
    this.busy = true;
    try {
      const got = await get<EventPage>(`v1/channels/${this.id}/events`, { after: last.position, limit: page });
      if (held.last(this.log) !== last.sequence) return;
      this.shifted = true;
      this.log = held.room(this.log, got.events.length, "behind");
      await tick();
      this.shifted = false;
      this.log = held.append(this.log, got.events);
      if (!got.more) this.#told = Math.min(this.#told, held.last(this.log));
    } finally {
      this.busy = false;
    }
  }

  /** Goes back to the newest. */
  async toEnd(): Promise<void> {
    this.unseen = 0;
    if (!held.atEnd(this.log)) {
      await this.refresh();
      await this.jump(this.meta!.length);
    }
    this.following = true;
  }

  #take(event: string, body: any): void {
    if (event === "gap") {
      this.#restored(body);
      return;
    }
    if (event === "live") {
      const data = body.envelope?.event_data ?? body.event_data ?? {};
      const sender = String(body.envelope?.sender_id ?? body.sender_id ?? "");
      const text = data.delta ?? data.text;
      if (sender && typeof text === "string") this.live = new Map(this.live).set(sender, ((this.live.get(sender) ?? "") + text).slice(-100_000));
      return;
    }
    if (event !== "envelope") return;
    this.#pending.push(body.envelope ?? body);
    // A burst is drawn once for each frame.
    if (!this.#frame) this.#frame = requestAnimationFrame(() => this.#flush());
  }

  /** What the stream begins with now is another history than the one shown. */
  #restored(body: { head?: string }): void {
    cancelAnimationFrame(this.#frame);
    this.#flush();
    const after = Number(/\d+$/.exec(body.head ?? "")?.[0] ?? 0);
    this.gap = { after, lost: Math.max(0, this.log.length - after) };
    this.log = held.cut(this.log, after);
    this.live = new Map();
    this.#told = after;
    void this.refresh().catch(() => {});
    void this.path();
  }

  #flush(): void {
    this.#frame = 0;
    const events = this.#pending;
    this.#pending = [];
    if (events.length === 0) return;
    const newest = events[events.length - 1]!.sequence;
    if (this.live.size > 0) {
      const live = new Map(this.live);
      for (const e of events) live.delete(e.sender_id);
      this.live = live;
    }
    // Whether the last event that the stream told is held. That the end is held is
    // not asked: metadata may have told of these events before they came.
    const joins = held.last(this.log) >= this.#told || events[0]!.sequence <= held.last(this.log) + 1;
    this.#told = newest;
    if (!this.following) this.unseen += events.length;
    // Nothing moves under whoever reads: what does not fit is fetched when it is scrolled to.
    const fits = this.following || this.log.events.length + events.length <= held.most;
    if (joins && fits) {
      this.shifted = false;
      this.log = held.append(this.log, events, newest);
    } else {
      this.log = { events: this.log.events, length: Math.max(this.log.length, newest) };
    }
    // Soon, and once a second while they keep coming.
    this.#refresh ||= window.setTimeout(() => {
      this.#refresh = 0;
      this.#refreshed = Date.now();
      void this.refresh().catch(() => {});
      void this.path();
    }, Math.max(250, this.#refreshed + 1000 - Date.now()));
  }
}
