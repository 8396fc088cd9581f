import type { Gpu, Host } from '@slipway/sdk'
import { type AnyCommand, command, type GroupSpec } from '../../../core/command.ts'
import { deleteCommand, listCommand, showCommand } from '../../../core/generic-commands.ts'
import { idOf, refArgument } from '../../../core/resource.ts'
import { UsageError } from '../../../errors/cli-error.ts'
import { printList, printOne } from '../../../output/print.ts'
import { hosts } from './resource.ts'

interface HostFilter {
  location?: string
  state?: Host['state']
}

interface CreateInput {
  name: string
  location: string
  gpus?: string
}

function scheduleCommand(name: 'open' | 'close', summary: string): AnyCommand {
  return command<{ ref: string }>({
    name,
    summary,
    arguments: [refArgument(hosts)],
    examples: [`slipway admin host ${name} us-east1-a-a100-1`],
    async run(cli, { ref }) {
      const host_id = await idOf(cli, hosts, ref)
      await printOne(
        cli,
        await cli.operator.adminHostUpdate({ host_id }, { schedulable: name === 'open' }),
        hostFields,
      )
    },
  })
}

export const adminHost: GroupSpec = {
  name: 'host',
  summary: 'GPU hosts',
  commands: [
    listCommand<Host, HostFilter>(hosts, {
      group: 'admin',
      options: [
        { flags: '--location <location>', description: 'one location' },
        {
          flags: '--state <state>',
          description: 'up, down, draining or drained',
          complete: ['up', 'down', 'draining', 'drained'],
        },
      ],
      list: (cli, filter) => cli.operator.collect('adminHostList', filter),
    }),
    showCommand({ ...hosts, fields: hostFields }, (cli, host_id) => cli.operator.adminHostGet({ host_id }), {
      group: 'admin',
    }),
    command<CreateInput>({
      name: 'create',
      summary: 'register a host',
      arguments: [{ syntax: '<name>', description: 'name of the host' }],
      options: [
        { flags: '--location <location>', description: 'where it stands', required: true },
        {
          flags: '--gpus <count x model>',
          description: 'in a simulated location: what to simulate, "8 x A40 48GB PCIe"',
        },
      ],
      examples: ['slipway admin host create rack4-1 --location us-east1-a --gpus "8 x A40 48GB PCIe"'],
      async run(cli, { name, location, gpus }) {
        const match = gpus === undefined ? undefined : /^(\d+) ?x ?(.+)$/.exec(gpus)
        if (match === null) throw new UsageError('--gpus wants the form "8 x A40 48GB PCIe".')
        const simulated = match && { count: Number(match[1]), model: match[2]! }
        await printOne(
          cli,
          await cli.operator.adminHostCreate({ name, location, gpus: simulated }),
          hostFields,
        )
      },
    }),
    scheduleCommand('open', 'let new VMs onto a host'),
    scheduleCommand('close', 'keep new VMs off a host'),
    command<{ ref: string }>({
      name: 'drain',
      summary: 'take no new VMs and tell the tenants; stops none',
      arguments: [refArgument(hosts)],
      examples: ['slipway admin host drain us-east1-a-a100-1'],
      async run(cli, { ref }) {
        await printOne(
          cli,
          await cli.operator.adminHostDrain({ host_id: await idOf(cli, hosts, ref) }),
          hostFields,
        )
      },
    }),
    deleteCommand(
      hosts,
      async (cli, host_id) => {
        await cli.operator.adminHostDelete({ host_id })
        return {}
      },
      { group: 'admin' },
    ),
  ],
}

function hostFields(host: Host): [string, string][] {
  return [
    ['Name', host.name],
    ['Id', host.id],
    ['State', host.state],
    ['Location', host.location],
    ['Engine', host.engine],
    ['Schedulable', host.schedulable ? 'yes' : 'no'],
    ['Last report', host.last_report_at || 'never'],
    [
      'GPUs',
      host.gpus
        .map((gpu) => `${gpu.pci_address}  ${gpu.model}  ${gpu.state}  ${gpu.vm_id}`.trimEnd())
        .join('\n') || '-',
    ],
  ]
}

function gpuCommand(name: 'free' | 'quarantine', summary: string): AnyCommand {
  return command<{ gpu: string }>({
    name,
    summary,
    arguments: [{ syntax: '<gpu>', description: 'id of the GPU' }],
    examples: [`slipway admin gpu ${name} 0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7e10`],
    async run(cli, { gpu }) {
      const state = name === 'free' ? 'free' : 'quarantined'
      await printOne(cli, await cli.operator.adminGpuUpdate({ gpu_id: gpu }, { state }))
    },
  })
}

export const adminGpu: GroupSpec = {
  name: 'gpu',
  summary: 'GPUs of the hosts',
  commands: [
    command<{ host?: string; state?: Gpu['state'] }>({
      name: 'list',
      summary: 'list GPUs',
      options: [
        { flags: '--host <host>', description: 'of one host', complete: 'host' },
        {
          flags: '--state <state>',
          description: 'free, claimed, quarantined or gone',
          complete: ['free', 'claimed', 'quarantined', 'gone'],
        },
      ],
      examples: ['slipway admin gpu list --state quarantined'],
      async run(cli, { host, state }) {
        const all = await hosts.list(cli)
        const wanted = host ? all.filter(({ id, name }) => id === host || name === host) : all
        const rows = wanted
          .flatMap((owner) => owner.gpus.map((gpu) => ({ ...gpu, host: owner.name })))
          .filter((gpu) => !state || gpu.state === state)
        await printList(cli, rows, [
          { name: 'host', value: (gpu) => gpu.host },
          { name: 'pci_address', value: (gpu) => gpu.pci_address },
          { name: 'model', value: (gpu) => gpu.model, spare: 1 },
          { name: 'numa', value: (gpu) => gpu.numa_node, align: 'right', spare: 2 },
          { name: 'state', value: (gpu) => gpu.state, isState: true },
          { name: 'id', value: (gpu) => gpu.id },
          { name: 'vm_id', value: (gpu) => gpu.vm_id, isExtra: true },
        ])
      },
    }),
    gpuCommand('quarantine', 'keep a GPU away from VMs'),
    gpuCommand('free', 'give a quarantined GPU back'),
  ],
}
