import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { packagesStayOutside } from './build.mjs'
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

/** For a file that needs npm packages or the migrations: it is written beside the built server. */
export async function bundledForServer(entry) {
  const { build } = await import('esbuild')
  const outfile = join(root, 'packages/server/dist/tools', entry.replace(/.*\/(.*)\.ts$/, '$1.mjs'))
  const common = { bundle: true, platform: 'node', format: 'esm', target: 'node20' }
  await build({ ...common, entryPoints: [join(root, entry)], outfile, plugins: [packagesStayOutside] })
  return import(pathToFileURL(outfile).href)
}
