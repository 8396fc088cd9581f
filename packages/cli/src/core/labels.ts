import { UsageError } from '../errors/cli-error.ts'
import type { OptionSpec } from './command.ts'

export type Labels = Record<string, string>

export const labelOption: OptionSpec = {
  flags: '--label <label>',
  description: 'label, for example `team=ml`; may be repeated',
  repeats: true,
}

export const selectorOption: OptionSpec = {
  flags: '-l, --selector <selector>',
  description: "only resources whose labels match, for example 'team=ml,stage!=test,gpu-job,!old'",
}

/** Parses `team=ml`. A label without `=` has an empty value. */
export function parseLabels(texts: string[]): Labels {
  return Object.fromEntries(
    texts.map((text) => {
      const [, key = '', value = ''] = /^([^=]*)=?(.*)$/.exec(text) ?? []
      if (!key) throw new UsageError(`${text} is not a label. Expected KEY=VALUE.`)
      return [key, value]
    }),
  )
}

export const labelsText = (labels: Labels): string =>
  Object.entries(labels)
    .map(([key, value]) => (value ? `${key}=${value}` : key))
    .join(',')

export const labelsColumn = {
  name: 'labels',
  value: (resource: { labels: Labels }) => labelsText(resource.labels),
  isExtra: true,
} as const
