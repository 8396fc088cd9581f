/**
 * Money is an exact fraction, without floats or rounding, until it is shown or invoiced. Quantities are
 * integers (VM-milliseconds, GB-milliseconds), and prices are decimal text per unit and hour. Halves are
 * rounded away from zero, so that a credit is rounded like the charge that it reverses.
 */
export interface Exact {
  /** The fraction is in lowest terms with a positive denominator, so that equal amounts are deeply equal. */
  numerator: bigint
  denominator: bigint
}

export const msPerHour = 3_600_000n
export const ZERO: Exact = { numerator: 0n, denominator: 1n }

const decimalPattern = /^(-?)([0-9]+)(?:\.([0-9]+))?$/
const centDecimals = 2

function absolute(n: bigint): bigint {
  return n < 0n ? -n : n
}

function exact(numerator: bigint, denominator: bigint): Exact {
  let [a, b] = [absolute(numerator), denominator]
  while (b !== 0n) [a, b] = [b, a % b]
  return { numerator: numerator / a, denominator: denominator / a }
}

/** Reads decimal text such as `0.00013`, the form in which PostgreSQL returns `numeric`. */
export function parseDecimal(text: string): Exact {
  const parts = decimalPattern.exec(text)
  if (!parts) throw new RangeError(`not a decimal number: ${text}`)
  const [, sign, whole = '', fraction = ''] = parts
  return exact(BigInt(`${sign}${whole}${fraction}`), 10n ** BigInt(fraction.length))
}

export function costOf(quantityMs: bigint, usdPerUnitHour: string): Exact {
  const price = parseDecimal(usdPerUnitHour)
  return exact(price.numerator * quantityMs, price.denominator * msPerHour)
}

/**
 * Converts a product of USD per hour and milliseconds to USD. Priced usage is added up as such products,
 * because they are exact.
 */
export function usdOfMs(usdMs: string): Exact {
  const sum = parseDecimal(usdMs)
  return exact(sum.numerator, sum.denominator * msPerHour)
}

/** Returns the cost of these units for one hour. */
export function hourlyCost(units: number, usdPerUnitHour: string): Exact {
  return costOf(BigInt(units) * msPerHour, usdPerUnitHour)
}

export function addExact(...amounts: Exact[]): Exact {
  return amounts.reduce(
    (a, b) =>
      a.denominator === b.denominator
        ? exact(a.numerator + b.numerator, a.denominator)
        : exact(a.numerator * b.denominator + b.numerator * a.denominator, a.denominator * b.denominator),
    ZERO,
  )
}

export function timesExact(amount: Exact, factor: bigint): Exact {
  return exact(amount.numerator * factor, amount.denominator)
}

/** Returns a negative number if a is less than b, zero if they are equal, and a positive number if a is greater. */
export function compareExact(a: Exact, b: Exact): number {
  const difference = a.numerator * b.denominator - b.numerator * a.denominator
  return difference < 0n ? -1 : difference > 0n ? 1 : 0
}

/** Returns the amount in units of 10^-decimals, rounded to a whole number. */
function roundTo(amount: Exact, decimals: number): bigint {
  const scaled = absolute(amount.numerator) * 10n ** BigInt(decimals)
  const rounded = (2n * scaled + amount.denominator) / (2n * amount.denominator)
  return amount.numerator < 0n ? -rounded : rounded
}

function decimalText(units: bigint, decimals: number): string {
  const digits = absolute(units)
    .toString()
    .padStart(decimals + 1, '0')
  const whole = digits.slice(0, digits.length - decimals)
  const fraction = digits.slice(digits.length - decimals)
  return `${units < 0n ? '-' : ''}${whole}${decimals > 0 ? `.${fraction}` : ''}`
}

/** Rounds an invoice line; lines are added up in cents. */
export function toCents(amount: Exact): bigint {
  return roundTo(amount, centDecimals)
}

export function centsToUsd(cents: bigint): string {
  return decimalText(cents, centDecimals)
}

/** Returns rounded text for display, such as `0.133120`. Do not calculate with it. */
export function displayUsd(amount: Exact, decimals = 6): string {
  return decimalText(roundTo(amount, decimals), decimals)
}

/** Converts unit-milliseconds to unit-hours, for display. */
export function quantityHours(ms: bigint, decimals = 6): string {
  return decimalText(roundTo(exact(ms, msPerHour), decimals), decimals)
}
