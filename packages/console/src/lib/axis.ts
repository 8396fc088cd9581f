/** The maximum number of steps on the axis. */
const maxSteps = 5

/** Returns the ticks of an axis from 0 to a tick above the largest value. Things that are counted have no tick at 2.5. */
export function ticksFor(largest: number, isCount = false): number[] {
  if (!(largest > 0)) return [0, 1]
  const power = 10 ** Math.floor(Math.log10(largest / maxSteps))
  const step = (isCount ? [1, 2, 5, 10] : [1, 2, 2.5, 5, 10])
    .map((each) => each * power)
    .find((each) => each * maxSteps >= largest)!
  return Array.from({ length: Math.ceil(largest / step) + 1 }, (_, index) => index * step)
}
