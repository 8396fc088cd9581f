import type { Labels } from '@slipway/contract'
import { labelKeyPattern, labelValuePattern } from '@slipway/contract'

const keyForm = new RegExp(labelKeyPattern)
const valueForm = new RegExp(labelValuePattern)

/** What a selector asks of labels. Empty lists ask nothing. */
export interface LabelSelector {
  /** They have all of these pairs, */
  pairs: Labels[]
  /** none of these, */
  pairsAbsent: Labels[]
  /** all of these keys, */
  keys: string[]
  /** and none of these. */
  keysAbsent: string[]
}

export const labelKeyProblem = (text: string): string | null =>
  keyForm.test(text)
    ? null
    : 'must have keys of lower-case letters, digits, ., _, / and -, at most 63, that begin and end with a letter or digit'

export const labelValueProblem = (text: string): string | null =>
  valueForm.test(text) ? null : 'must be letters, digits, ., _ and -, at most 63'

export const isLabelKey = (text: string): boolean => keyForm.test(text)

/** Reads `team=ml,stage!=test,gpu-job,!old`; null when it is no selector. */
export function parseLabelSelector(text: string): LabelSelector | null {
  const selector: LabelSelector = { pairs: [], pairsAbsent: [], keys: [], keysAbsent: [] }
  for (const condition of text.split(',').map((part) => part.trim())) {
    const [, not = '', key = '', operator = '', value = ''] = /^(!?)([^=!]*)(!?=|)(.*)$/.exec(condition) ?? []
    if (!keyForm.test(key) || !valueForm.test(value) || (operator === '' ? value !== '' : not !== ''))
      return null
    if (operator !== '') selector[operator === '=' ? 'pairs' : 'pairsAbsent'].push({ [key]: value })
    else selector[not === '' ? 'keys' : 'keysAbsent'].push(key)
  }
  return selector
}

export const labelSelectorProblem = (text: string): string | null =>
  parseLabelSelector(text)
    ? null
    : 'must be conditions such as team=ml, stage!=test, gpu-job or !old, comma-separated'
