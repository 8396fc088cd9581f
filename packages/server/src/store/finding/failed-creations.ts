/**
 * Creations of VMs that failed within the last day, as the end of a FROM clause. A creation that ended because the VM was
 * deleted in the meantime is not a failure.
 */
export const failedVmCreations = `operations o
  WHERE o.state = 'FAILED' AND o.name = 'CREATE' AND o.resource_type = 'vm'
    AND o.completed_at > slipway_now() - interval '24 hours' AND o.result ->> 'code' <> 'cancelled'`
