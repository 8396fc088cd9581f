import fc from 'fast-check'

// `vitest.config.ts` sets the seed. A test may still use a seed of its own.
fc.configureGlobal({ seed: Number(process.env.SLIPWAY_SEED) })
