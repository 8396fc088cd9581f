import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { mkdir, readFile, rm } from 'node:fs/promises'
import { release } from 'node:os'
import { join } from 'node:path'
import { EngineError } from '../../engine.ts'
import type { Architecture } from '../architecture.ts'
import { run } from '../command.ts'
import { isAccessible, readJson, writeJson } from '../files.ts'
import type { Accelerator } from './machine.ts'

/** The first version with `-netdev stream`, which connects guests to the forwarder. */
const minVersion = [7, 2] as const
const probeLimitMs = 10_000
const probeMarker = 'slipway-probe-ok'

export interface AcceleratorVerdict {
  accelerator: Accelerator
  reason: string
}

export async function requireQemu(arch: Architecture, program: string): Promise<string> {
  const hint = `install it with: apt-get install ${arch.qemuPackage} qemu-utils`
  const versionOf = (name: string) =>
    run(name, ['--version'], { timeoutMs: 20_000 }).catch((error: Error) => {
      throw new EngineError('unavailable', `${error.message}; ${hint}`, { cause: error })
    })
  const banner = await versionOf(program)
  const version = /version (\d+)\.(\d+)(\.\d+)?/.exec(banner)
  const [major, minor] = [Number(version?.[1] ?? 0), Number(version?.[2] ?? 0)]
  if (major < minVersion[0] || (major === minVersion[0] && minor < minVersion[1]))
    throw new EngineError(
      'unavailable',
      `QEMU ${major}.${minor} is too old; install ${minVersion.join('.')} or later`,
    )
  await versionOf('qemu-img')
  return `${major}.${minor}${version?.[3] ?? ''}`
}

/**
 * The size of an emulated VM's cache of translated code. QEMU's default is 1 GiB, of which a typical boot
 * uses a tenth. QEMU aligns each block of code to an instruction cache line. On some ARM cores (Neoverse N1,
 * because of an erratum), Linux reports lines as long as a page; there, a boot with a small cache translates
 * code repeatedly and takes three times as long.
 */
export async function translationCacheMib(): Promise<number> {
  const lineBytes = Number(await run('getconf', ['LEVEL1_ICACHE_LINESIZE']).catch(() => 0))
  return lineBytes >= 1024 ? 512 : 128
}

/**
 * Uses KVM only if a kernel boots under it, because a broken KVM may have a device node and hang only during
 * a boot. The result is cached for this boot of the host and this guest kernel.
 */
export async function chooseAccelerator(
  stateDir: string,
  arch: Architecture,
  program: string,
  guestFolder: string | null,
): Promise<AcceleratorVerdict> {
  if (!(await isAccessible('/dev/kvm', constants.R_OK | constants.W_OK)))
    return { accelerator: 'tcg', reason: '/dev/kvm is missing, or this user has no access to it' }
  if (!guestFolder) return { accelerator: 'kvm', reason: 'not tested, because there is no mini guest' }

  const bootId = (await readFile('/proc/sys/kernel/random/boot_id', 'utf8').catch(() => release())).trim()
  const key = `${bootId} ${guestFolder}`
  const cacheFile = join(stateDir, 'accelerator.json')
  const known = await readJson<AcceleratorVerdict & { key: string }>(cacheFile).catch(() => null)
  if (known?.key === key) return { accelerator: known.accelerator, reason: known.reason }
  const verdict = await probeKvm(stateDir, arch, program, guestFolder)
  await writeJson(cacheFile, { key, ...verdict })
  return verdict
}

async function probeKvm(
  stateDir: string,
  arch: Architecture,
  program: string,
  guestFolder: string,
): Promise<AcceleratorVerdict> {
  const folder = join(stateDir, `probe-${randomBytes(4).toString('hex')}`)
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const child = spawn(
    program,
    [
      ...['-nodefaults', '-no-user-config', '-display', 'none', '-no-reboot'],
      ...['-machine', arch.machineType, '-accel', 'kvm', '-cpu', 'host', '-m', '256M'],
      ...['-kernel', join(guestFolder, 'vmlinuz'), '-initrd', join(guestFolder, 'initrd')],
      ...['-append', `console=${arch.serialConsole} quiet panic=-1 slipway.probe`],
      ...['-chardev', 'stdio,id=serial', '-serial', 'chardev:serial'],
    ],
    { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] },
  )
  try {
    return await new Promise<AcceleratorVerdict>((resolve) => {
      let output = ''
      const refuse = (reason: string) => resolve({ accelerator: 'tcg', reason })
      const limit = `a kernel did not boot under KVM within ${probeLimitMs} ms`
      setTimeout(() => refuse(limit), probeLimitMs).unref()
      const onData = (chunk: Buffer) => {
        output = (output + chunk.toString('latin1')).slice(-4_000)
        if (output.includes(probeMarker)) resolve({ accelerator: 'kvm', reason: 'a kernel booted under KVM' })
      }
      child.stdout.on('data', onData)
      child.stderr.on('data', onData)
      child.on('close', () => refuse(`KVM failed: ${output.trim().split('\n').at(-1)}`))
      child.on('error', (error) => refuse(error.message))
    })
  } finally {
    child.kill('SIGKILL')
    await rm(folder, { recursive: true, force: true })
  }
}
