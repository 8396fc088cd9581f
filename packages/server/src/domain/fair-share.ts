/**
 * How many more may be taken, and of whom none. Nobody holds more than three quarters of the places: a long queue of
 * one never keeps another out.
 */
export function fairShare(holders: string[], places: number): { most: number; saturated: string[] } {
  const share = Math.max(1, Math.floor(places * 0.75))
  const counts = new Map<string, number>()
  for (const holder of holders) counts.set(holder, (counts.get(holder) ?? 0) + 1)
  const saturated = [...counts.keys()].filter((holder) => counts.get(holder)! >= share)
  const largest = Math.max(0, ...[...counts.values()].filter((count) => count < share))
  return { saturated, most: Math.min(places - holders.length, share - largest) }
}
