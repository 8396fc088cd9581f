import type { TestService } from '@slipway/testing/service.ts'

/**
 * Inserts running VMs of a project as rows, because creating thousands through the API would take too long. The VMs are
 * on hosts that are up, and exist at their engine unless `isAtEngine` is false. The ids count up from `series`. Returns
 * the ids.
 */
export async function addVmRows(
  service: Pick<TestService, 'sql'>,
  options: { projectId: string; count: number; series?: number; location?: string; isAtEngine?: boolean },
): Promise<string[]> {
  const { projectId, count, series = 1, location = 'us-east1-a', isAtEngine = true } = options
  const rows = await service.sql<{ id: string }>(
    `WITH subnet AS (SELECT * FROM subnets WHERE project_id = $1 AND location = $4 LIMIT 1),
          host AS (SELECT id, row_number() OVER (ORDER BY id) - 1 AS number, count(*) OVER () AS hosts
                   FROM hosts WHERE location = $4 AND state = 'up')
     INSERT INTO vms (id, project_id, name, type, family, gpu_count, location, state, host_id, image,
                      os_disk_id, interface_id, network_id, subnet_id, mac_address, private_address, firewall_applied)
     SELECT ('00000000-0000-7000-8000-' || lpad(to_hex($3::bigint * 1000000 + i), 12, '0'))::uuid, $1,
            'row-' || $3 || '-' || i, 'a40.1x', 'a40', 1, $4, 'STATE_RUNNING', host.id, 'i',
            gen_random_uuid(), gen_random_uuid(), subnet.network_id, subnet.id, 'row-' || $3 || '-' || i,
            network(subnet.cidr)::inet + (1000 + i), 1
     FROM subnet, generate_series(1, $2::bigint) i JOIN host ON host.number = i % host.hosts RETURNING id`,
    [projectId, count, series, location],
  )
  const ids = rows.map(({ id }) => id)
  if (isAtEngine)
    await service.sql(
      `INSERT INTO simulated_vms (id, location, host, generation, spec, power, ready_at, firewall_generation)
       SELECT v.id, v.location, h.name, 1, '{}', 'on', slipway_now(), 1
       FROM vms v JOIN hosts h ON h.id = v.host_id WHERE v.id = ANY ($1)`,
      [ids],
    )
  return ids
}

export async function removeVmRows(service: Pick<TestService, 'sql'>): Promise<void> {
  const rows = await service.sql<{ id: string }>(`DELETE FROM vms WHERE name LIKE 'row-%' RETURNING id`)
  await service.sql('DELETE FROM simulated_vms WHERE id = ANY ($1)', [rows.map(({ id }) => id)])
}
