// A reader of server-sent events. It takes text as it comes, cut anywhere, and
// gives whole events; comments count as a sign of life.

export interface ServerEvent {
  id: string;
  event: string;
  data: string;
}

export class EventReader {
  #rest = "";
  #atStart = true;
  #id = "";
  #event = "";
  #data: string[] = [];
  /** How many lines have come, comments included. */
  lines = 0;

  push(text: string): ServerEvent[] {
    const events: ServerEvent[] = [];
    let buffer = this.#rest + text;
    if (this.#atStart && buffer !== "") {
      if (buffer.startsWith("\uFEFF")) buffer = buffer.slice(1);
      this.#atStart = false;
    }
    let from = 0;
    for (;;) {
      let end = from;
      while (end < buffer.length && buffer[end] !== "\n" && buffer[end] !== "\r") end++;
      if (end >= buffer.length) break;
      // A CR at the end may be the first half of a CRLF.
      if (buffer[end] === "\r" && end + 1 === buffer.length) break;
      const line = buffer.slice(from, end);
      from = end + (buffer[end] === "\r" && buffer[end + 1] === "\n" ? 2 : 1);
      this.lines++;
      const event = this.#line(line);
      if (event) events.push(event);
    }
    this.#rest = buffer.slice(from);
    return events;
  }

  #line(line: string): ServerEvent | undefined {
    if (line === "") {
      const event = { id: this.#id, event: this.#event || "message", data: this.#data.join("\n") };
      const complete = this.#data.length > 0;
      this.#event = "";
      this.#data = [];
      return complete ? event : undefined;
    }
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const field = colon < 0 ? line : line.slice(0, colon);
    let value = colon < 0 ? "" : line.slice(colon + 1);
    if (value.startsWith(" ")) value = value.slice(1);
    if (field === "data") this.#data.push(value);
    else if (field === "event") this.#event = value;
    else if (field === "id" && !value.includes("\0")) this.#id = value;
    return;
  }
}
