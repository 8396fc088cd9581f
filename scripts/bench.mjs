// npm run bench [-- NAME…]: builds and runs the measurements under packages/*/bench, each against a limit of its own run.
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { build, packagesStayOutside } from './build.mjs'
import { ensureInstalled, root } from './install.mjs'

ensureInstalled()
await build()
const esbuild = await import('esbuild')

/** Files that measure; what they share is bundled into them. */
const mains = ['service', 'qemu', 'startup']
const wanted = process.argv.slice(2)
for (const name of readdirSync(join(root, 'packages'))) {
  const directory = join(root, 'packages', name, 'bench')
  if (!existsSync(directory)) continue
  const files = readdirSync(directory).filter((file) => file.endsWith('.ts'))
  const entries = files.filter((file) => mains.includes(basename(file, '.ts')) || file.endsWith('-child.ts'))
  const outdir = join(root, 'packages', name, 'dist/bench')
  await esbuild.build({
    entryPoints: entries.map((file) => join(directory, file)),
    outdir,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    plugins: [packagesStayOutside],
    outExtension: { '.js': '.mjs' },
    logLevel: 'warning',
  })
  for (const main of mains) {
    if (!files.includes(`${main}.ts`) || (wanted.length > 0 && !wanted.includes(main))) continue
    console.log(`\n${name}: ${main}`)
    const { status } = spawnSync(process.execPath, [join(outdir, `${main}.mjs`)], {
      cwd: root,
      stdio: 'inherit',
    })
    if (status !== 0) process.exitCode = 1
  }
}
