#!/usr/bin/env node
import { existsSync } from 'node:fs'

const bundle = new URL('../dist/main.js', import.meta.url)
if (existsSync(bundle)) await import(bundle.href)
else {
  console.error('slipway-server: not built yet: run npm start once')
  process.exitCode = 1
}
