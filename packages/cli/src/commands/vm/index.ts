import type { Vm, VmUpdate } from '@slipway/sdk'
import type { Cli } from '../../core/cli.ts'
import { type AnyCommand, command, type GroupSpec } from '../../core/command.ts'
import { deleteCommand, listCommand, showCommand } from '../../core/generic-commands.ts'
import { parseDurationMs } from '../../core/parse.ts'
import { follow, type WaitFlags, waitOptions } from '../../core/progress.ts'
import { idOf, refArgument } from '../../core/resource.ts'
import { printData } from '../../output/print.ts'
import { vmCreate } from './create.ts'
import { vmLog } from './log.ts'
import { vms } from './resource.ts'
import { vmSsh } from './ssh.ts'

interface ListInput {
  state?: string
  type?: string
  location?: string
}

/** Sends a change, follows it and shows the VM to programs. */
async function change(cli: Cli, ref: string, title: string, body: VmUpdate, wait: WaitFlags): Promise<void> {
  const project_id = await cli.project()
  const vm_id = await idOf(cli, vms, ref)
  const { operation } = await cli.client.vmUpdate({ project_id, vm_id }, body)
  const finished = await follow<Vm>(cli, `${title} ${ref}`, operation, wait)
  if (finished && cli.format.kind !== 'table') await printData(cli, finished.result)
}

function actionCommand(name: 'start' | 'stop' | 'reset', summary: string, title: string): AnyCommand {
  return command<{ ref: string } & WaitFlags>({
    name,
    summary,
    arguments: [refArgument(vms)],
    options: waitOptions,
    examples: [`slipway vm ${name} train-7`, `slipway vm ${name} train-7 --no-wait`],
    run: (cli, { ref, ...wait }) =>
      change(cli, ref, title, { action: name.toUpperCase() as 'START' | 'STOP' | 'RESET' }, wait),
  })
}

export const vm: GroupSpec = {
  name: 'vm',
  summary: 'GPU virtual machines',
  commands: [
    vmCreate,
    listCommand<Vm, ListInput>(vms, {
      options: [
        { flags: '--state <states>', description: 'running, shutoff, …; several with commas' },
        { flags: '--type <types>', description: 'VM types', complete: 'type' },
        { flags: '--location <locations>', description: 'locations', complete: 'location' },
      ],
      examples: ['slipway vm list --state running -o columns=name,public_ip'],
      list: async (cli, { state, type, location }) =>
        cli.client.collect('vmList', {
          project_id: await cli.project(),
          states: state && stateNames(state),
          types: type,
          locations: location,
        }),
    }),
    showCommand(vms, async (cli, vm_id) => cli.client.vmGet({ project_id: await cli.project(), vm_id })),
    actionCommand('start', 'start a VM that is shut off', 'Starting'),
    actionCommand('stop', 'shut a VM down; its GPUs go back, disks and addresses stay', 'Stopping'),
    actionCommand('reset', 'reset a VM the hard way', 'Resetting'),
    command<{ ref: string; type: string } & WaitFlags>({
      name: 'resize',
      summary: 'change the type of a VM that is shut off, within its family',
      arguments: [refArgument(vms)],
      options: [
        { flags: '--type <type>', description: 'the new type', complete: 'type', required: true },
        ...waitOptions,
      ],
      examples: ['slipway vm resize train-7 --type a100.4x'],
      run: (cli, { ref, type, ...wait }) => change(cli, ref, 'Resizing', { type }, wait),
    }),
    command<{ ref: string; ttl: number; onExpiry?: 'stop' | 'delete' } & WaitFlags>({
      name: 'extend',
      summary: 'give a VM a new time to live, from now',
      arguments: [refArgument(vms)],
      options: [
        {
          flags: '--ttl <duration>',
          description: 'how long from now: 4h',
          required: true,
          parse: parseDurationMs,
        },
        { flags: '--on-expiry <action>', description: 'stop or delete', complete: ['stop', 'delete'] },
        ...waitOptions,
      ],
      examples: [
        'slipway vm extend train-7 --ttl 8h',
        'slipway vm extend train-7 --ttl 1d --on-expiry delete',
      ],
      run: (cli, { ref, ttl, onExpiry, ...wait }) =>
        change(
          cli,
          ref,
          'Extending',
          { ttl_seconds: Math.round(ttl / 1000), ...(onExpiry && { on_expiry: onExpiry }) },
          wait,
        ),
    }),
    deleteCommand(
      vms,
      async (cli, vm_id) => cli.client.vmDelete({ project_id: await cli.project(), vm_id }),
      {
        loses: 'Its OS disk goes with it; data disks stay.',
        isOperation: true,
      },
    ),
    vmLog,
    vmSsh,
  ],
}

const stateNames = (text: string): string =>
  text
    .split(',')
    .map(
      (word) =>
        `STATE_${word
          .trim()
          .replace(/^STATE_/i, '')
          .toUpperCase()}`,
    )
    .join(',')
