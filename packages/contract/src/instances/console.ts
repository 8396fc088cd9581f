import Type from 'typebox'
import { defineRoutes } from '../route.ts'
import { body, record, Timestamp, Uuid } from '../schema.ts'

export const consoleRoutes = defineRoutes({
  vmConsoleCreate: {
    method: 'POST',
    path: '/v0.1/projects/{project_id}/vms/{vm_id}/console',
    tag: 'VMs',
    summary: 'Open the serial console',
    description:
      'Returns a URL for one WebSocket with the protocol `slipway.console.v1`. The URL works once, within 30 seconds. Binary messages are console bytes: the server sends the last 64 KiB of output and then all new output; in mode `write`, the client sends input. Text messages are JSON: the first one is `{"type": "state", "mode", "session_id"}`. Mode `write` requires the member role, and only one session of a VM at a time can have this mode. Close codes: 4001 another session took over, 4003 access was revoked, 4004 the VM was deleted, 4008 the client reads too slowly, 4010 the VM is off. A session ends after 30 minutes without input or output.',
    access: 'viewer',
    opensTransactions: true,
    noStore: true,
    body: body(
      'VmConsoleCreate',
      {
        mode: Type.Enum(['write', 'read']),
        force: Type.Optional(
          Type.Boolean({
            description: 'In mode `write`: closes the session that currently has this mode, and takes over.',
          }),
        ),
      },
      { examples: [{ mode: 'write' }] },
    ),
    response: record('ConsoleTicket', {
      url: Type.String({ examples: ['wss://gpu.example.com/v0.1/console/slpt_…'] }),
      session_id: Uuid,
      expires_at: Timestamp,
    }),
    errors: ['conflict'],
  },
})
