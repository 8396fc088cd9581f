import { resolve } from 'node:path'
import { ConfigError } from './config/index.ts'
import { buildGpuImage, type GpuImage } from './engines/qemu/index.ts'

export const gpuImageOptions = {
  output: { type: 'string' },
  suite: { type: 'string' },
  mirror: { type: 'string' },
  'security-mirror': { type: 'string' },
  'without-driver': { type: 'boolean' },
  package: { type: 'string', multiple: true },
  hook: { type: 'string' },
} as const

export interface GpuImageFlags {
  output?: string | undefined
  suite?: string | undefined
  mirror?: string | undefined
  'security-mirror'?: string | undefined
  'without-driver'?: boolean | undefined
  package?: string[] | undefined
  hook?: string | undefined
}

export async function runBuildGpu(flags: GpuImageFlags, progress: (line: string) => void): Promise<void> {
  const suite = check('--suite', flags.suite ?? 'bookworm', /^[a-z][a-z0-9-]*$/, 'a release of Debian')
  const url = /^(https?|file):\/\/[^\s[\]]+$/
  const mirrors = {
    ...(flags.mirror && { main: check('--mirror', flags.mirror, url, 'a URL') }),
    ...(flags['security-mirror'] && {
      security: check('--security-mirror', flags['security-mirror'], url, 'a URL'),
    }),
  }
  const packages = (flags.package ?? []).map((name) =>
    check('--package', name, /^[a-z0-9][a-z0-9+.-]+$/, 'the name of a Debian package'),
  )
  const hasDriver = !flags['without-driver']
  const output = resolve(flags.output ?? `debian-${suite}-gpu.qcow2`)
  const hook = flags.hook && resolve(flags.hook)
  const options = { output, suite, mirrors, hasDriver, packages, hook, signal: stopSignal() }
  const image = await buildGpuImage(options, progress)
  console.log(descriptionOf(image, output, { suite, hasDriver }))
}

/** A build that is stopped removes its temporary files. A second signal ends the process immediately. */
function stopSignal(): AbortSignal {
  const stop = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.once(name, () => stop.abort(new Error(`stopped by ${name}`)))
  return stop.signal
}

function check(flag: string, value: string, pattern: RegExp, expected: string): string {
  if (pattern.test(value)) return value
  throw new ConfigError(`${flag} ${JSON.stringify(value)} has an invalid format; expected ${expected}`)
}

function descriptionOf(
  image: GpuImage,
  output: string,
  { suite, hasDriver }: { suite: string; hasDriver: boolean },
): string {
  const gib = (bytes: number) => `${(bytes / 1024 ** 3).toFixed(1)} GiB`
  const toolkit = image.hasToolkit
    ? []
    : [
        'The mirror has no nvidia-container-toolkit, so containers cannot use GPUs. Add it with --hook FILE.',
        '',
      ]
  return [
    `${output}: ${gib(image.bytes)}, a disk of ${gib(image.diskMib * 1024 ** 2)} with`,
    ...image.versions.map((version) => `  ${version}`),
    '',
    ...(hasDriver ? toolkit : []),
    'Import the image:',
    `  slipway-server images import ${output} --sha256 ${image.sha256} --format qcow2 --name debian-${suite}-gpu --tag slipway-guest`,
  ].join('\n')
}
