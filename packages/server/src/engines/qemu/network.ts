import { randomInt } from 'node:crypto'
import { join } from 'node:path'
import { EngineError } from '../engine.ts'
import type { QemuContext } from './context.ts'
import { servedPorts } from './forwarder/rules.ts'
import { accessNetwork } from './process/machine.ts'
import { monitorCommand, type QmpSession, withQmp } from './process/qmp.ts'
import type { Run, VmRecord } from './vm-records.ts'

const portTries = 8

/** Loopback has sixteen million addresses: a random one with random ports is not come upon by chance. */
export function randomBackendAddress(): string {
  return `127.${randomInt(128, 255)}.${randomInt(0, 256)}.${randomInt(1, 255)}`
}

/**
 * Brings QEMU's side and the forwarder's side of a running VM in line with its rules. Callers hold the VM's lock; the
 * run that comes back is already written.
 */
export async function syncForwards(ctx: QemuContext, id: string, record: VmRecord, run: Run): Promise<Run> {
  const { ports: wanted, notes } = servedPorts(record.rules)
  const socketPath = join(ctx.records.folder(id), 'qmp.sock')
  const current = run.backend.ports
  const isInLine = current.length === wanted.length && current.every(([port]) => wanted.includes(port))
  const ports = isInLine
    ? current
    : await withQmp(socketPath, ctx.options.qmpTimeoutMs, (qmp) => changeBackendPorts(qmp, run, wanted))
  const opened: Run = { ...run, backend: { ...run.backend, ports } }
  if (!isInLine) await ctx.records.writeRun(id, opened)

  const forwards = await ctx.forwarder.set({
    vmId: id,
    networkId: record.spec.network.networkId,
    macAddress: record.spec.network.macAddress,
    publicAddress: record.spec.network.publicAddress,
    backend: opened.backend,
    rules: record.rules,
  })
  const unserved = forwards.failures.filter((failure) => forwards.sshPort !== 2222 || !/:22 /.test(failure))
  const synced: Run = {
    ...opened,
    sshPort: forwards.sshPort,
    notes: [...notes, ...unserved.map((failure) => `cannot listen on ${failure}`)],
  }
  if (JSON.stringify(synced) !== JSON.stringify(opened)) await ctx.records.writeRun(id, synced)
  if (record.spec.network.publicAddress !== '' && synced.sshPort === 0)
    throw new EngineError('unavailable', `no port for SSH: ${forwards.failures.join(', ')}`)
  return synced
}

/** User networking takes forwards on loopback addresses and ports only, so that is where they are, per guest port. */
async function changeBackendPorts(qmp: QmpSession, run: Run, wanted: number[]) {
  const { address } = run.backend
  const kept = run.backend.ports.filter(([guestPort]) => wanted.includes(guestPort))
  for (const [guestPort, hostPort] of run.backend.ports)
    if (!wanted.includes(guestPort))
      await qmp.execute('human-monitor-command', {
        'command-line': `hostfwd_remove access tcp:${address}:${hostPort}`,
      })
  for (const guestPort of wanted)
    if (!kept.some(([port]) => port === guestPort))
      kept.push([guestPort, await openBackendPort(qmp, address, guestPort)])
  return kept
}

async function openBackendPort(qmp: QmpSession, address: string, guestPort: number): Promise<number> {
  let failure: Error | undefined
  for (let attempt = 0; attempt < portTries; attempt++) {
    const hostPort = randomInt(10_000, 32_000)
    const forward = `tcp:${address}:${hostPort}-${accessNetwork.guest}:${guestPort}`
    try {
      await monitorCommand(qmp, `hostfwd_add access ${forward}`)
      return hostPort
    } catch (error) {
      failure = error as Error
    }
  }
  throw new EngineError('unavailable', `no free port on ${address}: ${failure?.message}`, { cause: failure })
}
