import { labelKeyPattern, labelValuePattern } from './names.ts'

const keyForm = new RegExp(labelKeyPattern)
const valueForm = new RegExp(labelValuePattern)

export const isLabelKey = (text: string): boolean => keyForm.test(text)
export const isLabelValue = (text: string): boolean => valueForm.test(text)

/** The conditions of a selector. An empty list adds no condition. */
export interface LabelSelector {
  /** The labels contain all of these pairs. */
  pairs: Record<string, string>[]
  /** The labels contain none of these pairs. */
  pairsAbsent: Record<string, string>[]
  /** The labels contain all of these keys. */
  keys: string[]
  /** The labels contain none of these keys. */
  keysAbsent: string[]
}

/** Parses `team=ml,stage!=test,gpu-job,!old`. Returns null if the text is not a selector. */
export function parseLabelSelector(text: string): LabelSelector | null {
  const selector: LabelSelector = { pairs: [], pairsAbsent: [], keys: [], keysAbsent: [] }
  for (const condition of text.split(',').map((part) => part.trim())) {
    const [, not = '', key = '', operator = '', value = ''] = /^(!?)([^=!]*)(!?=|)(.*)$/.exec(condition) ?? []
    if (!isLabelKey(key) || !isLabelValue(value) || (operator === '' ? value !== '' : not !== '')) return null
    if (operator !== '') selector[operator === '=' ? 'pairs' : 'pairsAbsent'].push({ [key]: value })
    else selector[not === '' ? 'keys' : 'keysAbsent'].push(key)
  }
  return selector
}

/** Matches labels in the same way as the service does when it filters a list. */
export function isSelected(labels: Record<string, string>, selector: LabelSelector): boolean {
  const has = (pair: Record<string, string>) =>
    Object.entries(pair).every(([key, value]) => labels[key] === value)
  return (
    selector.pairs.every(has) &&
    !selector.pairsAbsent.some(has) &&
    selector.keys.every((key) => key in labels) &&
    !selector.keysAbsent.some((key) => key in labels)
  )
}
