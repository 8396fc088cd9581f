/** Looks until `probe` returns something; the bound is for failures alone, also on a machine with much else to do. */
export async function eventually<T>(
  probe: () => Promise<T | null | undefined | false> | T | null | undefined | false,
  withinMs = 60_000,
): Promise<T> {
  const until = performance.now() + withinMs
  for (;;) {
    const found = await probe()
    if (found) return found
    if (performance.now() > until) throw new Error(`it did not happen within ${withinMs} ms`)
    await new Promise((resolve) => setTimeout(resolve, 15))
  }
}
