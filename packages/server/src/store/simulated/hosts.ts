import type { Tx } from '../../postgres/database.ts'
import { type Columns, columns, statement } from '../../postgres/statement.ts'

/** A host that the simulated engine reports. */
export interface SimulatedHost {
  name: string
  model: string
  gpuCount: number
}

const put = statement<never, { location: string } & Columns<SimulatedHost>>(
  'simulated_host_put',
  `INSERT INTO simulated_hosts (location, name, model, gpu_count)
   SELECT :location, w.name, w.model, w.gpu_count
   FROM unnest(:name::text[], :model::text[], :gpuCount::integer[]) AS w (name, model, gpu_count)
   ON CONFLICT (location, name) DO UPDATE SET model = excluded.model, gpu_count = excluded.gpu_count
   WHERE (simulated_hosts.model, simulated_hosts.gpu_count) IS DISTINCT FROM (excluded.model, excluded.gpu_count)`,
)

export const removeSimulatedHost = statement<never, { location: string; name: string }, Tx>(
  'simulated_host_remove',
  'DELETE FROM simulated_hosts WHERE location = :location AND name = :name',
).runBy('location', 'name')

export const putSimulatedHosts = (tx: Tx, location: string, hosts: SimulatedHost[]) =>
  put.run(tx, { location, ...columns(hosts, ['name', 'model', 'gpuCount']) })
