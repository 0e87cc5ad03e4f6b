/** How long to wait before the n-th try: 0.5 s to 15 s, with jitter. */
export function backoff(tries: number, random: () => number = Math.random): number {
  const whole = Math.min(15_000, 500 * 2 ** Math.min(tries, 10));
  return Math.round(whole * (0.5 + random() / 2));
}
