import { isLabelKey, isLabelValue } from '@slipway/contract/labels'
import { maxLabels } from '@slipway/contract/names'

type Labels = Record<string, string>

export const labelText = (key: string, value: string): string => (value ? `${key}=${value}` : key)

export const labelsText = (labels: Labels): string =>
  Object.entries(labels)
    .map(([key, value]) => labelText(key, value))
    .join(', ')

/** Returns the arguments of `slipway vm label` that turn the old labels into the new ones. */
export const labelOptions = (old: Labels, labels: Labels): string => {
  const set = Object.entries(labels).filter(([key, value]) => old[key] !== value)
  const removed = Object.keys(old).filter((key) => !(key in labels))
  return [
    ...set.map(([key, value]) => labelText(key, value)),
    ...(removed.length > 0 ? [`--remove ${removed.join(',')}`] : []),
  ].join(' ')
}

/** Parses `team=ml, gpu-job`. `problem` is empty if the text is valid. */
export function parseLabels(text: string): { labels: Labels; problem: string } {
  const parts = text.split(/[,\s]+/).filter(Boolean)
  const labels: Labels = {}
  for (const part of parts) {
    const [, key = '', value = ''] = /^([^=]*)=?(.*)$/.exec(part) ?? []
    if (!isLabelKey(key))
      return {
        labels,
        problem: `${part}: keys can contain lowercase letters, digits, periods, underscores, slashes and hyphens.`,
      }
    if (!isLabelValue(value))
      return {
        labels,
        problem: `${part}: values can contain letters, digits, periods, underscores and hyphens.`,
      }
    labels[key] = value
  }
  const hasTooMany = Object.keys(labels).length > maxLabels
  return { labels, problem: hasTooMany ? `Enter at most ${maxLabels} labels.` : '' }
}
