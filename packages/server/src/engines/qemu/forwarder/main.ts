/**
 * The forwarder is a separate process that outlives the server. It serves the public ports of all VMs of one
 * engine, enforces their rules and switches frames between guests of the same network. Its only argument is
 * the engine's state directory. It exits when it has neither a VM nor a connected server.
 */
import { existsSync, rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { vmSocket } from '../paths.ts'
import { connectUnix, onLines } from '../unix-socket.ts'
import {
  type ForwarderMessage,
  type ForwarderRequest,
  type ForwarderResponse,
  type ForwarderStatus,
  forwarderSocket,
} from './protocol.ts'
import { networkLimits } from './rate-limit.ts'
import { Segments } from './segment.ts'
import { VmForwarder } from './vm.ts'

const housekeepingMs = 2_000

const vms = new Map<string, VmForwarder>()
const segments = new Segments()
const servers = new Set<Socket>()

process.chdir(process.argv[2]!)
process.umask(0o077)
if (await connectUnix(forwarderSocket, 1_000).catch(() => null)) process.exit(0)
rmSync(forwarderSocket, { force: true })
const server = createServer(acceptServer)
server.listen(forwarderSocket)
server.on('error', () => process.exit(1))
setInterval(exitIfUnused, housekeepingMs)

function acceptServer(socket: Socket): void {
  servers.add(socket)
  socket.on('error', () => {})
  socket.on('close', () => {
    servers.delete(socket)
    exitIfUnused()
  })
  let queue: Promise<void> = Promise.resolve()
  onLines(socket, (line) => {
    const message = JSON.parse(line) as ForwarderMessage
    const respond = async () => {
      const response: ForwarderResponse = await perform(message).then(
        (result) => ({ id: message.id, result }),
        (error: Error) => ({ id: message.id, error: error.message }),
      )
      if (!socket.destroyed) socket.write(`${JSON.stringify(response)}\n`)
    }
    // An SSH probe can take a long time, so other requests do not wait for it.
    if (message.op === 'greeting') void respond()
    else queue = queue.then(respond)
  })
}

async function perform(request: ForwarderRequest): Promise<unknown> {
  switch (request.op) {
    case 'set': {
      const { vm } = request
      const socketOf = (name: 'access' | 'segment') => vmSocket(`vms/${vm.vmId}`, name)
      const forwarder =
        vms.get(vm.vmId) ?? new VmForwarder(vm, socketOf('access'), networkLimits(vm.networkGbps))
      vms.set(vm.vmId, forwarder)
      segments.plug(vm.vmId, vm.networkId, vm.macAddress, socketOf('segment'), forwarder.limits)
      await forwarder.update(vm)
      return forwarder.describe()
    }
    case 'remove': {
      const forwarder = vms.get(request.vmId)
      vms.delete(request.vmId)
      segments.unplug(request.vmId)
      await forwarder?.close()
      return null
    }
    case 'greeting':
      return vms.get(request.vmId)?.probeSsh(request.timeoutMs, request.hostKey) ?? 'silent'
    case 'status': {
      const described = [...vms].map(([id, vm]) => {
        const interfaces = [vm.traffic, segments.trafficOf(id)]
        const receivedBytes = interfaces.reduce((sum, each) => sum + each.receivedBytes, 0)
        const sentBytes = interfaces.reduce((sum, each) => sum + each.sentBytes, 0)
        return [id, { ...vm.describe(), receivedBytes, sentBytes }]
      })
      return { vms: Object.fromEntries(described) } satisfies ForwarderStatus
    }
  }
}

/** Exits if there are no VMs and no connected servers, or if the state directory was removed. */
function exitIfUnused(): void {
  const isOrphaned = !existsSync(forwarderSocket)
  if (!isOrphaned && (vms.size > 0 || servers.size > 0)) return
  if (!isOrphaned) rmSync(forwarderSocket, { force: true })
  process.exit(0)
}
