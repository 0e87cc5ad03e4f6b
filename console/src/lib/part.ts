// Parts of lists: of one that is here as a whole, and of one that is asked for with
// one entry more than is shown, which says whether it goes on.

export interface Part<T> {
  rows: T[];
  next: string | undefined;
  prev: string | undefined;
}

/** The part of a whole list that begins at a number. Pure. */
export function part<T>(all: readonly T[], from: number, size = 50): Part<T> {
  const at = Math.max(0, Math.min(from, all.length - 1)) || 0;
  return { rows: all.slice(at, at + size), next: at + size < all.length ? String(at + size) : undefined, prev: at > 0 ? String(Math.max(0, at - size)) : undefined };
}

/** What is shown of entries that were asked for after or before one, one more than fit. Pure. */
export function cut<T>(got: readonly T[], size: number, place: (item: T) => string, from: { after?: string | undefined; before?: string | undefined }): Part<T> {
  const more = got.length > size;
  const rows = from.before ? got.slice(-size) : got.slice(0, size);
  const first = rows[0] && place(rows[0]);
  const last = rows[rows.length - 1] && place(rows[rows.length - 1]!);
  return from.before ? { rows, prev: more ? first : undefined, next: last } : { rows, prev: from.after ? first : undefined, next: more ? last : undefined };
}
