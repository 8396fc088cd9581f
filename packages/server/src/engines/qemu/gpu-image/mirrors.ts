import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { EngineError } from '../../engine.ts'
import type { Architecture } from '../architecture.ts'
import { run } from '../command.ts'
import { isAccessible } from '../files.ts'

export interface Mirrors {
  main: string
  /** Security updates come from a separate archive. */
  security: string
}

/** Uses the machine's own apt mirror for each mirror that is not given. */
export async function chooseMirrors(given: Partial<Mirrors>): Promise<Mirrors> {
  const targets = await run('apt-get', ['indextargets', '--format', '$(LABEL)|$(SITE)']).catch(() => '')
  const siteOf = (label: string) =>
    targets
      .split('\n')
      .find((line) => line.startsWith(`${label}|`))
      ?.split('|')[1]
  const main = given.main ?? siteOf('Debian')
  const security = given.security ?? siteOf('Debian-Security')
  if (main && security) return { main, security }
  throw new EngineError(
    'rejected',
    main
      ? 'apt on this machine has no mirror of Debian security updates; specify one with --security-mirror'
      : 'apt on this machine has no Debian mirror; specify one with --mirror',
  )
}

const keyring = '/usr/share/keyrings/debian-archive-keyring.gpg'

/** The lines of `sources.list`. The image has the keyring at the same path. */
export async function sourceLines(mirrors: Mirrors, suite: string, components: string): Promise<string> {
  const options = (await isAccessible(keyring)) ? `[signed-by=${keyring}] ` : ''
  return [
    `deb ${options}${mirrors.main} ${suite} ${components}\n`,
    `deb ${options}${mirrors.main} ${suite}-updates ${components}\n`,
    `deb ${options}${mirrors.security} ${suite}-security ${components}\n`,
  ].join('')
}

/**
 * Returns which of these packages the sources offer. Downloads the package lists into a separate folder.
 */
export async function availablePackages(
  workDir: string,
  sources: string,
  names: string[],
  arch: Architecture,
  signal: AbortSignal | undefined,
): Promise<Set<string>> {
  const state = join(workDir, 'apt')
  await mkdir(join(state, 'lists/partial'), { recursive: true })
  await mkdir(join(state, 'cache/archives/partial'), { recursive: true })
  await writeFile(join(state, 'sources.list'), sources)
  const settings = {
    ...{ 'APT::Architecture': arch.debianName, 'APT::Architectures': arch.debianName },
    ...{ 'Dir::Etc::SourceList': join(state, 'sources.list'), 'Dir::Etc::SourceParts': '/dev/null' },
    ...{ 'Dir::State::Lists': join(state, 'lists'), 'Dir::Cache': join(state, 'cache') },
    ...{ 'APT::Sandbox::User': '', 'Acquire::Languages': 'none' },
  }
  const options = Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`])
  const forOperator = { signal, timeoutMs: 600_000, showsPaths: true, hasOwnGroup: true }
  await run('apt-get', [...options, '-qq', '--error-on=any', 'update'], forOperator)
  const listing = await run('apt-cache', [...options, 'policy', ...names], forOperator)
  return new Set(
    [...listing.matchAll(/^(\S+):\n {2}Installed: .*\n {2}Candidate: (?!\(none\))/gm)].map(
      (match) => match[1]!,
    ),
  )
}
