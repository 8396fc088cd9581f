import { randomBytes } from 'node:crypto'
import { rm } from 'node:fs/promises'
import type { IncusConfig } from '../../../config/index.ts'
import { EngineError } from '../../engine.ts'
import { run } from '../../qemu/command.ts'
import { type ImageFormat, openPlainFile } from '../../qemu/images/image-header.ts'
import { checkImage } from '../../qemu/images/images.ts'
import { type IncusContext, withIncus } from '../context.ts'
import { serverInfo } from '../fleet/members.ts'
import { ensureProject } from '../project.ts'
import { fingerprintOf, formOf, metadataOf, type SplitImage } from './split-image.ts'

/** What an image's database row contains for this engine. */
export interface IncusImageSource extends Record<string, unknown> {
  fingerprint: string
  /** Only for adopted images; the size of an imported image is known from its file. */
  sizeBytes?: number
}

const uploadMs = 3600_000
const fingerprintPattern = /^[0-9a-f]{64}$/

export const withImages = <T>(config: IncusConfig, work: (images: Images) => Promise<T>) =>
  withIncus(config, config.project, async (ctx) => {
    await ensureProject(ctx, AbortSignal.timeout(60_000))
    return work(new Images(ctx))
  })

/** The images of one location's Incus, for an operator's command. */
export class Images {
  readonly #ctx: IncusContext
  readonly #signal = AbortSignal.timeout(uploadMs)

  constructor(ctx: IncusContext) {
    this.#ctx = ctx
  }

  /**
   * Uploads an imported file under the image's name, after checking it again. An image that Incus already has is not sent
   * again. A partial upload leaves no image, because Incus compares the fingerprint first.
   */
  async publish(file: string, sha256: string, name: string, format: ImageFormat): Promise<IncusImageSource> {
    const { instanceType } = this.#ctx.config
    if (instanceType === 'container')
      throw new EngineError('rejected', 'this location runs containers, which cannot use disk images')
    await checkImage(file, sha256, name, format)
    if (format === 'qcow2') return this.#publishDisk(file, sha256, name)
    // Incus accepts no other format.
    const converted = `${file}.${randomBytes(6).toString('hex')}.tmp`
    try {
      const args = ['convert', '-f', format, '-O', 'qcow2', file, converted]
      await run('qemu-img', args, { timeoutMs: uploadMs, signal: this.#signal })
      return await this.#publishDisk(converted, sha256, name)
    } finally {
      await rm(converted, { force: true })
    }
  }

  /** Registers an image that an operator has added to the Incus project. */
  async adopt(name: string): Promise<IncusImageSource> {
    const { project, instanceType } = this.#ctx.config
    const fingerprint = await this.#targetOf(name)
    if (!fingerprint)
      throw new EngineError('missing', `the Incus project ${project} has no image with the alias ${name}`)
    const path = `/1.0/images/${fingerprint}`
    const { type, size } = await this.#ctx.client.get<{ type: string; size: number }>(path, {
      signal: this.#signal,
    })
    if (type !== instanceType)
      throw new EngineError(
        'rejected',
        `${name} is an image for a ${type}, but this location runs ${instanceType}s`,
      )
    return { fingerprint, sizeBytes: size }
  }

  async #publishDisk(file: string, sha256: string, name: string): Promise<IncusImageSource> {
    const disk = await openPlainFile(file)
    if (!disk) throw new EngineError('missing', `the file of image ${name} does not exist`)
    try {
      const { environment } = await serverInfo(this.#ctx, this.#signal)
      const image = { metadata: metadataOf(environment.architectures[0]!, sha256), disk }
      const fingerprint = await fingerprintOf(image)
      await this.#upload(image, fingerprint)
      await this.#setAlias(fingerprint, name)
      return { fingerprint }
    } finally {
      await disk.close()
    }
  }

  async #upload(image: SplitImage, fingerprint: string): Promise<void> {
    const { client } = this.#ctx
    const find = () => client.find(`/1.0/images/${fingerprint}`, { signal: this.#signal })
    if (await find()) return
    const { type, content } = formOf(image)
    const headers = { 'content-type': type, 'x-incus-fingerprint': fingerprint }
    const limits = { signal: this.#signal, timeoutMs: uploadMs }
    await client.change('POST', '/1.0/images', { headers, content }, limits).catch(async (error) => {
      // If two processes upload the image, one of them fails.
      if (!(await find())) throw error
    })
  }

  async #setAlias(fingerprint: string, name: string): Promise<void> {
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
    return (await this.#ctx.client.find<{ target: string }>(aliasPath(name), options))?.target
  }
}

const aliasPath = (name: string) => `/1.0/images/aliases/${encodeURIComponent(name)}`

/**
 * The source of a new instance. A fingerprint identifies the content, so that the instance gets the
 * registered image even if its alias has moved. The fingerprint must be complete, because Incus also accepts
 * a prefix and uses the first image that matches. Containers, which are only for tests, may be created from
 * an alias.
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
  throw new EngineError('rejected', `image ${name} was not registered with this engine`)
}
