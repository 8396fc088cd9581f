import { isLabelKey, isLabelValue, parseLabelSelector } from '@slipway/contract'

export const labelKeyProblem = (text: string): string | null =>
  isLabelKey(text)
    ? null
    : 'must have keys of lower-case letters, digits, ., _, / and -, at most 63, that begin and end with a letter or digit'

export const labelValueProblem = (text: string): string | null =>
  isLabelValue(text) ? null : 'must be letters, digits, ., _ and -, at most 63'

export const labelSelectorProblem = (text: string): string | null =>
  parseLabelSelector(text)
    ? null
    : 'must be conditions such as team=ml, stage!=test, gpu-job or !old, comma-separated'
