import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../install.mjs'
import { stagePackages } from './stage.mjs'

/**
 * Packs the published packages into `artifacts/packages`. Returns each with its archive and the files in it.
 */
export async function packPackages() {
  const archives = join(root, 'artifacts/packages')
  rmSync(archives, { recursive: true, force: true })
  mkdirSync(archives, { recursive: true })
  const staged = await stagePackages(join(root, '.cache/packages'))
  return staged.map((each) => {
    const args = ['pack', '--json', '--loglevel=error', '--pack-destination', archives]
    const [{ filename, size, files }] = JSON.parse(
      execFileSync('npm', args, { cwd: each.directory, encoding: 'utf8' }),
    )
    return { ...each, archive: join(archives, filename), size, files: files.map(({ path }) => path) }
  })
}
