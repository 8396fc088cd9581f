import { join } from 'node:path'
import { root } from './install.mjs'

/** The exports of a TypeScript file of the workspace. */
export async function bundled(entry) {
  // Loaded late: on a fresh clone it is installed first.
  const { build } = await import('esbuild')
  const { outputFiles } = await build({
    entryPoints: [join(root, entry)],
    bundle: true,
    write: false,
    platform: 'node',
    format: 'esm',
    target: 'node20',
  })
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString('base64')}`)
}
