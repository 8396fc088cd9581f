import { openSshPrivateKey } from '../domain/guest/host-key.ts'
import { groupEnvironment, groupHosts, groupKnownHosts } from '../domain/guest/rendezvous.ts'
import { isCloudConfig, runnableScript } from '../domain/guest/scripts.ts'
import type { VmSpec } from './engine.ts'

/** How cloud-init merges a part into the earlier ones: lists are appended, and the first value of a key is kept. */
const mergeType = 'list(append)+dict(no_replace,recurse_list)+str()'

/**
 * The user data of a guest with cloud-init. A tenant's own `#cloud-config` comes between the required settings, which it
 * can extend but not change, and the defaults, which it can override.
 */
export function userData(spec: VmSpec): string {
  const required = requiredConfig(spec)
  if (!isCloudConfig(spec.startupScript)) return yamlOf({ ...required, ...defaultConfig })
  const boundary = 'slipway-user-data'
  // Base64 prevents a tenant's text from containing the boundary.
  const parts = [yamlOf(required), spec.startupScript, yamlOf(defaultConfig)].map((text) =>
    [
      `--${boundary}`,
      'Content-Type: text/cloud-config; charset="utf-8"',
      'Content-Transfer-Encoding: base64',
      `Merge-Type: ${mergeType}`,
      '',
      Buffer.from(text).toString('base64').replace(/.{76}/g, '$&\n'),
      '',
    ].join('\n'),
  )
  const head = `Content-Type: multipart/mixed; boundary="${boundary}"\nMIME-Version: 1.0\n`
  return `${head}\n${parts.join('')}--${boundary}--\n`
}

/** VM names may contain underscores, host names may not. */
export const hostnameOf = ({ name }: VmSpec) => name.replaceAll('_', '-').replace(/-+$/, '')

/** Returns a cloud-config document. JSON is valid YAML. */
export const yamlOf = (config: Record<string, unknown>) => `#cloud-config\n${JSON.stringify(config)}\n`

const defaultConfig = {
  preserve_hostname: false,
  disable_root: false,
  ssh_pwauth: false,
  growpart: { mode: 'auto', devices: ['/'] },
  resize_rootfs: true,
}

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

function requiredConfig(spec: VmSpec): Record<string, unknown> {
  const startup = isCloudConfig(spec.startupScript) ? '' : runnableScript(spec.startupScript)
  const shutdown = runnableScript(spec.shutdownScript)
  const { sshHostKey } = spec
  return {
    users: [{ name: 'root', lock_passwd: true, ssh_authorized_keys: spec.sshPublicKeys }],
    ...(sshHostKey?.privateKey && {
      ssh_deletekeys: true,
      ssh_keys: { ed25519_private: openSshPrivateKey(sshHostKey), ed25519_public: sshHostKey.publicKey },
    }),
    // Incus changes the instance id when the user data changes. cloud-init then treats the guest as a new
    // machine, and would generate new host keys.
    ...(sshHostKey?.privateKey === '' && { ssh_deletekeys: false }),
    ...((spec.group || isFirstBootOfCopy(spec)) && {
      bootcmd: [
        ...(isFirstBootOfCopy(spec) ? [newMachineCommand] : []),
        ...(spec.group ? [groupCommand] : []),
      ],
    }),
    write_files: [
      ...groupFiles(spec),
      ...(startup ? startupFiles(startup, Boolean(spec.group)) : []),
      ...(shutdown
        ? [
            file('/usr/local/lib/slipway-shutdown', shutdown, '0700'),
            file('/etc/systemd/system/slipway-shutdown.service', shutdownUnit, '0644'),
          ]
        : []),
    ],
    runcmd: [
      ...(spec.group ? [groupCommand] : []),
      ...(shutdown ? [['systemctl', 'enable', '--now', 'slipway-shutdown.service']] : []),
    ],
  }
}

/**
 * Returns whether this is the first boot of a VM from a custom image. The command must not be in the user data
 * of later boots: that user data differs, so Incus changes the instance id, and cloud-init would run the
 * command again.
 */
const isFirstBootOfCopy = ({ image, isNew, sshHostKey }: VmSpec): boolean =>
  image.isCustom === true && (sshHostKey ? sshHostKey.privateKey !== '' : isNew)

/**
 * Removes the SSH keys and the machine id of the copied VM. cloud-init itself replaces the host keys, and
 * installs the new VM's SSH keys after this.
 */
const newMachineCommand = [
  ...['cloud-init-per', 'instance', 'slipway-new-machine', 'sh', '-c'],
  'for keys in /root/.ssh/authorized_keys /home/*/.ssh/authorized_keys; do [ ! -f "$keys" ] || : >"$keys"; done; ' +
    'rm -f /etc/machine-id /var/lib/dbus/machine-id; systemd-machine-id-setup',
]

/**
 * Runs at each boot, because `/run` is empty then. It runs more than once during the first boot, because the
 * files do not exist yet at the first run.
 */
const groupBoot =
  '[ -s /etc/slipway/group.env ] || exit 0; mkdir -p /run/slipway; cp /etc/slipway/group.env /run/slipway/group.env; ' +
  "sed -i '/# slipway-group$/d' /etc/hosts; sed 's/$/ # slipway-group/' /etc/slipway/group-hosts >>/etc/hosts"
const groupCommand = ['sh', '-c', groupBoot]

/** The files that describe a group to its members. */
const groupFiles = ({ group }: VmSpec) =>
  !group
    ? []
    : [
        file('/etc/slipway/group.env', groupEnvironment(group), '0644'),
        file('/etc/slipway/group-hosts', groupHosts(group), '0644'),
        file('/etc/ssh/ssh_known_hosts', groupKnownHosts(group), '0644'),
      ]

/** The startup script of a group's member gets the variables of the group in its environment. */
function startupFiles(script: string, isMember: boolean) {
  const path = '/var/lib/cloud/scripts/per-boot/slipway-startup'
  if (!isMember) return [file(path, script, '0700')]
  const own = '/usr/local/lib/slipway-startup'
  const wrapper = `#!/bin/sh\n(${groupBoot})\nset -a\n. /run/slipway/group.env\nset +a\nexec ${own}\n`
  return [file(own, script, '0700'), file(path, wrapper, '0700')]
}

const file = (path: string, content: string, permissions: string) => ({
  path,
  permissions,
  encoding: 'b64',
  content: Buffer.from(content).toString('base64'),
})
