import { imageNamePattern } from '@slipway/contract'

/** A name without a version refers to the latest version. */
export function fullImageName(name: string): string {
  return name.includes(':') ? name : `${name}:latest`
}

const namePattern = new RegExp(imageNamePattern)

export const isImageName = (name: string): boolean => namePattern.test(name)
