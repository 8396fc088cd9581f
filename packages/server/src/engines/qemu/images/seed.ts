import type { VmSpec } from '../../engine.ts'
import { accessNetwork } from '../process/access-network.ts'
import { accessMac } from '../process/machine.ts'
import { isoImage } from './iso.ts'

/**
 * The NoCloud seed. Cloud images read `meta-data`, `user-data` and `network-config`; the mini guest, which has no YAML
 * parser, reads the plain files beside them.
 */
export function seedImage(spec: VmSpec, egress: 'none' | 'user'): Buffer {
  return isoImage('cidata', {
    'meta-data': JSON.stringify({ 'instance-id': spec.id, 'local-hostname': hostnameOf(spec) }),
    'user-data': `#cloud-config\n${JSON.stringify(cloudConfig(spec))}\n`,
    'network-config': JSON.stringify(networkConfig(spec, egress)),
    'slipway-env': environment(spec, egress),
    'authorized-keys': `${spec.sshPublicKey.trim()}\n`,
    'startup-script': spec.startupScript,
    'shutdown-script': spec.shutdownScript,
  })
}

/** VM names may hold underscores, host names may not. */
function hostnameOf(spec: VmSpec): string {
  return spec.name.replaceAll('_', '-').replace(/-+$/, '')
}

function cloudConfig(spec: VmSpec): Record<string, unknown> {
  const shutdownUnit = `[Unit]
Description=Shutdown script of the VM
After=network-online.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/true
ExecStop=/usr/local/lib/slipway-shutdown
TimeoutStopSec=80
StandardOutput=journal+console
[Install]
WantedBy=multi-user.target
`
  const file = (path: string, content: string, permissions: string) => ({
    path,
    permissions,
    encoding: 'b64',
    content: Buffer.from(content).toString('base64'),
  })
  const files = [
    ...(spec.startupScript
      ? [file('/var/lib/cloud/scripts/per-boot/slipway-startup', spec.startupScript, '0700')]
      : []),
    ...(spec.shutdownScript
      ? [
          file('/usr/local/lib/slipway-shutdown', spec.shutdownScript, '0700'),
          file('/etc/systemd/system/slipway-shutdown.service', shutdownUnit, '0644'),
        ]
      : []),
  ]
  return {
    preserve_hostname: false,
    disable_root: false,
    ssh_pwauth: false,
    users: [{ name: 'root', lock_passwd: true, ssh_authorized_keys: [spec.sshPublicKey.trim()] }],
    write_files: files,
    runcmd: spec.shutdownScript ? [['systemctl', 'enable', '--now', 'slipway-shutdown.service']] : [],
  }
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
