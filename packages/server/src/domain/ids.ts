import { v7 } from 'uuid'

/** A new id: time-ordered, so that the newest first is the greatest first. */
export const uuid = (): string => v7()

const pattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
export const isUuid = (text: string): boolean => pattern.test(text)
