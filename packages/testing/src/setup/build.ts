import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { root } from '../root.ts'

/** Builds the programs that the suites run as processes, once before all suites. */
export default async function setup() {
  const { build } = await import(pathToFileURL(join(root, 'scripts/build.mjs')).href)
  await build()
}
