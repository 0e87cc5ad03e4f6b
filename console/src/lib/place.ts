// Where a screen was scrolled to, for each step of the history: back and reload
// return there, a link begins at the top.

const kept = new Map<number, number>(JSON.parse(sessionStorage.getItem("parley-places") ?? "[]") as [number, number][]);
const most = 50;
const patience = 15_000; // a hub that is far away, or busy, takes its time
let at = 0;

/** The number of this step; a step without one is new. */
function step(): { at: number; known: boolean } {
  const known = typeof history.state?.at === "number";
  if (!known) history.replaceState({ at: Date.now() }, "");
  return { at: history.state.at as number, known };
}

export function keepPlace(node: HTMLElement): { destroy: () => void } {
  let frame = 0;
  const save = () => {
    if (frame) return; // it is on its way to where it was
    kept.delete(at);
    kept.set(at, node.scrollTop);
    while (kept.size > most) kept.delete(kept.keys().next().value!);
    sessionStorage.setItem("parley-places", JSON.stringify([...kept]));
  };
  const arrive = () => {
    cancelAnimationFrame(frame);
    frame = 0;
    const here = step();
    if (at === here.at) return;
    at = here.at;
    const wanted = here.known ? (kept.get(at) ?? 0) : 0;
    const until = performance.now() + patience; // what is scrolled to has to come first
    const go = () => {
      node.scrollTop = wanted;
      frame = node.scrollTop < wanted - 1 && performance.now() < until ? requestAnimationFrame(go) : 0;
    };
    go();
  };
  const leave = () => {
    cancelAnimationFrame(frame);
    frame = 0;
  };
  arrive();
  addEventListener("hashchange", arrive);
  node.addEventListener("scroll", save, { passive: true });
  const theirs = ["wheel", "touchstart", "pointerdown", "keydown"]; // whoever looks on moves by themselves
  for (const name of theirs) node.addEventListener(name, leave, { passive: true });
  return {
    destroy: () => {
      leave();
      removeEventListener("hashchange", arrive);
    },
  };
}
