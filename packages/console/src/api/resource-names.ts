import type { Project } from '@slipway/sdk'
import { useCallback, useMemo } from 'react'
import { shortId } from '../lib/format.ts'
import { readAll } from './read.ts'
import { useQuery } from './use-query.ts'

const rarelyChangesMs = 60_000

/** Returns the names of a project's resources by ID. Names can be missing until `areAllLoaded`. */
function useNames(projectId: string): { names: Map<string, string>; areAllLoaded: boolean } {
  const target = { project_id: projectId }
  const enabled = projectId !== ''
  const vms = useQuery({ ...readAll('vmList', target), enabled })
  const disks = useQuery({ ...readAll('diskList', target), enabled })
  const rules = useQuery({ ...readAll('firewallRuleList', target), enabled })
  const subnets = useQuery({ ...readAll('subnetList', target), enabled })
  const networks = useQuery({ ...readAll('networkList', target), enabled })
  const groups = useQuery({ ...readAll('instanceGroupList', target), enabled })
  return useMemo(() => {
    const lists = [vms.data, disks.data, rules.data, subnets.data, networks.data, groups.data]
    return {
      names: new Map(lists.flatMap((list) => (list ?? []).map(({ id, name }) => [id, name]))),
      areAllLoaded: lists.every((list) => list !== undefined),
    }
  }, [vms.data, disks.data, rules.data, subnets.data, networks.data, groups.data])
}

/** Returns the names of a project's resources by ID. */
export const useResourceNames = (projectId: string): Map<string, string> => useNames(projectId).names

/** Returns display names by the `actor` of an event: the name of an access key or the e-mail address of a user. */
export function useActorNames(project: Project): Map<string, string> {
  const keys = useQuery({
    ...readAll('accessKeyList', { project_id: project.id }),
    staleTime: rarelyChangesMs,
  })
  const organizationKeys = useQuery({
    ...readAll('organizationKeyList', { organization_id: project.organization_id }),
    staleTime: rarelyChangesMs,
  })
  const members = useQuery({
    ...readAll('memberList', { organization_id: project.organization_id }),
    staleTime: rarelyChangesMs,
  })
  return useMemo(
    () =>
      new Map([
        ...[...(keys.data ?? []), ...(organizationKeys.data ?? [])].map(
          ({ id, name }) => [`access_key:${id}`, `access key ${name}`] as const,
        ),
        ...(members.data ?? []).map(({ user_id, email }) => [`user:${user_id}`, email] as const),
      ]),
    [keys.data, organizationKeys.data, members.data],
  )
}

/** Returns a function that returns the name of a resource that a firewall rule or a disk refers to. */
export function useEndpointNames(projectId: string): (id: string) => string {
  const { names, areAllLoaded } = useNames(projectId)
  return useCallback(
    (id) => names.get(id) ?? (areAllLoaded ? `deleted resource (…${shortId(id)})` : '…'),
    [names, areAllLoaded],
  )
}
