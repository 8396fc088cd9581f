import { EngineError } from '../engine.ts'
import type { QemuContext } from './context.ts'
import { servedPorts } from './forwarder/rules.ts'
import { accessMac } from './process/machine.ts'
import type { Run, VmRecord } from './vm-records.ts'

/**
 * Sends a running VM's rules and addresses to the forwarder, and records the result. Callers hold the VM's
 * lock.
 */
export async function syncForwards(ctx: QemuContext, id: string, record: VmRecord, run: Run): Promise<void> {
  const { ports, notes } = servedPorts(record.rules)
  const { egress, egressAllow } = ctx.options
  const { networkId, macAddress, publicAddress, gbps } = record.spec.network
  const forwards = await ctx.forwarder.set({
    vmId: id,
    ...{ networkId, macAddress, publicAddress, ports },
    accessMac: accessMac(macAddress),
    egressAllow: egress === 'user' ? egressAllow : null,
    rules: record.rules,
    ...(gbps !== undefined && { networkGbps: gbps }),
  })
  const unserved = forwards.failures.filter((failure) => forwards.sshPort !== 2222 || !/:22 /.test(failure))
  const synced: Run = {
    ...run,
    sshPort: forwards.sshPort,
    notes: [...notes, ...unserved.map((failure) => `cannot listen on ${failure}`)],
  }
  if (JSON.stringify(synced) !== JSON.stringify(run)) await ctx.records.writeRun(id, synced)
  if (publicAddress !== '' && synced.sshPort === 0)
    throw new EngineError('unavailable', `no port for SSH is available: ${forwards.failures.join(', ')}`)
}
