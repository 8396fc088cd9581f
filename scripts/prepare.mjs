// Runs after `npm ci` in a checkout: makes git use this repository's hooks. Does nothing outside a checkout.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { root } from './install.mjs'

if (existsSync(`${root}/.git`)) {
  spawnSync('git', ['config', 'core.hooksPath', '.githooks'], { cwd: root, stdio: 'inherit' })
}
