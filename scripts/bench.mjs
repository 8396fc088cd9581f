// npm run bench [-- NAME] [flags]: builds and runs a benchmark from packages/*/bench, by default `service`.
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { build, externalPackages } from './build.mjs'
import { ensureInstalled, root } from './install.mjs'
import { exitWithMessage } from './phase.mjs'

ensureInstalled('all')
await build()
const esbuild = await import('esbuild')

/** The benchmarks, each with its package. */
const benches = {
  service: 'server',
  grow: 'server',
  docs: 'server',
  'vm-metrics': 'server',
  rest: 'server',
  qemu: 'server',
  incus: 'server',
  'incus-fleet': 'server',
  startup: 'cli',
  console: 'console',
  pictures: 'console',
}
const given = process.argv.slice(2)
const name = given[0] && !given[0].startsWith('-') ? given.shift() : 'service'
if (!benches[name])
  exitWithMessage(`Unknown benchmark ${name}. Supported: ${Object.keys(benches).join(', ')}`)
const directory = join(root, 'packages', benches[name], 'bench')
const outdir = join(root, 'packages', benches[name], 'dist/bench')
const children = readdirSync(directory).filter((file) => file.endsWith('-child.ts'))
await esbuild.build({
  entryPoints: [`${name}.ts`, ...children].map((file) => join(directory, file)),
  outdir,
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node20',
  plugins: [externalPackages],
  outExtension: { '.js': '.mjs' },
  logLevel: 'warning',
})
const { status } = spawnSync(process.execPath, [join(outdir, `${name}.mjs`), ...given], {
  cwd: root,
  stdio: 'inherit',
})
process.exitCode = status ?? 1
