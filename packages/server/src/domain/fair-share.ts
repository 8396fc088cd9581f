/**
 * Returns how many more slots may be taken, and which holders may take none. A holder gets at most three quarters of the
 * slots, so that its long queue does not block others.
 */
export function fairShare(holders: string[], slots: number): { most: number; saturated: string[] } {
  const share = Math.max(1, Math.floor(slots * 0.75))
  const counts = new Map<string, number>()
  for (const holder of holders) counts.set(holder, (counts.get(holder) ?? 0) + 1)
  const saturated = [...counts.keys()].filter((holder) => counts.get(holder)! >= share)
  const largest = Math.max(0, ...[...counts.values()].filter((count) => count < share))
  return { saturated, most: Math.min(slots - holders.length, share - largest) }
}
