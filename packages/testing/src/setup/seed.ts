import fc from 'fast-check'

// `vitest.config.ts` sets the seed. A test can still use its own seed.
fc.configureGlobal({ seed: Number(process.env.SLIPWAY_SEED) })
