import { type AnyCommand, command, type GroupSpec, oneOf } from '../../core/command.ts'
import { parseNumber } from '../../core/parse.ts'
import { idOf, refArgument } from '../../core/resource.ts'
import { UsageError } from '../../errors/cli-error.ts'
import { hosts } from '../admin/host/resource.ts'
import { vms } from '../vm/resource.ts'

function hostCommand(name: 'fail' | 'recover', summary: string, done: string): AnyCommand {
  return command<{ ref: string }>({
    name,
    summary,
    arguments: [refArgument(hosts)],
    examples: [`slipway dev host ${name} ${hosts.example}`],
    async run(cli, { ref }) {
      await cli.levers.hosts[name](await idOf(cli, hosts, ref))
      cli.note(`${ref} ${done}.`)
    },
  })
}

export const devHost: GroupSpec = {
  name: 'host',
  summary: 'simulated host failures',
  commands: [
    hostCommand('fail', 'make a host stop reporting; it is marked down within a minute', 'stopped reporting'),
    hostCommand('recover', 'make a host report again', 'reports again'),
  ],
}

const crash = command<{ ref: string }>({
  name: 'crash',
  summary: 'crash a VM',
  arguments: [refArgument(vms)],
  examples: [`slipway dev vm crash ${vms.example}`],
  async run(cli, { ref }) {
    await cli.levers.vms.crash(await idOf(cli, vms, ref))
    cli.note(`${ref} has crashed.`)
  },
})

const metrics = command<{ ref: string; gpuUtilization?: number; sshSessions?: number; silent?: boolean }>({
  name: 'metrics',
  summary: 'set the metrics that the guest of a VM reports',
  arguments: [refArgument(vms)],
  options: [
    { flags: '--gpu-utilization <percent>', description: 'utilization of every GPU', parse: parseNumber },
    { flags: '--ssh-sessions <count>', description: 'open SSH sessions (default: 0)', parse: parseNumber },
    { flags: '--silent', description: 'report nothing' },
  ],
  examples: [
    `slipway dev vm metrics ${vms.example} --gpu-utilization 3`,
    `slipway dev vm metrics ${vms.example} --silent`,
  ],
  async run(cli, { ref, gpuUtilization, sshSessions, silent }) {
    if ((gpuUtilization === undefined) === !silent)
      throw new UsageError('Give either --gpu-utilization or --silent.')
    const body = silent
      ? { silent: true as const }
      : { gpu_utilization: gpuUtilization!, ...(sshSessions !== undefined && { ssh_sessions: sshSessions }) }
    await cli.levers.vms.metrics(await idOf(cli, vms, ref), body)
    cli.note(`${ref} reports ${silent ? 'nothing' : 'these values'} from now on.`)
  },
})

const xid = command<{ ref: string; xid: string; gpu?: number; source?: 'guest' | 'host' }>({
  name: 'xid',
  summary: 'make the guest or the host of a VM report a GPU XID error',
  details:
    'An error that the guest reports changes the health of the VM. An error that the host reports is trusted: the VM is not billed while one of its GPUs is lost. XID 0 means that the GPU is lost without an XID error.',
  arguments: [refArgument(vms), { syntax: '<xid>', description: 'XID number, such as 79' }],
  options: [
    { flags: '--gpu <index>', description: 'position of the GPU in the VM (default: 0)', parse: parseNumber },
    { flags: '--source <source>', ...oneOf(['guest', 'host']) },
  ],
  examples: [`slipway dev vm xid ${vms.example} 79`, `slipway dev vm xid ${vms.example} 79 --source host`],
  async run(cli, { ref, xid, gpu = 0, source = 'guest' }) {
    await cli.levers.vms.xid(await idOf(cli, vms, ref), { xid: parseNumber(xid), gpu_index: gpu, source })
    cli.note(`The ${source} of ${ref} reports XID ${xid} for GPU ${gpu}.`)
  },
})

const typeAtConsole = command<{ ref: string; input: string }>({
  name: 'console',
  summary: 'type a line at the serial console of a VM',
  details: 'The simulated guest repeats the line. Its serial log and open console sessions show both.',
  arguments: [refArgument(vms), { syntax: '<input>', description: 'the line, without a line break' }],
  examples: [`slipway dev vm console ${vms.example} 'nvidia-smi'`],
  async run(cli, { ref, input }) {
    await cli.levers.vms.console(await idOf(cli, vms, ref), { input: `${input}\r` })
    cli.note(`Typed at the console of ${ref}.`)
  },
})

export const devVm: GroupSpec = {
  name: 'vm',
  summary: 'failures, metrics and console input of VMs',
  commands: [crash, metrics, xid, typeAtConsole],
}
