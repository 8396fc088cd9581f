// npm run check: runs all static checks, and prints one line for each.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { ensureInstalled, root } from './install.mjs'

const tsc = 'node_modules/typescript/bin/tsc'

/** Each check is a Node script with its arguments. It is skipped unless every file in `when` exists. */
const checks = [
  { name: 'types', script: [tsc, '-p', '.', '--noEmit'] },
  {
    name: 'types of the console',
    script: [tsc, '-p', 'packages/console', '--noEmit'],
    when: ['packages/console/tsconfig.json'],
  },
  { name: 'lint and format', script: ['node_modules/@biomejs/biome/bin/biome', 'ci', '--colors=off', '.'] },
  { name: 'package lock', script: ['scripts/lock.mjs'] },
  { name: 'words', script: ['scripts/words.mjs'] },
  { name: 'CLI reference', script: ['scripts/generate-cli-docs.mjs', '--check'] },
  { name: 'Terraform reference', script: ['scripts/generate-terraform-docs.mjs', '--check'] },
  { name: 'generated files', script: ['scripts/generate.mjs', '--check'], when: ['scripts/generate.mjs'] },
  { name: 'OpenAPI rules', script: ['node_modules/@redocly/cli/bin/cli.js', 'lint', 'openapi.json'] },
]

/** Ensures that the checks send nothing over the network. */
const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' }

ensureInstalled('all')
for (const { name, script, when = [] } of checks) {
  if (!when.every((path) => existsSync(join(root, path)))) continue
  const startedAt = performance.now()
  const { status, stdout, stderr } = spawnSync(process.execPath, script, { cwd: root, env, encoding: 'utf8' })
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
  console.log(`${status === 0 ? 'ok' : 'FAILED'}  ${name} (${seconds} s)`)
  if (status === 0) continue
  process.exitCode = 1
  console.log(`${stdout}${stderr}`.trimEnd())
}
