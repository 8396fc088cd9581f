/** Yields results as they arrive, with at most `limit` calls at the same time. */
export async function* asCompleted<T, R>(
  items: T[],
  limit: number,
  work: (item: T) => Promise<R>,
): AsyncIterable<R> {
  const inProgress = new Map<T, Promise<{ item: T; result: R }>>()
  const waiting = [...items]
  while (waiting.length > 0 || inProgress.size > 0) {
    for (const item of waiting.splice(0, limit - inProgress.size))
      inProgress.set(
        item,
        work(item).then((result) => ({ item, result })),
      )
    const { item, result } = await Promise.race(inProgress.values())
    inProgress.delete(item)
    yield result
  }
}
