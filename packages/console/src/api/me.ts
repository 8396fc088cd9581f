import { type Organization, type Project, type Role, type RouteResponse, roles } from '@slipway/sdk'
import { useParams } from '@tanstack/react-router'
import { queryClient } from './client.ts'
import { read, readAll } from './read.ts'
import { useQuery } from './use-query.ts'

type Caller = RouteResponse<'rootGet'>['caller']

/**
 * The signed-in user, and the projects and organizations that the user can see. They are loaded before any
 * page that uses them.
 */
export const meQueries = [read('rootGet', {}), read('projectList', {}), read('organizationList', {})] as const

export async function loadMe() {
  const [root, projects, organizations] = await Promise.all([
    queryClient.ensureQueryData(meQueries[0]),
    queryClient.ensureQueryData(meQueries[1]),
    queryClient.ensureQueryData(meQueries[2]),
  ])
  return { caller: root.caller, projects, organizations }
}

export function useMe(): { caller: Caller; projects: Project[]; organizations: Organization[] } {
  const root = useQuery(meQueries[0])
  const projects = useQuery(meQueries[1])
  const organizations = useQuery(meQueries[2])
  if (!root.data) throw new Error('The caller has not been loaded yet.')
  return { caller: root.data.caller, projects: projects.data ?? [], organizations: organizations.data ?? [] }
}

export const useProjectId = (): string => useParams({ strict: false }).projectId ?? ''

export function useProject(): Project {
  const projectId = useProjectId()
  const { projects } = useMe()
  return (
    projects.find((project) => project.id === projectId) ?? {
      id: projectId,
      name: '',
      version: '',
      organization_id: '',
      labels: {},
    }
  )
}

/** Returns the caller's role in an organization; empty until it is loaded. */
export function useRole(organizationId: string): Role | '' {
  const { caller } = useMe()
  const { data } = useQuery({
    ...readAll('memberList', { organization_id: organizationId }),
    enabled: organizationId !== '',
    staleTime: 60_000,
  })
  return data?.find((member) => member.user_id === caller.id)?.role ?? ''
}

/**
 * Returns why the caller's role is too low for an action that requires `role`; undefined if it is sufficient. The
 * organization is by default the open project's.
 */
export function useWhyNot(role: Role, organizationId?: string): string | undefined {
  const { organization_id } = useProject()
  const mine = useRole(organizationId ?? organization_id)
  if (mine === '' || roles.indexOf(mine) >= roles.indexOf(role)) return undefined
  return `This requires the ${role} role. Your role is ${mine}.`
}

/** Returns whether the service sends e-mail; undefined until it is known. */
export const useSendsMail = (): boolean | undefined => useQuery(read('authOidcList', {})).data?.sends_mail
