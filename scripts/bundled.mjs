import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { externalPackages } from './build.mjs'
import { root } from './install.mjs'

/** Bundles a TypeScript file of the workspace and returns its exports. */
export async function importBundled(entry) {
  // Imported here, because in a fresh clone esbuild is installed only after this file is loaded.
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

/**
 * Like `importBundled`, for a file that needs npm packages or the migrations. The bundle is written next to the
 * built server.
 */
export async function importBundledForServer(entry) {
  const { build } = await import('esbuild')
  const outfile = join(root, 'packages/server/dist/tools', entry.replace(/.*\/(.*)\.ts$/, '$1.mjs'))
  const common = { bundle: true, platform: 'node', format: 'esm', target: 'node20' }
  await build({ ...common, entryPoints: [join(root, entry)], outfile, plugins: [externalPackages] })
  return import(pathToFileURL(outfile).href)
}
