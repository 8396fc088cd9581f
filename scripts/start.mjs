// npm start: installs and builds what is missing or out of date, then runs the server in this process, so
// that signals reach it.
import { build } from './build.mjs'
import { ensureInstalled } from './install.mjs'

ensureInstalled('run')
await build()
await import('../packages/server/dist/main.js')
