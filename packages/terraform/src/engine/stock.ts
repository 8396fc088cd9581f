import type { ApiError, Offer } from '@slipway/sdk'
import type { Values } from '../values/types.ts'
import type { Problem } from './diagnostics.ts'
import { listRecords } from './records.ts'
import { projectOf, type Session } from './session.ts'

const maxOffers = 5

/** Describes an out-of-stock error, with the locations or types that are in stock. */
export async function outOfStockProblem(
  session: Session,
  error: ApiError,
  doing: string,
  state: Values,
): Promise<Problem> {
  const where = await stockText(session, error, state).catch(() => '')
  return {
    summary: `Cannot ${doing}: out of stock`,
    detail: `${error.message} ${where}`.trim(),
    attribute: 'location',
  }
}

async function stockText(session: Session, error: ApiError, state: Values): Promise<string> {
  const { availableLocations } = error
  if (availableLocations.length > 0)
    return `In stock in: ${availableLocations.join(', ')}. Change location, or set location = "any".`
  const target = { project_id: projectOf(session, state.project_id), available: true }
  const offers = await listRecords(session, 'offerList', target)
  if (offers.length === 0) return 'No VM type is in stock in any location.'
  const named = (offers as unknown as Offer[])
    .slice(0, maxOffers)
    .map(({ type, location, usd_per_hour }) => `${type} in ${location} (${usd_per_hour ?? '?'} USD per hour)`)
  return `This type is out of stock in every location. In stock: ${named.join(', ')}.`
}
