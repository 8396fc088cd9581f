import { uuidPattern } from '@slipway/contract'
import { v7 } from 'uuid'

/** A new id: time-ordered, so that the newest first is the greatest first. */
export const uuid = (): string => v7()

const pattern = new RegExp(uuidPattern)

/** As ids are stored and compared: in lower case. */
export const isUuid = (text: string): boolean => pattern.test(text)
