import { isLabelKey, isLabelValue } from '@slipway/contract/labels'
import { maxLabels } from '@slipway/contract/names'

type Labels = Record<string, string>

export const labelText = (key: string, value: string): string => (value ? `${key}=${value}` : key)

export const labelsText = (labels: Labels): string =>
  Object.entries(labels)
    .map(([key, value]) => labelText(key, value))
    .join(', ')

/** Parses `team=ml, gpu-job`. `problem` is empty if the text is valid. */
export function parseLabels(text: string): { labels: Labels; problem: string } {
  const parts = text.split(/[,\s]+/).filter(Boolean)
  const labels: Labels = {}
  for (const part of parts) {
    const [, key = '', value = ''] = /^([^=]*)=?(.*)$/.exec(part) ?? []
    if (!isLabelKey(key))
      return { labels, problem: `${part}: keys can contain lowercase letters, digits, ., _, / and -.` }
    if (!isLabelValue(value))
      return { labels, problem: `${part}: values can contain letters, digits, ., _ and -.` }
    labels[key] = value
  }
  const hasTooMany = Object.keys(labels).length > maxLabels
  return { labels, problem: hasTooMany ? `Enter at most ${maxLabels} labels.` : '' }
}
