import { isUuid as hasForm } from '@slipway/contract'
import { v7 } from 'uuid'

/** Returns a new id. Ids are ordered by time: the newest is the greatest. */
export const uuid = (): string => v7()

/** Accepts upper and lower case, so compare ids in lower case. */
export const isUuid = (text: string): boolean => hasForm(text)

export const zeroUuid = '00000000-0000-0000-0000-000000000000'
