// Times and numbers as people read them.

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
const dated = new Intl.DateTimeFormat(undefined, { year: "numeric", month: "short", day: "2-digit", hour: "2-digit", minute: "2-digit", hour12: false });

/** The local clock today, with the date before that. */
export function when(at: string | number, now: number): string {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return "";
  return date.toDateString() === new Date(now).toDateString() ? clock.format(date) : dated.format(date);
}

/** The exact instant, for title. */
export function exactly(at: string | number): string {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? "" : date.toISOString().replace("T", " ").replace("Z", " UTC");
}

/** A span such as "1 min 12 s". */
export function span(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return seconds % 60 ? `${minutes} min ${seconds % 60} s` : `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  const days = Math.floor(hours / 24);
  return hours % 24 ? `${days} d ${hours % 24} h` : `${days} d`;
}

const grouped = new Intl.NumberFormat("en");

/** A number with separators; from 10,000 on as 12.3 k. */
export function count(n: number): string {
  if (n < 10_000) return grouped.format(n);
  for (const [size, unit] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]] as const) {
    if (n >= size) return `${(n / size).toFixed(1)} ${unit}`;
  }
  return grouped.format(n);
}

export function bytes(n: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  while (n >= 1024 && i < units.length - 1) {
    n /= 1024;
    i++;
  }
  return `${i === 0 ? n : n.toFixed(1)} ${units[i]}`;
}

/** The word with its number: 1 event, 2 events. */
export function many(n: number, one: string, more = one + "s"): string {
  return `${count(n)} ${n === 1 ? one : more}`;
}

/** How often: never, once, 2 times. */
export function times(n: number): string {
  return n === 0 ? "never" : n === 1 ? "once" : `${count(n)} times`;
}

export function short(id: string): string {
  return id.slice(-6);
}
