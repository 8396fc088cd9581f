import { blockContains, parseCidr } from '@slipway/contract'
import { numberToAddress } from '../../../domain/addresses.ts'
import type { CompiledRule, PortRange } from '../../../domain/firewall.ts'
import type { GuestNetwork } from './guest-network.ts'

/** Patterns for the names of the agent's bridges and of their VXLAN ports. */
const bridges = '"sl*"'
const tunnels = '"sv*"'

/**
 * Returns the whole packet filter of a member, for `nft -f`, which applies it in one transaction. A packet
 * between guests needs an allow rule of the sender and one of the receiver. Each rule is checked on the
 * member that runs its guest. Rules are checked for every packet in the direction in which the connection was
 * opened, so that removing a rule also ends open connections. Replies are accepted. A packet from or to one
 * of the agent's bridges is dropped if it belongs to no guest of this member.
 */
export function packetFilter(guests: GuestNetwork[]): string {
  const subnets = [...new Map(guests.map((guest) => [guest.bridge, guest])).values()]
  const gateways = [...new Set(guests.map(({ gateway }) => gateway))]
  const publicGuests = guests.filter(({ publicAddress }) => publicAddress !== '')
  return `table inet slipway {}
delete table inet slipway
table inet slipway {
${verdictMap('egress', guests)}
${verdictMap('ingress', guests)}
  map public { type ipv4_addr : ipv4_addr; ${elements(publicGuests.map((guest) => `${guest.publicAddress} : ${guest.privateAddress}`))} }
  set guests { type ipv4_addr; ${elements(guests.map(({ privateAddress }) => privateAddress))} }
${guests.map(guestChains).join('')}
  chain forward {
    type filter hook forward priority filter; policy accept;
    iifname != ${bridges} oifname != ${bridges} accept
    meta nfproto ipv6 drop
    ct state established,related ct direction reply accept
    ct state invalid drop
    ip saddr vmap @egress
    ip daddr vmap @ingress
    ip saddr @guests accept
    drop
  }
  chain input {
    type filter hook input priority filter; policy accept;
    iifname != ${bridges} accept
    meta nfproto ipv6 drop
    ct state established,related ct direction reply accept
    udp dport { 53, 67 } accept
    tcp dport 53 accept
    icmp type echo-request accept
    ip saddr vmap @egress
    ip saddr @guests accept
    drop
  }
  chain prerouting {
    type nat hook prerouting priority dstnat; policy accept;
    dnat ip to ip daddr map @public
  }
  chain output {
    type nat hook output priority -100; policy accept;
    dnat ip to ip daddr map @public
  }
  chain postrouting {
    type nat hook postrouting priority srcnat; policy accept;
${subnets.map(({ bridge, subnetCidr }) => `    ip saddr ${subnetCidr} oifname != "${bridge}" masquerade\n    ip saddr ${subnetCidr} oifname "${bridge}" ct status dnat masquerade\n`).join('')}  }
}
table bridge slipway {}
delete table bridge slipway
table bridge slipway {
  set gateways { type ipv4_addr; ${elements(gateways)} }
  chain prerouting {
    type filter hook prerouting priority filter; policy accept;
    iifname != ${tunnels} accept
    arp daddr ip @gateways drop
    arp saddr ip @gateways drop
    udp dport { 67, 68 } drop
  }
}
`
}

const elements = (list: string[]) => (list.length > 0 ? `elements = { ${list.join(', ')} };` : '')

function verdictMap(direction: CompiledRule['direction'], guests: GuestNetwork[]): string {
  const jump = direction === 'egress' ? 'jump' : 'goto'
  const entries = guests.map(
    ({ privateAddress }) => `${privateAddress} : ${jump} ${chainOf(direction, privateAddress)}`,
  )
  return `  map ${direction} { type ipv4_addr : verdict; ${elements(entries)} }`
}

const chainOf = (direction: string, address: string) => `${direction}-${address.replaceAll('.', '-')}`

/**
 * After an allow rule of the sender, the rules of the receiver are checked. An allow rule of the receiver
 * accepts the packet.
 */
function guestChains({ vmId, privateAddress, firewall }: GuestNetwork): string {
  const linesOf = (direction: CompiledRule['direction']) =>
    firewall.rules
      .filter((rule) => rule.direction === direction)
      .flatMap((rule) => ruleLines(rule))
      .map((line) => `    ${line}\n`)
      .join('')
  return (['egress', 'ingress'] as const)
    .map((direction) => {
      const name = chainOf(direction, privateAddress)
      return `  chain ${name} { comment "${vmId.replaceAll(/[^0-9a-zA-Z-]/g, '')}"\n${linesOf(direction)}    drop\n  }\n`
    })
    .join('')
}

function ruleLines({
  action,
  direction,
  protocols,
  peers,
  sourcePorts,
  destinationPorts,
}: CompiledRule): string[] {
  const side = direction === 'ingress' ? 'saddr' : 'daddr'
  const blocks = outermost(peers)
  if (blocks.length === 0) return []
  const verdict = action === 'deny' ? 'drop' : direction === 'egress' ? 'return' : 'accept'
  return protocols.map((protocol) => {
    const ports =
      protocol === 'icmp'
        ? ['meta l4proto icmp']
        : [
            `meta l4proto ${protocol}`,
            ...(sourcePorts.length > 0 ? [`${protocol} sport ${portSet(sourcePorts)}`] : []),
            ...(destinationPorts.length > 0 ? [`${protocol} dport ${portSet(destinationPorts)}`] : []),
          ]
    return [`ip ${side} { ${blocks.join(', ')} }`, ...ports, verdict].join(' ')
  })
}

/** Omits blocks that are part of another block, because nft rejects a set with overlapping blocks. */
function outermost(peers: string[]): string[] {
  const blocks = peers
    .flatMap((text) => parseCidr(text) ?? [])
    .sort((a, b) => a.base - b.base || a.prefix - b.prefix)
  const kept: typeof blocks = []
  for (const block of blocks) if (!kept.length || !blockContains(kept.at(-1)!, block)) kept.push(block)
  return kept.map(({ base, prefix }) => `${numberToAddress(base)}/${prefix}`)
}

function portSet(ranges: PortRange[]): string {
  const merged: PortRange[] = []
  for (const [from, to] of ranges.toSorted((a, b) => a[0] - b[0])) {
    const last = merged.at(-1)
    if (last && from <= last[1] + 1) last[1] = Math.max(last[1], to)
    else merged.push([from, to])
  }
  return `{ ${merged.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`)).join(', ')} }`
}
