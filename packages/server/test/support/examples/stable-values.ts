import { createHash } from 'node:crypto'

/** Returns letters and digits that depend only on the seed. */
const lettersOf = (seed: string, length: number) =>
  createHash('sha512')
    .update(seed)
    .digest('base64')
    .replace(/[^A-Za-z0-9]/g, '')
    .slice(0, length)

interface Kind {
  /** Finds the values, between quotes or other characters that are not replaced. */
  pattern: RegExp
  /** Returns the replacement for the value that was found as number `index` of its kind. */
  fixedValue: (index: number, found: string) => string
  /** If true, only the matches are replaced; otherwise every occurrence of a found value is. */
  isInPlace?: boolean
}

const secret =
  (prefix: string) =>
  (index: number, found: string): string =>
    prefix + lettersOf(`${prefix}${index}`, found.length - prefix.length)

const idOf = (index: number) =>
  `0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7${(index + 1).toString(16).padStart(3, '0')}`
/** The serial number of a disk is the end of its id. */
const serialOf = (id: string) => id.replaceAll('-', '').slice(-20)

/** The kinds of values that differ in every run. Values of a kind are numbered in the order in which they first appear. */
const kinds: Kind[] = [
  { pattern: /(?<![0-9a-f])[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![0-9a-f])/g, fixedValue: idOf },
  { pattern: /(?<="address":")198\.18\.[\d.]+/g, fixedValue: (index) => `198.18.0.${index + 7}` },
  { pattern: /(?<=address":")172\.27\.[\d.]+/g, fixedValue: (index) => `172.27.0.${index + 5}` },
  { pattern: /\b02(:[0-9a-f]{2}){5}\b/g, fixedValue: (index) => `02:1d:7b:00:00:0${index + 1}` },
  { pattern: /slp_[A-Za-z0-9]{8}(?![a-z])/g, fixedValue: secret('slp_') },
  { pattern: /(?<=slp_[A-Za-z0-9]{8}_)[A-Za-z0-9]+/g, fixedValue: secret('') },
  ...['slpa_', 'slpb_', 'slpc_', 'slpr_', 'slpt_'].map((prefix) => ({
    pattern: new RegExp(`${prefix}[\\w-]{43}`, 'g'),
    fixedValue: secret(prefix),
  })),
  {
    pattern: /whsec_[A-Za-z0-9+/]{43}=/g,
    fixedValue: (index) => `${secret('whsec_')(index, 'x'.repeat(49))}=`,
  },
  { pattern: /(?<=[?&]secret=)[A-Z2-7]{32}/g, fixedValue: () => 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP' },
  { pattern: /(?<="code":")\d{6}(?=")/g, fixedValue: () => '492039' },
  {
    pattern: /(?<=")[a-z0-9]{4}(-[a-z0-9]{4}){3}(?=")/g,
    fixedValue: (index) =>
      lettersOf(`recovery${index}`, 16)
        .toLowerCase()
        .replace(/.{4}(?=.)/g, '$&-'),
  },
  { pattern: /(?<=[?&](state|nonce|code_challenge)=)[\w-]{43}/g, fixedValue: secret('') },
  { pattern: /(?<="next_page_token":")[^"]+/g, fixedValue: () => lettersOf('page', 20) },
  // These times depend on when a worker inspects the hosts.
  {
    pattern: /(?<="last_report_at":"2026-)[^"]+/g,
    fixedValue: () => '10-30T09:00:00.000Z',
    isInPlace: true,
  },
  // The process measures the times of a step, while the clock of the database is frozen.
  {
    pattern: /(?<="name":"boot","state":"done","started_at":"[^"]{17})[^"]+/g,
    fixedValue: () => '00.000Z',
    isInPlace: true,
  },
  {
    pattern: /(?<="name":"boot","state":"done","started_at":"[^"]*","completed_at":"[^"]{17})[^"]+/g,
    fixedValue: () => '02.318Z',
    isInPlace: true,
  },
  {
    pattern: /(?<="name":"boot","state":"failed","started_at":"([^"]*","completed_at":")?[^"]{17})[^"]+/g,
    fixedValue: () => '51.031Z',
    isInPlace: true,
  },
]

/** Limits lists of records to their first two, which are enough for an example. */
export function shortenLists(value: unknown): unknown {
  if (Array.isArray(value)) {
    const isOfRecords = value.every((entry) => typeof entry === 'object' && entry !== null)
    return (isOfRecords ? value.slice(0, 2) : value).map(shortenLists)
  }
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, shortenLists(member)]))
}

/** Returns the value with run-specific parts replaced; `addresses` maps servers of this run to fixed ones. */
export function stabilize<T>(value: T, addresses: Record<string, string>): T {
  let text = JSON.stringify(value)
  for (const [found, fixed] of Object.entries(addresses)) {
    text = text.replaceAll(found, fixed).replaceAll(encodeURIComponent(found), encodeURIComponent(fixed))
  }
  for (const { pattern, fixedValue, isInPlace } of kinds) {
    const found = [...new Set(Array.from(text.matchAll(pattern), ([match]) => match))]
    for (const [index, each] of found.entries()) {
      const fixed = fixedValue(index, each)
      text = text.replaceAll(isInPlace ? pattern : wholeWord(each), fixed)
      if (fixedValue === idOf) text = text.replaceAll(serialOf(each), serialOf(fixed))
    }
  }
  return JSON.parse(text)
}

/** Matches the text unless it is only the beginning of a longer word: an address may be the beginning of another. */
const wholeWord = (text: string) => new RegExp(`${text.replace(/[.+]/g, '\\$&')}(?![0-9A-Za-z])`, 'g')
