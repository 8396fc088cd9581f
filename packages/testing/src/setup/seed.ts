import fc from 'fast-check'

// `vitest.config.ts` says which. A test may still name a seed of its own.
fc.configureGlobal({ seed: Number(process.env.SLIPWAY_SEED) })
