// The hub looks at some thousand entries for a page of a list: where filters select none
// of them, the next are looked at. Pure but for what it is given to ask with.

interface Part { next?: string | undefined; prev?: string | undefined; total?: number | null; total_exact?: boolean }
export interface From { after?: string | undefined; before?: string | undefined }

/** How many empty pages are looked through; the page then says that there is more. */
const most = 25;

/** The first page from a place that is not empty, looking onward, or back from before. */
export async function further<P extends Part>(from: From, ask: (at: From, first: boolean) => Promise<P>, entries: (page: P) => number): Promise<P> {
  const first = await ask(from, true);
  const on = (page: P) => (from.before ? page.prev : page.next);
  let found = first;
  for (let n = 0; n < most && entries(found) === 0 && on(found); n++) found = await ask(from.before ? { before: on(found) } : { after: on(found) }, false);
  if (found === first) return first;
  // There is nothing before what was found: back leads to the beginning.
  if (from.before && entries(found) === 0 && !found.prev) return further({}, ask, entries);
  return { ...found, prev: from.after || from.before ? found.prev : "", total: first.total, total_exact: first.total_exact };
}
