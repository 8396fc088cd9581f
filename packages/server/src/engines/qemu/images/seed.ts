import { dropbearPrivateKey } from '../../../domain/guest/host-key.ts'
import { groupEnvironment, groupHosts, groupKnownHosts } from '../../../domain/guest/rendezvous.ts'
import { runnableScript } from '../../../domain/guest/scripts.ts'
import { hostnameOf, userData } from '../../cloud-init.ts'
import type { VmSpec } from '../../engine.ts'
import { accessNetwork } from '../process/access-network.ts'
import { accessMac } from '../process/machine.ts'
import { isoImage } from './iso.ts'

/**
 * The NoCloud seed. Cloud images read `meta-data`, `user-data` and `network-config`; the mini guest, which has no YAML
 * parser, reads the plain files next to them.
 */
export function seedImage(spec: VmSpec, egress: 'none' | 'user'): Buffer {
  return isoImage('cidata', {
    'meta-data': JSON.stringify({ 'instance-id': spec.id, 'local-hostname': hostnameOf(spec) }),
    'user-data': userData(spec),
    'network-config': JSON.stringify(networkConfig(spec, egress)),
    'slipway-env': environment(spec, egress),
    'authorized-keys': spec.sshPublicKeys.map((key) => `${key}\n`).join(''),
    'host-key': spec.sshHostKey?.privateKey ? dropbearPrivateKey(spec.sshHostKey) : '',
    'group-env': spec.group ? groupEnvironment(spec.group) : '',
    'group-hosts': spec.group ? groupHosts(spec.group) : '',
    'group-known-hosts': spec.group ? groupKnownHosts(spec.group) : '',
    'startup-script': runnableScript(spec.startupScript),
    'shutdown-script': runnableScript(spec.shutdownScript),
  })
}

function networkConfig(spec: VmSpec, egress: 'none' | 'user'): Record<string, unknown> {
  const { network } = spec
  const routing =
    egress === 'user'
      ? {
          routes: [{ to: '0.0.0.0/0', via: accessNetwork.host }],
          nameservers: { addresses: [accessNetwork.dns] },
        }
      : {}
  return {
    version: 2,
    ethernets: {
      access: {
        match: { macaddress: accessMac(network.macAddress) },
        addresses: [`${accessNetwork.guest}/${accessNetwork.prefix}`],
        ...routing,
      },
      segment: { match: { macaddress: network.macAddress.toLowerCase() }, addresses: [privateCidr(spec)] },
    },
  }
}

function environment(spec: VmSpec, egress: 'none' | 'user'): string {
  const values = {
    GUEST_HOSTNAME: hostnameOf(spec),
    INSTANCE_ID: spec.id,
    ACCESS_MAC: accessMac(spec.network.macAddress),
    ACCESS_CIDR: `${accessNetwork.guest}/${accessNetwork.prefix}`,
    ACCESS_GATEWAY: egress === 'user' ? accessNetwork.host : '',
    ACCESS_DNS: egress === 'user' ? accessNetwork.dns : '',
    PRIVATE_MAC: spec.network.macAddress.toLowerCase(),
    PRIVATE_CIDR: privateCidr(spec),
  }
  return Object.entries(values)
    .map(([name, value]) => `${name}='${value.replaceAll("'", '')}'\n`)
    .join('')
}

function privateCidr(spec: VmSpec): string {
  return `${spec.network.privateAddress}/${spec.network.subnetCidr.split('/')[1]}`
}
