import { access, mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { EngineError } from '../../engine.ts'
import { run } from '../command.ts'

/**
 * Downloads Debian packages and unpacks them into one tree, without root. If the machine has no package lists, they are
 * downloaded into a private directory.
 */
export class DebianPackages {
  readonly #workDir: string
  #options: string[]

  constructor(workDir: string, debianArch: string) {
    this.#workDir = workDir
    this.#options = ['-o', `APT::Architecture=${debianArch}`, '-o', `APT::Architectures::=${debianArch}`]
  }

  async refreshListsIfMissing(probe: string): Promise<void> {
    await access('/etc/apt').catch(() => {
      throw new EngineError(
        'unavailable',
        'the mini guest is built from Debian packages, but this machine has no apt; import a cloud image instead',
      )
    })
    if ((await this.dependenciesOf(probe)).length > 0) return
    const state = join(this.#workDir, 'apt')
    await mkdir(join(state, 'lists', 'partial'), { recursive: true })
    await mkdir(join(state, 'cache', 'archives', 'partial'), { recursive: true })
    this.#options.push(
      ...['-o', `Dir::State::Lists=${join(state, 'lists')}`],
      ...['-o', `Dir::Cache=${join(state, 'cache')}`],
      ...['-o', 'APT::Sandbox::User='],
    )
    await run('apt-get', [...this.#options, '-qq', 'update'], { timeoutMs: 180_000 })
    if ((await this.dependenciesOf(probe)).length === 0)
      throw new EngineError('unavailable', `the Debian package sources of this machine do not have ${probe}`)
  }

  async dependenciesOf(name: string): Promise<string[]> {
    const listing = await run('apt-cache', [...this.#options, 'depends', name]).catch(() => '')
    return [...listing.matchAll(/Depends: (\S+)/g)].map((match) => match[1]!)
  }

  async unpack(names: string[], rootDir: string): Promise<string[]> {
    const debs = join(this.#workDir, 'debs')
    await mkdir(debs, { recursive: true })
    await mkdir(rootDir, { recursive: true })
    await run('apt-get', [...this.#options, '-q', 'download', ...names], { cwd: debs, timeoutMs: 600_000 })
    const files = (await readdir(debs)).filter((file) => file.endsWith('.deb')).sort()
    for (const file of files) await run('dpkg', ['-x', join(debs, file), rootDir], { timeoutMs: 300_000 })
    return files
  }
}
