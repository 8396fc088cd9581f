/** Returns the time since or until a point in time, in one unit: `3m`, `2h`, `5d`. */
export function ageOf(timestamp: string, now = Date.now()): string {
  if (!timestamp) return ''
  return durationText(Math.abs(now - Date.parse(timestamp)))
}

export function durationText(durationMs: number): string {
  const seconds = Math.max(0, Math.round(durationMs / 1000))
  if (seconds < 60) return `${seconds}s`
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m`
  if (seconds < 48 * 3600) return `${Math.floor(seconds / 3600)}h`
  return `${Math.floor(seconds / 86400)}d`
}

/** Formats dollars with two decimals, amounts below a cent with five, and an unset price as a dash. */
export function usd(amount: number | null | undefined): string {
  if (amount === null || amount === undefined) return '-'
  const isTiny = amount !== 0 && Math.abs(amount) < 0.01
  const digits = isTiny ? 5 : 2
  return `$${amount.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits })}`
}

export const quantityText = (quantity: number): string =>
  quantity.toLocaleString('en-US', { maximumFractionDigits: 2 })

/** `a40_gpus` → `a40 gpus` */
export const words = (name: string): string => name.replaceAll('_', ' ').toLowerCase()

/** Draws a chart bar with a resolution of an eighth of a character. */
export function bar(share: number, width: number): string {
  const eighths = Math.round(Math.min(1, Math.max(0, share)) * width * 8)
  const rest = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'][eighths % 8]!
  const text = '█'.repeat(Math.floor(eighths / 8)) + rest
  return share > 0 && text === '' ? '▏' : text
}
