import { labelKeyPattern, labelValuePattern } from './names.ts'

const keyForm = new RegExp(labelKeyPattern)
const valueForm = new RegExp(labelValuePattern)

export const isLabelKey = (text: string): boolean => keyForm.test(text)
export const isLabelValue = (text: string): boolean => valueForm.test(text)

/** What a selector asks of labels. Empty lists ask nothing. */
export interface LabelSelector {
  /** They have all of these pairs, */
  pairs: Record<string, string>[]
  /** none of these, */
  pairsAbsent: Record<string, string>[]
  /** all of these keys, */
  keys: string[]
  /** and none of these. */
  keysAbsent: string[]
}

/** Reads `team=ml,stage!=test,gpu-job,!old`; null when it is no selector. */
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

/** Matches records as the lists of the service do. */
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
