import { statement, type Tx } from '../database.ts'

/** What the simulated engine reports as its hosts. */
export interface SimulatedHost {
  name: string
  model: string
  gpuCount: number
}

const put = statement<never, [string, string[], string[], number[]]>(
  'simulated_host_put',
  `INSERT INTO simulated_hosts (location, name, model, gpu_count)
   SELECT $1, w.name, w.model, w.gpu_count FROM unnest($2::text[], $3::text[], $4::integer[]) AS w (name, model, gpu_count)
   ON CONFLICT (location, name) DO UPDATE SET model = excluded.model, gpu_count = excluded.gpu_count
   WHERE (simulated_hosts.model, simulated_hosts.gpu_count) IS DISTINCT FROM (excluded.model, excluded.gpu_count)`,
)

const remove = statement<never, [string, string]>(
  'simulated_host_remove',
  'DELETE FROM simulated_hosts WHERE location = $1 AND name = $2',
)

export async function putSimulatedHosts(tx: Tx, location: string, hosts: SimulatedHost[]): Promise<void> {
  await put.run(
    tx,
    location,
    hosts.map((host) => host.name),
    hosts.map((host) => host.model),
    hosts.map((host) => host.gpuCount),
  )
}

export async function removeSimulatedHost(tx: Tx, location: string, name: string): Promise<void> {
  await remove.run(tx, location, name)
}
