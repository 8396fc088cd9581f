import type { Tx } from '../../postgres/database.ts'
import { statement } from '../../postgres/statement.ts'

/** What the simulated engine reports as its hosts. */
export interface SimulatedHost {
  name: string
  model: string
  gpuCount: number
}

const put = statement<never, { location: string; names: string[]; models: string[]; gpuCounts: number[] }>(
  'simulated_host_put',
  `INSERT INTO simulated_hosts (location, name, model, gpu_count)
   SELECT :location, w.name, w.model, w.gpu_count
   FROM unnest(:names::text[], :models::text[], :gpuCounts::integer[]) AS w (name, model, gpu_count)
   ON CONFLICT (location, name) DO UPDATE SET model = excluded.model, gpu_count = excluded.gpu_count
   WHERE (simulated_hosts.model, simulated_hosts.gpu_count) IS DISTINCT FROM (excluded.model, excluded.gpu_count)`,
)

const remove = statement<never, { location: string; name: string }>(
  'simulated_host_remove',
  'DELETE FROM simulated_hosts WHERE location = :location AND name = :name',
)

export async function putSimulatedHosts(tx: Tx, location: string, hosts: SimulatedHost[]): Promise<void> {
  await put.run(tx, {
    location,
    names: hosts.map((host) => host.name),
    models: hosts.map((host) => host.model),
    gpuCounts: hosts.map((host) => host.gpuCount),
  })
}

export async function removeSimulatedHost(tx: Tx, location: string, name: string): Promise<void> {
  await remove.run(tx, { location, name })
}
