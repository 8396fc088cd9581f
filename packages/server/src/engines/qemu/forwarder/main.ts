/**
 * The forwarder: a process of its own that outlives the server. It holds the public ports of all VMs of one engine,
 * enforces their inbound rules and switches frames between guests of one network. Started with the engine's state
 * directory as its only argument; leaves when it has neither a VM nor a master.
 */
import { existsSync, rmSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { vmSocket } from '../paths.ts'
import { onLines } from '../unix-socket.ts'
import {
  type ForwarderAnswer,
  type ForwarderMessage,
  type ForwarderRequest,
  type ForwarderStatus,
  forwarderSocket,
} from './protocol.ts'
import { Segments } from './segment.ts'
import { VmForwarder } from './vm.ts'

const housekeepingMs = 2_000

const vms = new Map<string, VmForwarder>()
const segments = new Segments()
const masters = new Set<Socket>()

process.chdir(process.argv[2]!)
process.umask(0o077)
if (await isAnotherServing()) process.exit(0)
rmSync(forwarderSocket, { force: true })
const server = createServer(serveMaster)
server.listen(forwarderSocket)
server.on('error', () => process.exit(1))
setInterval(leaveIfUnneeded, housekeepingMs)

function isAnotherServing(): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(forwarderSocket)
    socket.on('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.on('error', () => resolve(false))
  })
}

function serveMaster(socket: Socket): void {
  masters.add(socket)
  socket.on('error', () => {})
  socket.on('close', () => {
    masters.delete(socket)
    leaveIfUnneeded()
  })
  let queue: Promise<void> = Promise.resolve()
  onLines(socket, (line) => {
    const message = JSON.parse(line) as ForwarderMessage<ForwarderRequest>
    const answer = async () => {
      const given: ForwarderAnswer = await perform(message).then(
        (result) => ({ id: message.id, result }),
        (error: Error) => ({ id: message.id, error: error.message }),
      )
      if (!socket.destroyed) socket.write(`${JSON.stringify(given)}\n`)
    }
    // A guest may take its time to greet; nothing else waits for it.
    if (message.op === 'greeting') void answer()
    else queue = queue.then(answer)
  })
}

async function perform(request: ForwarderRequest): Promise<unknown> {
  switch (request.op) {
    case 'set': {
      const { vm } = request
      const forwarder = vms.get(vm.vmId) ?? new VmForwarder(vm, vmSocket(`vms/${vm.vmId}`, 'access'))
      vms.set(vm.vmId, forwarder)
      segments.plug(vm.vmId, vm.networkId, vm.macAddress, vmSocket(`vms/${vm.vmId}`, 'segment'))
      await forwarder.update(vm)
      return forwarder.describe(segments.isConnected(vm.vmId))
    }
    case 'remove': {
      const forwarder = vms.get(request.vmId)
      vms.delete(request.vmId)
      segments.unplug(request.vmId)
      await forwarder?.close()
      return null
    }
    case 'greeting':
      return vms.get(request.vmId)?.greeting(request.timeoutMs, request.hostKey) ?? 'silent'
    case 'status': {
      const described = [...vms].map(([id, vm]) => [id, vm.describe(segments.isConnected(id))])
      return { pid: process.pid, vms: Object.fromEntries(described) } satisfies ForwarderStatus
    }
  }
}

/** Nobody's rules and nobody's ports: no reason to stay. A removed state directory counts as no reason either. */
function leaveIfUnneeded(): void {
  const isOrphaned = !existsSync(forwarderSocket)
  if (!isOrphaned && (vms.size > 0 || masters.size > 0)) return
  if (!isOrphaned) rmSync(forwarderSocket, { force: true })
  process.exit(0)
}
