// A value that is asked for, asked again when what it depends on changes, and
// never overwritten by an older answer.

export class Loaded<T> {
  value = $state.raw<T | null>(null);
  err = $state.raw<unknown>(null);
  #run = 0;
  #abort: AbortController | null = null;
  #ask: (signal: AbortSignal) => Promise<T>;

  constructor(ask: (signal: AbortSignal) => Promise<T>) {
    this.#ask = ask;
  }

  async load(): Promise<void> {
    const run = ++this.#run;
    this.#abort?.abort();
    const abort = new AbortController();
    this.#abort = abort;
    try {
      const value = await this.#ask(abort.signal);
      if (run !== this.#run) return;
      this.value = value;
      this.err = null;
    } catch (err) {
      if (run === this.#run && !abort.signal.aborted) this.err = err;
    }
  }
}
