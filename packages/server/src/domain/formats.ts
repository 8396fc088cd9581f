import {
  addressCount,
  emailPattern,
  eventTypes,
  hostNamePattern,
  imageNamePattern,
  imageSourcePattern,
  imageTagPattern,
  isEventSelector,
  isLabelKey,
  isLabelValue,
  isResourceName,
  isUuid,
  parseCidr,
  parseLabelSelector,
  plainTextPattern,
  resourceNameHint,
} from '@slipway/contract'
import { parseSshPublicKey } from '@slipway/contract/ssh-key'
import { numberToAddress } from './addresses.ts'
import { parsePort } from './firewall.ts'
import { isCloudConfig, scriptProblem } from './guest/scripts.ts'
import { didYouMean, nearest } from './nearest.ts'
import { parseDiskSize } from './sizes.ts'

const hostName = new RegExp(hostNamePattern)
const imageName = new RegExp(imageNamePattern)
const imageTag = new RegExp(imageTagPattern)
const imageSource = new RegExp(imageSourcePattern)
const plainText = new RegExp(plainTextPattern)
const email = new RegExp(emailPattern)

/**
 * String formats of request schemas that a pattern alone cannot express. Each function returns null for a
 * valid string. For an invalid one, it returns the part of the error message that follows the name of the
 * field, with a similar valid string if there is one.
 */
export const formats: Record<string, (text: string) => string | null> = {
  uuid: (text) => (isUuid(text) ? null : 'must be a UUID, such as 0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7e10'),
  'uuid-or-empty': (text) =>
    text === '' || isUuid(text) ? null : 'must be a UUID, or the empty string for none',
  'resource-name': (text) =>
    isResourceName(text)
      ? null
      : `must be ${resourceNameHint.slice(0, -1).toLowerCase()}${didYouMean(nearestName(text))}`,
  'host-name': (text) =>
    hostName.test(text)
      ? null
      : 'must be at most 63 lower-case letters, digits, . and -, starting with a letter or digit',
  'image-name': (text) =>
    imageName.test(text)
      ? null
      : 'must be a name of lower-case letters, digits, ., _ and -, such as ubuntu24.04, optionally followed by : and a version, such as ubuntu24.04:latest',
  'image-tag': (text) =>
    imageTag.test(text) ? null : 'must contain only lower-case letters, digits, ., _ and -, such as training',
  'image-source': (text) =>
    imageSource.test(text) ? null : 'must be a plain name of letters, digits, ., _, : and -, without a path',
  'email-address': (text) => (email.test(text) ? null : 'must be an e-mail address, such as ada@example.com'),
  'plain-text': (text) =>
    plainText.test(text)
      ? null
      : 'must be text without line breaks, control characters or bidirectional formatting characters',
  'disk-size': (text) =>
    parseDiskSize(text)
      ? null
      : `must be a whole number followed by GiB or TiB, such as 100GiB or 2TiB${didYouMean(nearestSize(text))}`,
  'ipv4-cidr': (text) =>
    text.includes('/') && parseCidr(text)
      ? null
      : `must be an IPv4 block whose host bits are all zero, such as 10.20.0.0/16${didYouMean(nearestBlock(text))}`,
  'ipv4-cidr-or-address': (text) =>
    text === '' || parseCidr(text)
      ? null
      : `must be an address, or an IPv4 block whose host bits are all zero${didYouMean(nearestBlock(text))}`,
  'port-range': (text) =>
    parsePort(text)
      ? null
      : `must be a port or a range, such as 22 or 3000-8080, within 1–65535${didYouMean(nearestPorts(text))}`,
  'event-types': (text) =>
    isEventSelector(text)
      ? null
      : `must be an event type, or a group of event types such as vm.*${didYouMean(nearest(text, eventTypes))}`,
  'ssh-public-key': (text) => {
    const key = parseSshPublicKey(text)
    return key.ok ? null : key.problem
  },
  'label-key': (text) =>
    isLabelKey(text)
      ? null
      : 'must have keys of at most 63 lower-case letters, digits, ., _, / and -, that begin and end with a letter or digit',
  'label-value': (text) => (isLabelValue(text) ? null : 'must be at most 63 letters, digits, ., _ and -'),
  'label-selector': (text) =>
    parseLabelSelector(text)
      ? null
      : 'must be a comma-separated list of conditions, such as team=ml, stage!=test, gpu-job or !old',
  'usage-grouping': (text) =>
    text === 'resource' || (text.startsWith('label:') && isLabelKey(text.slice('label:'.length)))
      ? null
      : 'must be resource, or label: followed by a label key, such as label:team',
  'startup-script': scriptProblem,
  'shutdown-script': (text) =>
    isCloudConfig(text) ? 'must be a script: only startup_script can be #cloud-config' : scriptProblem(text),
}

function nearestName(text: string): string {
  return text
    .slice(0, 200)
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .replace(/[^A-Za-z0-9_-]+/g, '-')
    .replace(/^[-_]+|-+$/g, '')
    .slice(0, 63)
}

/** Accepts `100 GB`, `100gib`, `0.5TiB` and `100` without a unit. */
function nearestSize(text: string): string | undefined {
  const parts = /^\s*(\d{1,6}(?:\.\d{1,6})?)\s*([gt]i?b?)?\s*$/i.exec(text)
  if (!parts) return undefined
  const [number, isTib] = [Number(parts[1]), parts[2]?.toLowerCase().startsWith('t')]
  if (number === 0) return '1GiB'
  if (isTib && Number.isInteger(number)) return `${number}TiB`
  return `${Math.ceil(isTib ? number * 1024 : number)}GiB`
}

/** Returns the block of this size that contains the address. */
function nearestBlock(text: string): string | undefined {
  const [address = '', prefix = ''] = text.split('/')
  const parsed = parseCidr(address)
  if (!parsed || !/^([12]?[0-9]|3[0-2])$/.test(prefix)) return undefined
  const size = addressCount(Number(prefix))
  return `${numberToAddress(parsed.base - (parsed.base % size))}/${prefix}`
}

function nearestPorts(text: string): string | undefined {
  const ports = text.match(/\d+/g)?.map((digits) => Math.min(Math.max(Number(digits), 1), 65_535))
  if (!ports || ports.length > 2) return undefined
  return [...new Set(ports)].sort((a, b) => a - b).join('-')
}
