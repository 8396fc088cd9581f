// Runs after `npm ci` in a checkout: lets git use the hooks of this repository. Elsewhere it does nothing.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { root } from './install.mjs'

if (existsSync(`${root}/.git`)) {
  spawnSync('git', ['config', 'core.hooksPath', '.githooks'], { cwd: root, stdio: 'inherit' })
}
