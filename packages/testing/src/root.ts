import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** The root of the checkout, found from the working folder, so that bundled benchmarks find it too. */
export const root = findRoot(process.cwd())

function findRoot(folder: string): string {
  if (existsSync(join(folder, 'packages/contract'))) return folder
  if (dirname(folder) === folder) throw new Error('run this inside the checkout')
  return findRoot(dirname(folder))
}
