#!/usr/bin/env -S node --heap-growing-percent=25 --initial-old-space-size=64
// The flags keep the process near the memory that it needs (docs/performance.md); `npm start` has the same.
import { existsSync } from 'node:fs'

const bundle = new URL('../dist/main.js', import.meta.url)
if (existsSync(bundle)) await import(bundle.href)
else {
  console.error('slipway-server: not built yet: run npm start once')
  process.exitCode = 1
}
