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
  nameMeaning: string,
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
        description: nameMeaning,
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
  summary: 'configuration files that let other tools use the running VMs',
  commands: [
    exportCommand(
      'ssh-config',
      'print an SSH config, so that `ssh` accepts the names of VMs',
      'Save the output to ~/.ssh/slipway.conf, and put `Include ~/.ssh/slipway.conf` at the top of ~/.ssh/config.',
      'ignored; accepted because the other export formats use it',
      sshConfig,
      'slipway export ssh-config > ~/.ssh/slipway.conf',
    ),
    exportCommand(
      'dstack',
      'print a dstack SSH fleet configuration',
      'Save the output to a file, then run `dstack apply -f fleet.dstack.yml`.',
      'name of the dstack fleet',
      dstackFleet,
      'slipway export dstack --name slipway > fleet.dstack.yml',
    ),
    exportCommand(
      'skypilot',
      'print a SkyPilot configuration of an SSH node pool',
      'Save the output to ~/.sky/ssh_node_pools.yaml, then run `sky ssh up`.',
      'name of the SkyPilot node pool',
      skypilotPools,
      'slipway export skypilot > ~/.sky/ssh_node_pools.yaml',
    ),
  ],
}
