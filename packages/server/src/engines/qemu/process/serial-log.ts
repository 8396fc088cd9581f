import { open, stat, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { lastLines } from '../command.ts'
import { readText, writeAtomically } from '../files.ts'

const defaultTailBytes = 64 * 1024
const maxReadBytes = 256 * 1024
/** A guest with endless output must not fill the host's disk. */
const maxFileBytes = 32 * 1024 * 1024

/** Reads from a byte offset that counts from the VM's first output. The content never ends inside a character. */
export async function readSerial(vmDir: string, offset: number | undefined) {
  const file = join(vmDir, 'serial.log')
  const droppedBytes = await droppedBytesOf(vmDir)
  const end = await serialEnd(vmDir)
  const from = Math.min(Math.max(offset ?? end - defaultTailBytes, droppedBytes), end)
  const length = Math.min(end - from, maxReadBytes)
  if (length === 0) return { content: '', nextOffset: from }
  const handle = await open(file, 'r')
  try {
    const buffer = Buffer.alloc(length)
    const { bytesRead } = await handle.read(buffer, 0, length, from - droppedBytes)
    const whole = wholeCharacters(buffer.subarray(0, bytesRead))
    return { content: whole.toString('utf8'), nextOffset: from + whole.length }
  } finally {
    await handle.close()
  }
}

export async function serialEnd(vmDir: string): Promise<number> {
  const sizeBytes = (await stat(join(vmDir, 'serial.log')).catch(() => null))?.size ?? 0
  return (await droppedBytesOf(vmDir)) + sizeBytes
}

export async function lastSerialLines(vmDir: string): Promise<string> {
  const { content } = await readSerial(vmDir, undefined)
  return lastLines(plainText(content), 12)
}

/** Removes terminal control sequences, which a guest can write freely. */
function plainText(content: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is removed
  return content.replace(/\x1b(\[[0-?]*[ -/]*[@-~]|[^[])|[\x00-\x08\x0b-\x1f\x7f-\x9f]/g, '')
}

/** QEMU appends, so the file can be truncated while it runs; the number of dropped bytes keeps offsets valid. */
export async function limitSerial(vmDir: string, maxBytes = maxFileBytes): Promise<void> {
  const file = join(vmDir, 'serial.log')
  const sizeBytes = (await stat(file).catch(() => null))?.size ?? 0
  if (sizeBytes <= maxBytes) return
  await writeAtomically(join(vmDir, 'serial-dropped'), `${(await droppedBytesOf(vmDir)) + sizeBytes}`)
  await truncate(file, 0)
}

async function droppedBytesOf(vmDir: string): Promise<number> {
  return Number((await readText(join(vmDir, 'serial-dropped'))) ?? 0)
}

function wholeCharacters(buffer: Buffer): Buffer {
  let start = buffer.length - 1
  while (start > buffer.length - 4 && start >= 0 && (buffer[start]! & 0xc0) === 0x80) start -= 1
  const lead = buffer[start] ?? 0
  const needed = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1
  return buffer.length - start < needed ? buffer.subarray(0, Math.max(start, 0)) : buffer
}
