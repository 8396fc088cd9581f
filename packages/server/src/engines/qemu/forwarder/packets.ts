/** The parts of Ethernet, ARP, IPv4, TCP and UDP that the access network needs. Readers return null for malformed input. */

const etherTypes = { ipv4: 0x0800, arp: 0x0806 }
export const protocols = { icmp: 1, tcp: 6, udp: 17 }
const timeToLive = 64
export const tcpFlags = { fin: 1, syn: 2, rst: 4, psh: 8, ack: 16 }
const ethernetBytes = 14
const ipBytes = 20
const tcpBytes = 20

export interface Ipv4Packet {
  protocol: number
  source: number
  destination: number
  payload: Buffer
}

export interface TcpSegment {
  sourcePort: number
  destinationPort: number
  sequence: number
  acknowledgement: number
  flags: number
  /** The value on the wire; the receiver scales it. */
  window: number
  maxSegmentBytes: number | null
  windowShift: number | null
  payload: Buffer
}

export interface UdpDatagram {
  sourcePort: number
  destinationPort: number
  payload: Buffer
}

/** Returns the requested address, if the frame is an ARP request. */
export function readArpRequest(frame: Buffer): number | null {
  const isRequest =
    frame.length >= 42 && frame.readUInt16BE(12) === etherTypes.arp && frame.readUInt16BE(20) === 1
  return isRequest ? frame.readUInt32BE(38) : null
}

export function arpReply(request: Buffer, ownMac: Buffer): Buffer {
  const frame = Buffer.from(request.subarray(0, 42))
  request.copy(frame, 0, 6, 12)
  ownMac.copy(frame, 6)
  frame.writeUInt16BE(2, 20)
  ownMac.copy(frame, 22)
  request.copy(frame, 28, 38, 42)
  request.copy(frame, 32, 22, 32)
  return frame
}

/** Fragments are dropped: TCP sends none, and larger datagrams are not supported. */
export function readIpv4(frame: Buffer): Ipv4Packet | null {
  if (frame.length < ethernetBytes + ipBytes || frame.readUInt16BE(12) !== etherTypes.ipv4) return null
  const ip = frame.subarray(ethernetBytes)
  const headerBytes = (ip[0]! & 15) * 4
  const totalBytes = ip.readUInt16BE(2)
  const isFragment = (ip.readUInt16BE(6) & 0x3fff) !== 0
  if (ip[0]! >> 4 !== 4 || headerBytes < ipBytes || isFragment) return null
  if (totalBytes < headerBytes || totalBytes > ip.length) return null
  return {
    protocol: ip[9]!,
    source: ip.readUInt32BE(12),
    destination: ip.readUInt32BE(16),
    payload: ip.subarray(headerBytes, totalBytes),
  }
}

export function readTcp({ payload }: Ipv4Packet): TcpSegment | null {
  if (payload.length < tcpBytes) return null
  const headerBytes = (payload[12]! >> 4) * 4
  if (headerBytes < tcpBytes || headerBytes > payload.length) return null
  return {
    sourcePort: payload.readUInt16BE(0),
    destinationPort: payload.readUInt16BE(2),
    sequence: payload.readUInt32BE(4),
    acknowledgement: payload.readUInt32BE(8),
    flags: payload[13]!,
    window: payload.readUInt16BE(14),
    ...readOptions(payload.subarray(tcpBytes, headerBytes)),
    payload: payload.subarray(headerBytes),
  }
}

function readOptions(options: Buffer): Pick<TcpSegment, 'maxSegmentBytes' | 'windowShift'> {
  const found: Pick<TcpSegment, 'maxSegmentBytes' | 'windowShift'> = {
    maxSegmentBytes: null,
    windowShift: null,
  }
  for (let at = 0; at < options.length && options[at] !== 0; ) {
    if (options[at] === 1) {
      at += 1
      continue
    }
    const length = options[at + 1] ?? 0
    if (length < 2 || at + length > options.length) break
    if (options[at] === 2 && length === 4) found.maxSegmentBytes = options.readUInt16BE(at + 2)
    if (options[at] === 3 && length === 3) found.windowShift = Math.min(options[at + 2]!, 14)
    at += length
  }
  return found
}

