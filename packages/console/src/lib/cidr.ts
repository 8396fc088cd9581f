/** Whether a block (or bare address) holds an address. */
export function holds(cidr: string, address: string): boolean {
  const [base = '', length = '32'] = cidr.split('/')
  const block = numberOf(base)
  const wanted = numberOf(address)
  if (block === null || wanted === null) return false
  const size = 2 ** (32 - Number(length))
  return Math.floor(block / size) === Math.floor(wanted / size)
}

function numberOf(address: string): number | null {
  const parts = address.split('.').map(Number)
  if (parts.length !== 4 || parts.some((part) => !(part >= 0 && part <= 255))) return null
  return parts.reduce((sum, part) => sum * 256 + part, 0)
}
