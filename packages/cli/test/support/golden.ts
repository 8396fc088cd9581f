import { fileURLToPath } from 'node:url'
import type { Run } from './cli.ts'

export const goldenFile = (name: string) => fileURLToPath(new URL(`../golden/${name}`, import.meta.url))

/** Replaces values that differ between runs with placeholders of the same width, so that tables keep their layout. */
export function withPlaceholders(text: string): string {
  return text
    .replaceAll(
      /[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/g,
      '00000000-0000-7000-0000-000000000000',
    )
    .replaceAll(/\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z/g, '2026-01-01T00:00:00.000Z')
    .replaceAll(/\b\d{2}-\d{2} \d{2}:\d{2}:\d{2}\b/g, '01-01 00:00:00')
    .replaceAll(/\b198\.18\.\d+\.\d+\b(?!\/)( *)/g, (match, spaces: string) =>
      spaces ? '198.18.0.1'.padEnd(match.length) : '198.18.0.1',
    )
    .replaceAll(/\b172\.27\.\d+\.\d+\b(?!\/)/g, '172.27.0.1')
    .replaceAll(/\b([0-9a-f]{2}:){5}[0-9a-f]{2}\b/g, '00:00:00:00:00:00')
    .replaceAll(/("?serial_number"?: "?)[0-9a-f]{20}/g, '$100000000000000000000')
    .replaceAll(/("?cost_usd"?: )[\d.e-]+/g, '$10')
    .replaceAll(/( +)\d{1,2}[smh]$/gm, (match) => '0s'.padStart(match.length))
    .replaceAll(/\(\d+[smh] ago\)/g, '(0s ago)')
    .replaceAll(/slp_[A-Za-z0-9]{8}(_[A-Za-z0-9]{43})?/g, (match) => 'slp_'.padEnd(match.length, 'x'))
}

/** Returns the command line, the output streams and the exit code of a run as one text. */
export function transcript(words: string[], { code, stdout, stderr }: Run): string {
  const parts = [
    `$ slipway ${words.map((word) => (/[^\w.:=,/@-]/.test(word) ? `'${word}'` : word)).join(' ')}`,
  ]
  if (stdout) parts.push(withPlaceholders(stdout).trimEnd())
  if (stderr) parts.push('[stderr]', withPlaceholders(stderr).trimEnd())
  if (code !== 0) parts.push(`[exit code ${code}]`)
  return parts.join('\n')
}
