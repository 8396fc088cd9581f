import { statement } from '../../postgres/statement.ts'

/** An XID error that a simulated guest or host reports. */
interface SimulatedXid {
  id: string
  xid: number
  gpuIndex: number
  source: 'host' | 'guest'
  /** Null means now. */
  at: Date | null
}

// `gpuIndex` is the GPU's position among the GPUs of the VM. Writes nothing if the VM has no such GPU.
export const addXid = statement<{ id: number }, SimulatedXid>(
  'simulated_xid_add',
  `INSERT INTO simulated_xids (location, host, pci_address, vm_id, gpu_index, xid, source, at)
   SELECT location, host, gpus[:gpuIndex::integer + 1], id, :gpuIndex, :xid, :source,
          date_trunc('milliseconds', coalesce(:at, slipway_now()))
   FROM simulated_vms WHERE id = :id AND NOT is_removed AND cardinality(gpus) > :gpuIndex::integer RETURNING id`,
).one

/** Removes the errors of all GPUs of a host. */
export const repairGpus = statement<never, { location: string; name: string }>(
  'simulated_xid_clear',
  `DELETE FROM simulated_xids WHERE location = :location AND host = :name`,
).runBy('location', 'name')
