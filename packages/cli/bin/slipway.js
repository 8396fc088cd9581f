#!/usr/bin/env node
import { existsSync, readFileSync } from 'node:fs'
import module from 'node:module'

const bundle = new URL('../dist/slipway.js', import.meta.url)
const words = process.argv.slice(2)

if (words.length === 1 && ['--version', '-V'].includes(words[0])) {
  // Scripts and prompts ask for this often, so nothing else is loaded.
  const manifest = readFileSync(new URL('../package.json', import.meta.url), 'utf8')
  console.log(JSON.parse(manifest).version)
} else if (existsSync(bundle)) {
  // From Node 22 on, the compiled code is cached between runs.
  module.enableCompileCache?.()
  await import(bundle.href)
} else {
  console.error('slipway: not built yet. `npm start` and `npm test` build it.')
  process.exitCode = 1
}
