import { isUuid as hasForm } from '@slipway/contract'
import { v7 } from 'uuid'

/** A new id: time-ordered, so that the newest first is the greatest first. */
export const uuid = (): string => v7()

/** In any letter case: whoever compares ids by itself brings them to lower case first. */
export const isUuid = (text: string): boolean => hasForm(text)

export const zeroUuid = '00000000-0000-0000-0000-000000000000'
