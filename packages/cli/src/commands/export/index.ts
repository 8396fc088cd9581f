import type { Vm } from '@slipway/sdk'
import { type AnyCommand, command, type GroupSpec } from '../../core/command.ts'
import { safeText } from '../../output/untrusted.ts'
import { vms } from '../vm/resource.ts'
import { dstackFleet, type ExportOptions, skypilotPools, sshConfig } from './formats.ts'

type Writer = (vms: Vm[], options: ExportOptions) => string

function exportCommand(
  name: string,
  summary: string,
  details: string,
  write: Writer,
  example: string,
): AnyCommand {
  return command<ExportOptions>({
    name,
    summary,
    details,
    options: [
      {
        flags: '--identity <file>',
        description: 'private key for the VMs',
        default: '~/.ssh/id_ed25519',
        complete: 'file',
      },
      {
        flags: '--name <name>',
        description: 'name of the dstack fleet or SkyPilot pool; not used by ssh-config',
        default: 'slipway',
      },
    ],
    examples: [`slipway export ${name}`, example],
    async run(cli, options) {
      const running = await vms.list(cli)
      cli.io.stdout.write(safeText(write(running, options)))
    },
  })
}

export const exporter: GroupSpec = {
  name: 'export',
  summary: 'configuration files with which other tools use the running VMs',
  commands: [
    exportCommand(
      'ssh-config',
      'write an SSH config, so that `ssh NAME` works',
      'Put `Include ~/.ssh/slipway.conf` at the top of ~/.ssh/config.',
      sshConfig,
      'slipway export ssh-config > ~/.ssh/slipway.conf',
    ),
    exportCommand(
      'dstack',
      'write a dstack SSH fleet',
      'Write the output to a file and use it with `dstack apply -f fleet.dstack.yml`.',
      dstackFleet,
      'slipway export dstack --name slipway > fleet.dstack.yml',
    ),
    exportCommand(
      'skypilot',
      'write SkyPilot SSH node pools',
      'Write the output to ~/.sky/ssh_node_pools.yaml and run `sky ssh up`.',
      skypilotPools,
      'slipway export skypilot > ~/.sky/ssh_node_pools.yaml',
    ),
  ],
}
