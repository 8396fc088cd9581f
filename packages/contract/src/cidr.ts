/**
 * An IPv4 block. No library is used, because libraries accept `010.0.0.1` (as octal) and `1.2`; this parser
 * rejects both.
 */
export interface Cidr {
  base: number
  prefix: number
}

const octet = '(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])'
const dotted = `${octet}\\.${octet}\\.${octet}\\.${octet}`
const prefixDigits = '(3[0-2]|[12]?[0-9])'
const address = new RegExp(`^${dotted}$`)
const prefixLength = new RegExp(`^${prefixDigits}$`)

/** Checks the format only; `parseCidr` also checks that the host bits are zero. */
export const cidrPattern = `^${dotted}/${prefixDigits}$`
/** Like `cidrPattern`, but also matches a bare address and an empty string. */
export const cidrOrAddressPattern = `^(${dotted}(/${prefixDigits})?)?$`

export const anywhere = '0.0.0.0/0'

export const addressCount = (prefix: number): number => 2 ** (32 - prefix)

/** Parses a block whose host bits are zero, or a bare address (a /32). Returns null for anything else. */
export function parseCidr(text: string): Cidr | null {
  const slash = text.indexOf('/')
  const octets = address.exec(slash < 0 ? text : text.slice(0, slash))
  if (!octets) return null
  const base = octets.slice(1).reduce((sum, part) => sum * 256 + Number(part), 0)
  if (slash < 0) return { base, prefix: 32 }
  const prefixText = text.slice(slash + 1)
  if (!prefixLength.test(prefixText)) return null
  const prefix = Number(prefixText)
  return base % addressCount(prefix) === 0 ? { base, prefix } : null
}

/** Returns whether a block contains another block or an address; false for anything else. */
export function cidrContains(outer: string, innerCidrOrAddress: string): boolean {
  const [block, inner] = [parseCidr(outer), parseCidr(innerCidrOrAddress)]
  return block !== null && inner !== null && blockContains(block, inner)
}

export function blockContains(outer: Cidr, inner: Cidr): boolean {
  return (
    inner.base >= outer.base &&
    inner.base + addressCount(inner.prefix) <= outer.base + addressCount(outer.prefix)
  )
}
