/**
 * The SQL after FROM for creations of VMs or of instance groups that failed within the last day. A creation
 * that ended because the resource was deleted in the meantime is not a failure. A member that does not boot is
 * a failure of its group.
 */
export const failedCreationsOf = (resourceType: 'vm' | 'instance_group') => `operations o
  WHERE o.state = 'FAILED' AND o.name = 'CREATE' AND o.resource_type = '${resourceType}' AND NOT o.scratch ? 'memberOf'
    AND o.completed_at > slipway_now() - interval '24 hours' AND o.result ->> 'code' <> 'cancelled'`
