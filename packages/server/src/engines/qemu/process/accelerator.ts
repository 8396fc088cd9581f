import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { access, mkdir, readFile, rm } from 'node:fs/promises'
import { release } from 'node:os'
import { join } from 'node:path'
import { EngineError } from '../../engine.ts'
import type { Architecture } from '../architecture.ts'
import { run } from '../command.ts'
import { readJson, writeJson } from '../files.ts'
import { type Accelerator, kernelPaths } from './machine.ts'

/** `-netdev stream`, which the guest-to-guest segment uses, came with this version. */
const minVersion = [7, 2] as const
const probeLimitMs = 10_000
const probeMarker = 'slipway-probe-ok'

export interface AcceleratorVerdict {
  accelerator: Accelerator
  reason: string
}

export async function requireQemu(arch: Architecture, program: string): Promise<string> {
  const hint = `install it with: apt-get install ${arch.qemuPackage} qemu-utils`
  const banner = await run(program, ['--version'], { timeoutMs: 20_000 }).catch((error: Error) => {
    throw new EngineError('unavailable', `${error.message}; ${hint}`, { cause: error })
  })
  const version = /version (\d+)\.(\d+)(\.\d+)?/.exec(banner)
  const [major, minor] = [Number(version?.[1] ?? 0), Number(version?.[2] ?? 0)]
  if (major < minVersion[0] || (major === minVersion[0] && minor < minVersion[1]))
    throw new EngineError(
      'unavailable',
      `QEMU ${major}.${minor} is too old; ${minVersion.join('.')} or later is needed`,
    )
  await run('qemu-img', ['--version']).catch((error: Error) => {
    throw new EngineError('unavailable', `${error.message}; ${hint}`, { cause: error })
  })
  return `${major}.${minor}${version?.[3] ?? ''}`
}

/**
 * How much translated code an emulated VM may keep. QEMU's own default is a gigabyte; the usual boot fills a tenth of
 * that. But QEMU begins each of its many thousand pieces of code on an instruction cache line, and on some ARM cores
 * (Neoverse N1, for an erratum) Linux says that such a line is as long as a page: with too small a cache a boot there
 * translates everything over and over, and takes three times as long.
 */
export async function translationCacheMib(): Promise<number> {
  const lineBytes = Number(await run('getconf', ['LEVEL1_ICACHE_LINESIZE']).catch(() => 0))
  return lineBytes >= 1024 ? 512 : 128
}

/**
 * KVM only where a real kernel really boots under it: the device node alone says nothing, and a hypervisor that hangs
 * looks healthy until then. The verdict holds for this boot of the host and this guest kernel.
 */
export async function chooseAccelerator(
  stateDir: string,
  arch: Architecture,
  program: string,
  guestFolder: string | null,
): Promise<AcceleratorVerdict> {
  const isThere = await access('/dev/kvm', constants.R_OK | constants.W_OK).then(
    () => true,
    () => false,
  )
  if (!isThere) return { accelerator: 'tcg', reason: '/dev/kvm is missing or closed to this user' }
  if (!guestFolder) return { accelerator: 'kvm', reason: 'not tried: there is no mini guest to try it with' }

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
  const { kernel, initrd } = kernelPaths(guestFolder)
  const child = spawn(
    program,
    [
      ...['-nodefaults', '-no-user-config', '-display', 'none', '-no-reboot'],
      ...['-machine', arch.machineType, '-accel', 'kvm', '-cpu', 'host', '-m', '256M'],
      ...['-kernel', kernel, '-initrd', initrd],
      ...['-append', `console=${arch.serialConsole} quiet panic=-1 slipway.probe`],
      ...['-chardev', 'stdio,id=serial', '-serial', 'chardev:serial'],
    ],
    { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] },
  )
  try {
    return await new Promise<AcceleratorVerdict>((resolve) => {
      let output = ''
      const timer = setTimeout(
        () =>
          resolve({ accelerator: 'tcg', reason: `a kernel did not boot under KVM in ${probeLimitMs} ms` }),
        probeLimitMs,
      )
      const onData = (chunk: Buffer) => {
        output = (output + chunk.toString('latin1')).slice(-4_000)
        if (!output.includes(probeMarker)) return
        clearTimeout(timer)
        resolve({ accelerator: 'kvm', reason: 'a kernel booted under KVM' })
      }
      child.stdout.on('data', onData)
      child.stderr.on('data', onData)
      child.on('close', () => {
        clearTimeout(timer)
        resolve({ accelerator: 'tcg', reason: `KVM refused: ${output.trim().split('\n').at(-1)}` })
      })
      child.on('error', (error) => {
        clearTimeout(timer)
        resolve({ accelerator: 'tcg', reason: error.message })
      })
    })
  } finally {
    child.kill('SIGKILL')
    await rm(folder, { recursive: true, force: true })
  }
}
