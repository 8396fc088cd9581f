import { useCallback, useMemo } from 'react'
import { readAll } from '../api/read.ts'
import { useQuery } from '../api/use-query.ts'
import { shortId } from './format.ts'

/** The names of what lives in a project, by id. */
export function useResourceNames(projectId: string): Map<string, string> {
  const target = { project_id: projectId }
  const enabled = projectId !== ''
  const vms = useQuery({ ...readAll('vmList', target), enabled })
  const disks = useQuery({ ...readAll('diskList', target), enabled })
  const rules = useQuery({ ...readAll('firewallRuleList', target), enabled })
  const subnets = useQuery({ ...readAll('subnetList', target), enabled })
  const networks = useQuery({ ...readAll('networkList', target), enabled })
  return useMemo(() => {
    const lists = [vms.data, disks.data, rules.data, subnets.data, networks.data]
    return new Map(lists.flatMap((list) => (list ?? []).map(({ id, name }) => [id, name])))
  }, [vms.data, disks.data, rules.data, subnets.data, networks.data])
}

/** Words for what a firewall rule or a disk points to. */
export function useEndpointNames(projectId: string): (id: string) => string {
  const names = useResourceNames(projectId)
  return useCallback((id) => names.get(id) ?? `something deleted (…${shortId(id)})`, [names])
}
