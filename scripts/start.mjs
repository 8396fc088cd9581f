// npm start: installs and builds what is out of date, then becomes the server, so that signals reach it.
import { build } from './build.mjs'
import { ensureInstalled } from './install.mjs'

ensureInstalled()
await build()
await import('../packages/server/dist/main.js')
