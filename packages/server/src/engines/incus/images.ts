import { randomBytes } from 'node:crypto'
import { rm } from 'node:fs/promises'
import type { IncusConfig } from '../../config/index.ts'
import { EngineError } from '../engine.ts'
import { run } from '../qemu/command.ts'
import { openPlainFile } from '../qemu/images/image-header.ts'
import { checkImage } from '../qemu/images/images.ts'
import { IncusClient } from './client.ts'
import type { IncusContext } from './context.ts'
import { openEndpoints } from './endpoints.ts'
import { serverInfo } from './members.ts'
import { ensureProject } from './project.ts'
import { describe, fingerprintOf, formOf, type SplitImage } from './split-image.ts'

/** What an image's row has for this engine: nothing else can be put in the place of a fingerprint. */
export interface IncusImageSource extends Record<string, unknown> {
  fingerprint: string
}

interface Image {
  type: IncusConfig['instanceType']
}

const uploadMs = 3600_000
const fingerprintPattern = /^[0-9a-f]{64}$/

/** Images of one location's Incus, for a command that ends. */
export async function withImages<T>(config: IncusConfig, work: (images: Images) => Promise<T>): Promise<T> {
  const client = new IncusClient(await openEndpoints(config), config.project)
  try {
    const ctx = { client, config, answersSsh: async () => false }
    await ensureProject(ctx, AbortSignal.timeout(60_000))
    return await work(new Images(ctx))
  } finally {
    await client.close()
  }
}

export class Images {
  readonly #ctx: IncusContext
  readonly #signal: AbortSignal

  constructor(ctx: IncusContext, signal = AbortSignal.timeout(uploadMs)) {
    this.#ctx = ctx
    this.#signal = signal
  }

  /**
   * Has the image in Incus under its name. The file is one that an import took, and is checked again. One that Incus has
   * is not sent twice, and one that came halfway is not there: Incus keeps nothing before it has seen the fingerprint.
   */
  async publish(file: string, sha256: string, name: string): Promise<IncusImageSource> {
    const { instanceType } = this.#ctx.config
    if (instanceType === 'container')
      throw new EngineError(
        'rejected',
        'the guests of this location are containers, which have no disk image',
      )
    const { format } = await checkImage(file, sha256, name)
    if (format === 'qcow2') return this.#publishDisk(file, sha256, name)
    // Incus takes no other format.
    const converted = `${file}.${randomBytes(6).toString('hex')}.tmp`
    try {
      const args = ['convert', '-f', format, '-O', 'qcow2', file, converted]
      await run('qemu-img', args, { timeoutMs: uploadMs, signal: this.#signal })
      return await this.#publishDisk(converted, sha256, name)
    } finally {
      await rm(converted, { force: true })
    }
  }

  /** Takes an image that somebody else put into the Incus project, as it is now. */
  async adopt(name: string): Promise<IncusImageSource> {
    const { project, instanceType } = this.#ctx.config
    const fingerprint = await this.#targetOf(name)
    if (!fingerprint) throw new EngineError('missing', `the Incus project ${project} has no image ${name}`)
    const { type } = await this.#ctx.client.get<Image>(`/1.0/images/${fingerprint}`, { signal: this.#signal })
    if (type !== instanceType)
      throw new EngineError('rejected', `${name} is the image of a ${type}, and guests are ${instanceType}s`)
    return { fingerprint }
  }

  async #publishDisk(file: string, sha256: string, name: string): Promise<IncusImageSource> {
    const disk = await openPlainFile(file)
    if (!disk) throw new EngineError('missing', `there is no file of the image ${name}`)
    try {
      const { environment } = await serverInfo(this.#ctx, this.#signal)
      const image = { metadata: describe(environment.architectures[0]!, sha256), disk }
      const fingerprint = await fingerprintOf(image)
      await this.#upload(image, fingerprint)
      await this.#name(fingerprint, name)
      return { fingerprint }
    } finally {
      await disk.close()
    }
  }

  async #upload(image: SplitImage, fingerprint: string): Promise<void> {
    const { client } = this.#ctx
    const isThere = () => client.find(`/1.0/images/${fingerprint}`, { signal: this.#signal })
    if (await isThere()) return
    const { type, content } = formOf(image)
    const headers = { 'content-type': type, 'x-incus-fingerprint': fingerprint }
    const limits = { signal: this.#signal, timeoutMs: uploadMs }
    await client.upload('/1.0/images', { headers, content }, limits).catch(async (error) => {
      // Of two that send it, one is told that it is there.
      if (!(await isThere())) throw error
    })
  }

  async #name(fingerprint: string, name: string): Promise<void> {
    const { client } = this.#ctx
    const known = await this.#targetOf(name)
    if (known === fingerprint) return
    const options = { signal: this.#signal }
    const body = { name, target: fingerprint, description: '' }
    if (known === undefined) await client.change('POST', '/1.0/images/aliases', body, options)
    else await client.change('PUT', aliasPath(name), body, options)
  }

  async #targetOf(name: string): Promise<string | undefined> {
    const options = { signal: this.#signal }
    return (await this.#ctx.client.find<{ target: string }>(aliasPath(name), options))?.value.target
  }
}

const aliasPath = (name: string) => `/1.0/images/aliases/${encodeURIComponent(name)}`

/**
 * What an instance is made from. A fingerprint says what is in the image, so that Incus makes it from the very one that
 * was registered, whatever its alias means by now. It has to be whole: Incus would take a part of one for the first image
 * that begins so. Containers, which are for tests, may be made from an alias.
 */
export function imageOf(
  { config }: Pick<IncusContext, 'config'>,
  { name, source }: { name: string; source: Record<string, unknown> },
): Record<string, string> {
  const { fingerprint, alias = name } = source
  if (typeof fingerprint === 'string' && fingerprintPattern.test(fingerprint))
    return { type: 'image', fingerprint }
  if (config.instanceType === 'container' && fingerprint === undefined)
    return { type: 'image', alias: String(alias) }
  throw new EngineError('rejected', `image ${name} is none that this engine has registered`)
}
