/** Repeats `probe` until it returns a truthy value. The limit is long enough for a busy machine. */
export async function eventually<T>(
  probe: () => Promise<T | null | undefined | false> | T | null | undefined | false,
  withinMs = 60_000,
): Promise<T> {
  const until = performance.now() + withinMs
  for (;;) {
    const found = await probe()
    if (found) return found
    if (performance.now() > until) throw new Error(`the condition was not met within ${withinMs} ms`)
    await new Promise((resolve) => setTimeout(resolve, 15))
  }
}
