/**
 * The built-in payment form moves no money. It knows only these test numbers. Any other number is rejected and
 * never stored.
 */
export const testCards = [
  {
    number: '4242424242424242',
    brand: 'Visa',
    behavior: 'works',
    meaning: 'is accepted and pays every invoice',
  },
  {
    number: '4000000000000341',
    brand: 'Visa',
    behavior: 'declined-later',
    meaning: 'is accepted, then declined when an invoice is due',
  },
  { number: '4000000000000002', brand: 'Visa', behavior: 'declined', meaning: 'is declined' },
  { number: '4000000000000069', brand: 'Visa', behavior: 'expired', meaning: 'has expired' },
] as const

export type CardProblem = 'unknown' | 'declined' | 'expired' | 'bad-expiry'

/** The stored part of a card. */
export interface Card {
  reference: string
  brand: string
  last4: string
  expiresMonth: number
  expiresYear: number
}

export type CardReading = { ok: true; card: Card } | { ok: false; problem: CardProblem }

/** `expiry` is, for example, `11/29` or `11 / 2029`. A card is valid until the end of that month. */
export function readTestCard(number: string, expiry: string, today: string): CardReading {
  const digits = number.replace(/[\s-]/g, '')
  const known = testCards.find((card) => card.number === digits)
  if (!known) return { ok: false, problem: 'unknown' }
  const parts = /^\s*(0?[1-9]|1[0-2])\s*\/\s*(20)?([0-9]{2})\s*$/.exec(expiry)
  if (!parts) return { ok: false, problem: 'bad-expiry' }
  if (known.behavior === 'declined') return { ok: false, problem: 'declined' }
  const card: Card = {
    reference: `test-${known.behavior}`,
    brand: known.brand,
    last4: digits.slice(-4),
    expiresMonth: Number(parts[1]),
    expiresYear: 2000 + Number(parts[3]),
  }
  if (known.behavior === 'expired' || hasExpired(card, today)) return { ok: false, problem: 'expired' }
  return { ok: true, card }
}

export function hasExpired(card: Pick<Card, 'expiresMonth' | 'expiresYear'>, today: string): boolean {
  const lastValid = `${card.expiresYear}-${String(card.expiresMonth).padStart(2, '0')}`
  return today.slice(0, 7) > lastValid
}

export const paysWhenCharged = (reference: string): boolean => reference === 'test-works'
