import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually } from '@slipway/testing/eventually.ts'
import { serverProgram } from '@slipway/testing/launcher.ts'
import { type Program, startProgram } from '@slipway/testing/program.ts'
import { afterEach, beforeEach, expect, test } from 'vitest'

let folder: string
let temporary: string
const builds: Program[] = []
const installers = () => readdirSync(join(folder, 'installers')).map(Number)
/** Returns the files that builds left in TMPDIR, without those of the runtime. */
const leftovers = () => readdirSync(temporary).filter((name) => name.startsWith('slipway-gpu-image-'))

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'slipway-stopped-'))
  temporary = join(folder, 'temporary')
  for (const name of ['temporary', 'installers', 'bin']) mkdirSync(join(folder, name))
  for (const name of ['qemu-img', 'mkfs.ext4', 'mkfs.vfat', 'mcopy', 'sfdisk', 'apt-get'])
    writeProgram(name, 'exit 0')
  // The build runs programs in namespaces, which some machines do not allow.
  writeProgram('unshare', 'while :; do case "$1" in --*) shift ;; *) exec "$@" ;; esac; done')
  const candidate = `printf '%s:\\n  Installed: (none)\\n  Candidate: 1\\n' "$name"`
  writeProgram('apt-cache', `for name in "$@"; do ${candidate}; done`)
  // Like mmdebstrap, this installer has files in TMPDIR and waits for another process, which does the work.
  writeProgram(
    'mmdebstrap',
    `mkdir "$TMPDIR/system"
[ "$INSTALLER" = fails ] && exit 1
sleep 1000 &
: >'${folder}'/installers/$$
wait`,
  )
})

afterEach(async () => {
  for (const build of builds.splice(0)) await build.kill()
  for (const pid of installers()) endGroup(pid)
  rmSync(folder, { recursive: true, force: true })
})

function writeProgram(name: string, script: string): void {
  writeFileSync(join(folder, 'bin', name), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
}

function endGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {}
}

function startBuild(installer: 'waits' | 'fails'): Program {
  const mirror = 'http://mirror.example/debian'
  const flags = ['--without-driver', '--mirror', mirror, '--security-mirror', mirror]
  const args = [serverProgram, 'images', 'build', 'gpu', '--output', join(folder, 'gpu.qcow2'), ...flags]
  const PATH = `${join(folder, 'bin')}:${process.env.PATH}`
  const build = startProgram(process.execPath, args, {
    env: { PATH, TMPDIR: temporary, INSTALLER: installer },
  })
  builds.push(build)
  return build
}

/** Starts a build and waits until it installs packages. Returns the build and the pid of the installer. */
async function startInstalling(): Promise<{ build: Program; installer: number }> {
  const before = installers()
  const build = startBuild('waits')
  const installer = await eventually(() => installers().find((pid) => !before.includes(pid)))
  return { build, installer }
}

function isRunning(pid: number): boolean {
  try {
    return !/^State:\tZ/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

test.each(['SIGINT', 'SIGTERM'] as const)(
  'a build of the gpu image that is stopped by %s ends its programs and removes its files',
  async (signal) => {
    const { build, installer } = await startInstalling()
    expect(leftovers()).toHaveLength(1)
    build.signal(signal)
    const { code, errors } = await build.ended()
    expect(code).toBe(1)
    expect(errors).toContain(`mmdebstrap did not finish: stopped by ${signal}`)
    expect(leftovers()).toEqual([])
    await eventually(() => !isRunning(installer))
  },
)

test('a build of the gpu image removes the files of killed builds, not those of running builds', async () => {
  const killed = await startInstalling()
  await killed.build.kill()
  endGroup(killed.installer)
  const [left] = leftovers()
  expect(readdirSync(join(temporary, left!))).toEqual(['files', 'system'])
  await startInstalling()
  const running = leftovers()
  expect(running).toHaveLength(1)
  expect(running).not.toContain(left)
  const { errors } = await startBuild('fails').ended()
  expect(errors).toContain('mmdebstrap failed')
  expect(leftovers()).toEqual(running)
})
