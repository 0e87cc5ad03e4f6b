// One channel as the page holds it: its metadata, a window of its log that follows
// the stream, and the path it took.
import { get } from "./api.ts";
import { learn } from "./people.svelte.ts";
import type { Channel, Envelope, EventPage, Step } from "./types.ts";
import { watch } from "./watch.svelte.ts";
import * as held from "./window.ts";

const page = 200;

export class ChannelLog {
  meta = $state.raw<Channel | null>(null);
  err = $state.raw<unknown>(null);
  log = $state.raw<held.Held>(held.nothing);
  /** Text that streams in and is not stored yet, by sender. */
  live = $state.raw(new Map<string, string>());
  gap = $state("");
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

  async path(): Promise<void> {
    try {
      this.steps = (await get<{ steps: Step[] }>(`v1/channels/${this.id}/path`, { before: this.log.length + 1, limit: 200 })).steps;
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
      this.gap = String(body.reason ?? "History was restored here.");
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

  #flush(): void {
    this.#frame = 0;
    const events = this.#pending;
    this.#pending = [];
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
    if (joins) {
      this.shifted = false;
      this.log = held.append(this.log, events, newest);
    } else {
      this.log = { events: this.log.events, length: Math.max(this.log.length, newest) };
    }
    clearTimeout(this.#refresh);
    this.#refresh = window.setTimeout(() => {
      void this.refresh().catch(() => {});
      void this.path();
    }, 250);
  }
}
