/** The number of random cases of a suite in `npm test`, and in `npm run test:long`. */
const cases = {
  modelBatches: [6, 25],
  fuzzBatches: [160, 630],
  chaosFaults: [20, 80],
  /** How often two groups compete for the same hosts. */
  groupRaces: [3, 100],
  /** How often two requests compete for the last GPU, in the placement alone and over HTTP. */
  placementRaces: [250, 1_000],
  requestRaces: [20, 60],
  /** How often a process is killed in the middle of writes. */
  kills: [3, 10],
} satisfies Record<string, [short: number, long: number]>

/** The count for this run. `npm run test:long` sets SLIPWAY_LONG. */
export const countOf = (name: keyof typeof cases): number => cases[name][process.env.SLIPWAY_LONG ? 1 : 0]
