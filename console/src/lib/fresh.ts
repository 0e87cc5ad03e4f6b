import type { Row } from "./types.ts";

/** How many rows of a new page are not on the one that is shown. Pure. */
export function newRows(shown: readonly Pick<Row, "channel_id">[], now: readonly Pick<Row, "channel_id">[]): number {
  const known = new Set(shown.map((r) => r.channel_id));
  return now.filter((r) => !known.has(r.channel_id)).length;
}