export function readUdp({ payload }: Ipv4Packet): UdpDatagram | null {
  if (payload.length < 8) return null
  const length = payload.readUInt16BE(4)
  if (length < 8 || length > payload.length) return null
  return {
    sourcePort: payload.readUInt16BE(0),
    destinationPort: payload.readUInt16BE(2),
    payload: payload.subarray(8, length),
  }
}

export interface Addresses {
  sourceMac: Buffer
  destinationMac: Buffer
  source: number
  destination: number
}

export function tcpFrame(
  addresses: Addresses,
  segment: Omit<TcpSegment, 'maxSegmentBytes' | 'windowShift'>,
  options: Buffer = Buffer.alloc(0),
): Buffer {
  const frame = ipv4Frame(addresses, protocols.tcp, tcpBytes + options.length + segment.payload.length)
  const tcp = frame.subarray(ethernetBytes + ipBytes)
  tcp.writeUInt16BE(segment.sourcePort, 0)
  tcp.writeUInt16BE(segment.destinationPort, 2)
  tcp.writeUInt32BE(segment.sequence, 4)
  tcp.writeUInt32BE(segment.acknowledgement, 8)
  tcp[12] = ((tcpBytes + options.length) / 4) << 4
  tcp[13] = segment.flags
  tcp.writeUInt16BE(segment.window, 14)
  options.copy(tcp, tcpBytes)
  segment.payload.copy(tcp, tcpBytes + options.length)
  tcp.writeUInt16BE(transportChecksum(addresses, protocols.tcp, tcp), 16)
  return frame
}

export function udpFrame(addresses: Addresses, datagram: UdpDatagram): Buffer {
  const frame = ipv4Frame(addresses, protocols.udp, 8 + datagram.payload.length)
  const udp = frame.subarray(ethernetBytes + ipBytes)
  udp.writeUInt16BE(datagram.sourcePort, 0)
  udp.writeUInt16BE(datagram.destinationPort, 2)
  udp.writeUInt16BE(udp.length, 4)
  datagram.payload.copy(udp, 8)
  udp.writeUInt16BE(transportChecksum(addresses, protocols.udp, udp) || 0xffff, 6)
  return frame
}

function ipv4Frame(addresses: Addresses, protocol: number, payloadBytes: number): Buffer {
  const frame = Buffer.alloc(ethernetBytes + ipBytes + payloadBytes)
  addresses.destinationMac.copy(frame, 0)
  addresses.sourceMac.copy(frame, 6)
  frame.writeUInt16BE(etherTypes.ipv4, 12)
  const ip = frame.subarray(ethernetBytes, ethernetBytes + ipBytes)
  ip[0] = 0x45
  ip.writeUInt16BE(ipBytes + payloadBytes, 2)
  ip.writeUInt16BE(0x4000, 6)
  ip[8] = timeToLive
  ip[9] = protocol
  ip.writeUInt32BE(addresses.source, 12)
  ip.writeUInt32BE(addresses.destination, 16)
  ip.writeUInt16BE(checksumOf(sum(ip)), 10)
  return frame
}

function transportChecksum({ source, destination }: Addresses, protocol: number, payload: Buffer): number {
  const pseudo = (source >>> 16) + (source & 0xffff) + (destination >>> 16) + (destination & 0xffff)
  return checksumOf(pseudo + protocol + payload.length + sum(payload))
}

function sum(bytes: Buffer): number {
  let total = 0
  const even = bytes.length & ~1
  for (let at = 0; at < even; at += 2) total += (bytes[at]! << 8) | bytes[at + 1]!
  return even < bytes.length ? total + (bytes[even]! << 8) : total
}

function checksumOf(total: number): number {
  let rest = total
  while (rest > 0xffff) rest = (rest & 0xffff) + Math.floor(rest / 0x10000)
  return ~rest & 0xffff
}
