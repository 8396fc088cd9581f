/** What frequent XID errors of the NVIDIA driver mean. */
const texts: Record<number, string> = {
  13: 'exception of a program',
  31: 'invalid memory access by a program',
  43: 'work of a program stopped',
  45: 'work of a program removed',
  48: 'uncorrectable memory error',
  62: 'internal controller halted',
  63: 'memory row replaced',
  64: 'memory row could not be replaced',
  74: 'NVLink error',
  79: 'fell off the PCIe bus',
  92: 'many corrected memory errors',
  94: 'contained memory error',
  95: 'uncontained memory error',
  119: 'GSP does not respond',
  120: 'GSP error',
}

/** Returns the XID and, if it is known, its meaning: "XID 79: fell off the PCIe bus". */
export function xidText(xid: number): string {
  if (xid === 0) return 'lost without an XID'
  const text = texts[xid]
  return text ? `XID ${xid}: ${text}` : `XID ${xid}`
}
