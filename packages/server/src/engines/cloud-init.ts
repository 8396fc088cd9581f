import { openSshPrivateKey } from '../domain/guest/host-key.ts'
import { isCloudConfig, runnableScript } from '../domain/guest/scripts.ts'
import type { VmSpec } from './engine.ts'

/** How a part is added to those before it: lists grow, and what is said first stands. */
const mergeType = 'list(append)+dict(no_replace,recurse_list)+str()'

/**
 * The user data of a guest with cloud-init. A tenant's own `#cloud-config` comes between what has to be, which it can add
 * to but not change, and what is so unless it says otherwise.
 */
export function userData(spec: VmSpec): string {
  const [needed, usual] = [neededConfig(spec), usualConfig]
  if (!isCloudConfig(spec.startupScript)) return yamlOf({ ...needed, ...usual })
  const boundary = 'slipway-user-data'
  // In base64 nothing that a tenant writes can end its part.
  const parts = [yamlOf(needed), spec.startupScript, yamlOf(usual)].map((text) =>
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

/** VM names may hold underscores, host names may not. */
export const hostnameOf = ({ name }: VmSpec) => name.replaceAll('_', '-').replace(/-+$/, '')

/** JSON is YAML. */
export const yamlOf = (config: Record<string, unknown>) => `#cloud-config\n${JSON.stringify(config)}\n`

const usualConfig = {
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

function neededConfig(spec: VmSpec): Record<string, unknown> {
  const startup = isCloudConfig(spec.startupScript) ? '' : runnableScript(spec.startupScript)
  const shutdown = runnableScript(spec.shutdownScript)
  const { sshHostKey } = spec
  return {
    users: [{ name: 'root', lock_passwd: true, ssh_authorized_keys: spec.sshPublicKeys }],
    ...(sshHostKey?.privateKey && {
      ssh_deletekeys: true,
      ssh_keys: { ed25519_private: openSshPrivateKey(sshHostKey), ed25519_public: sshHostKey.publicKey },
    }),
    // cloud-init takes changed user data for a new machine, whose keys it would make anew.
    ...(sshHostKey?.privateKey === '' && { ssh_deletekeys: false }),
    write_files: [
      ...(startup ? [file('/var/lib/cloud/scripts/per-boot/slipway-startup', startup, '0700')] : []),
      ...(shutdown
        ? [
            file('/usr/local/lib/slipway-shutdown', shutdown, '0700'),
            file('/etc/systemd/system/slipway-shutdown.service', shutdownUnit, '0644'),
          ]
        : []),
    ],
    runcmd: shutdown ? [['systemctl', 'enable', '--now', 'slipway-shutdown.service']] : [],
  }
}

const file = (path: string, content: string, permissions: string) => ({
  path,
  permissions,
  encoding: 'b64',
  content: Buffer.from(content).toString('base64'),
})
