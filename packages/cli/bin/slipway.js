#!/usr/bin/env node
import { existsSync } from 'node:fs'

const bundle = new URL('../dist/slipway.js', import.meta.url)

if (existsSync(bundle)) {
  await import(bundle.href)
} else {
  console.error('slipway: not built yet. `npm start` and `npm test` build it.')
  process.exitCode = 1
}
