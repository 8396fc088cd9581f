import type { IncusConfig } from '../../../config/index.ts'
import { IncusClient } from '../client.ts'
import type { IncusContext } from '../context.ts'
import { openEndpoints } from '../endpoints.ts'

/** Incus as an operator sees it: with all its projects, whether or not ours is among them. */
export async function withOperator<T>(
  config: IncusConfig,
  work: (ctx: IncusContext) => Promise<T>,
): Promise<T> {
  const client = new IncusClient(await openEndpoints(config), 'default')
  try {
    return await work({ client, config, answersSsh: async () => false })
  } finally {
    await client.close()
  }
}

/** The daemon of this machine, whatever way the service will take to it. */
export const local = (config: IncusConfig, socket: string): IncusConfig => ({
  ...{ ...config, urls: [], clientCertFile: '', clientKeyFile: '', serverCertFile: '' },
  socket: config.socket || socket,
})

/** What `GET /1.0` says, as far as an operator's commands use it. */
export interface ServerInfo {
  auth: 'trusted' | 'untrusted'
  config: Record<string, string>
  environment: {
    server_clustered: boolean
    server_name: string
    server_version: string
    certificate: string
    /** `lxc`, `qemu` or both, with a bar between. */
    driver: string
    firewall: string
    storage_supported_drivers: { Name: string; Remote: boolean }[]
  }
}
