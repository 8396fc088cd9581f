import { Dialog } from '@base-ui/react/dialog'
import { type SearchResult, type VmAction, vmActions } from '@slipway/sdk'
import { keepPreviousData } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useMemo, useState } from 'react'
import { useMe, useProject, useProjectId } from '../api/me.ts'
import { read, readAll } from '../api/read.ts'
import { useQuery } from '../api/use-query.ts'
import {
  destinations,
  fleetPages,
  networkPages,
  type PageName,
  settingsPages,
  storagePages,
  vmPages,
} from '../lib/destinations.ts'
import { plural, resourceText, sizeText } from '../lib/format.ts'
import { groupState, stateWord } from '../lib/states.ts'
import { Finder } from '../ui/finder.tsx'

interface Hit {
  key: string
  name: string
  kind: string
  note: string
  /** The path to open, or the action to run. */
  to: string | (() => void)
}

const maxHits = 12

export function Palette({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  return (
    <Dialog.Root open={isOpen} onOpenChange={(open) => !open && onClose()}>
      <Dialog.Portal>
        <Dialog.Backdrop className="fixed inset-0 z-40 bg-backdrop" />
        <Dialog.Popup
          data-modal
          className="fixed top-[12vh] left-1/2 z-50 w-[calc(100%-32px)] max-w-2xl -translate-x-1/2 overflow-hidden rounded-md border border-line-strong bg-surface shadow-float"
        >
          <Dialog.Title className="sr-only">Search</Dialog.Title>
          <PaletteFinder onClose={onClose} />
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  )
}

function PaletteFinder({ onClose }: { onClose: () => void }) {
  const navigate = useNavigate()
  const [text, setText] = useState('')
  const local = useCandidates()
  const remote = useSearchResults(text.trim(), local)
  const actions = useActions(text.trim())
  const hits = useMemo(
    () => [...actions, ...ranked([...local, ...remote], text.trim().toLowerCase())].slice(0, maxHits),
    [local, remote, actions, text],
  )
  const open = (hit: Hit) => {
    onClose()
    if (typeof hit.to === 'string') void navigate({ to: hit.to })
    else hit.to()
  }
  return (
    <Finder
      label="Search VMs, disks and pages"
      placeholder="Search by name, IP address or page, or type “stop train-7”"
      text={text}
      onText={setText}
      hits={hits}
      keyOf={({ key }) => key}
      onOpen={open}
      empty="No results."
    >
      {(hit) => (
        <>
          <span className="flex min-w-0 flex-1 items-baseline justify-between gap-x-4 max-sm:flex-col">
            <span className="min-w-0 break-words">{hit.name}</span>
            <span className="min-w-0 text-sm text-ink-muted sm:text-right">{hit.note}</span>
          </span>
          <span className="w-24 shrink-0 text-right text-sm whitespace-nowrap text-ink-muted">
            {hit.kind}
          </span>
        </>
      )}
    </Finder>
  )
}

/** Sorts exact matches first, then names that start with the text, then names and notes that contain it. */
function ranked(hits: Hit[], wanted: string): Hit[] {
  const rankOf = ({ name, note, key }: Hit) => {
    const own = name.toLowerCase()
    if (own === wanted) return 0
    if (own.startsWith(wanted)) return 1
    if (own.includes(wanted)) return 2
    return `${note} ${key}`.toLowerCase().includes(wanted) ? 3 : 4
  }
  return hits
    .map((hit) => ({ hit, rank: rankOf(hit) }))
    .filter(({ rank }) => rank < 4)
    .toSorted((a, b) => a.rank - b.rank)
    .map(({ hit }) => hit)
}

const verbs: Record<string, VmAction> = { stop: 'STOP', start: 'START', reset: 'RESET' }

/** Recognizes text such as "stop train-7". The result opens the VM's page with its confirmation dialog. */
function useActions(text: string): Hit[] {
  const projectId = useProjectId()
  const vms = useQuery({ ...readAll('vmList', { project_id: projectId }), enabled: projectId !== '' })
  const [, verb = '', name = ''] = /^(\w+)\s+(\S+)$/.exec(text.toLowerCase()) ?? []
  const action = verbs[verb]
  return useMemo(() => {
    if (!action) return []
    return (vms.data ?? [])
      .filter((vm) => vm.name.startsWith(name) && vmActions[action].from.includes(vm.state))
      .slice(0, 3)
      .map((vm) => ({
        key: `${verb} ${vm.id}`,
        name: `${verb.charAt(0).toUpperCase()}${verb.slice(1)} ${vm.name}`,
        kind: 'action',
        note: `${vm.type} · ${stateWord(vm.state)}`,
        to: `/projects/${projectId}/vms/${vm.id}?ask=${verb}`,
      }))
  }, [action, verb, name, vms.data, projectId])
}

/** Searches the organization and, for operators, the fleet. Results of the open project are first. */
function useSearchResults(text: string, local: Hit[]): Hit[] {
  const { caller } = useMe()
  const { id: projectId, organization_id } = useProject()
  const isSearching = text.length >= 2
  const tenant = useQuery({
    ...read('organizationSearch', { params: { organization_id }, query: { q: text } }),
    enabled: isSearching && organization_id !== '',
    placeholderData: keepPreviousData,
  })
  const fleet = useQuery({
    ...read('adminSearch', { query: { q: text } }),
    enabled: isSearching && caller.is_operator,
    placeholderData: keepPreviousData,
  })
  return useMemo(() => {
    if (!isSearching) return []
    const known = new Set(local.map(({ key }) => key))
    const results = [
      ...(tenant.data?.items ?? []).map((result) => ({ result, isFleet: false })),
      ...(caller.is_operator ? (fleet.data?.items ?? []) : []).map((result) => ({ result, isFleet: true })),
    ]
    const isElsewhere = ({ result }: (typeof results)[number]) => Number(result.project_id !== projectId)
    const found = results.toSorted((a, b) => isElsewhere(a) - isElsewhere(b))
    return found.flatMap(({ result, isFleet }): Hit[] => {
      const to = pathOf(result, isFleet)
      if (known.has(result.resource_id) || !to) return []
      known.add(result.resource_id)
      const { resource_type, project_name, organization_name, location, state, address } = result
      const project = result.project_id === projectId ? '' : project_name
      const owner = isFleet ? [organization_name, project_name].filter(Boolean).join(' / ') : project
      return [
        {
          key: result.resource_id,
          name: result.name,
          kind: resourceText(resource_type),
          note: [owner, state && stateWord(state), address || location].filter(Boolean).join(' · '),
          to,
        },
      ]
    })
  }, [isSearching, local, tenant.data, fleet.data, caller.is_operator, projectId])
}

/** The paths of lists, for resources without a page of their own. */
const listPaths: Record<
  Exclude<
    SearchResult['resource_type'],
    'host' | 'organization' | 'user' | 'vm' | 'disk' | 'instance_group' | 'instance_template'
  >,
  string
> = {
  snapshot: '/snapshots',
  custom_image: '/images',
  firewall_rule: '/network/firewall',
  network: '/network/networks',
  subnet: '/network/networks',
  address: '/network/addresses',
  project: '',
}

function pathOf({ resource_type, resource_id, project_id }: SearchResult, isFleet: boolean): string {
  if (resource_type === 'host') return `/fleet/hosts/${resource_id}`
  if (resource_type === 'organization') return isFleet ? `/fleet/organizations?q=${resource_id}` : ''
  if (resource_type === 'user') return `/fleet/users/${resource_id}`
  if (isFleet && resource_type === 'vm') return `/fleet/vms/${resource_id}`
  if (isFleet && resource_type === 'project') return `/fleet/quotas?project=${resource_id}`
  // The fleet has no pages for other tenant resources, so link to their project.
  if (isFleet) return `/fleet/quotas?project=${project_id}`
  const base = `/projects/${project_id || resource_id}`
  if (resource_type === 'vm') return `${base}/vms/${resource_id}`
  if (resource_type === 'disk') return `${base}/disks?disk=${resource_id}`
  if (resource_type === 'instance_group') return `${base}/groups/${resource_id}`
  if (resource_type === 'instance_template') return `${base}/templates?open=${resource_id}`
  return `${base}${listPaths[resource_type]}`
}

const pageHit =
  (base: string, note: string) =>
  ({ name, path }: PageName): Hit => ({
    key: `page ${path} ${name}`,
    name,
    kind: 'page',
    note,
    to: base + path,
  })

const createVm: PageName = { name: 'Create VM', path: '/vms/new' }
const allPages = [
  ...Object.values(destinations),
  createVm,
  ...vmPages,
  ...storagePages,
  ...networkPages,
  ...settingsPages,
]
/** Some pages are both in the sidebar and in tabs; each appears once. */
const projectPages = [...new Map(allPages.map((page) => [page.name, page])).values()]

function useCandidates(): Hit[] {
  const projectId = useProjectId()
  const { caller } = useMe()
  const hasProject = projectId !== ''
  const vms = useQuery({ ...readAll('vmList', { project_id: projectId }), enabled: hasProject })
  const disks = useQuery({ ...readAll('diskList', { project_id: projectId }), enabled: hasProject })
  const groups = useQuery({ ...readAll('instanceGroupList', { project_id: projectId }), enabled: hasProject })
  return useMemo(() => {
    const base = `/projects/${projectId}`
    return [
      ...(vms.data ?? []).map((vm) => ({
        key: vm.id,
        name: vm.name,
        kind: 'VM',
        note: [vm.type, stateWord(vm.state), vm.ssh_destination.replace(/^.*@/, '')]
          .filter(Boolean)
          .join(' · '),
        to: `${base}/vms/${vm.id}`,
      })),
      ...(groups.data ?? []).map((group) => ({
        key: group.id,
        name: group.name,
        kind: 'group',
        note: `${plural(group.desired_count, 'VM')} · ${stateWord(groupState(group))} · ${group.location}`,
        to: `${base}/groups/${group.id}`,
      })),
      ...(disks.data ?? []).map((disk) => ({
        key: disk.id,
        name: disk.name,
        kind: 'disk',
        note: `${sizeText(disk.size)} · ${disk.location}`,
        to: `${base}/disks?disk=${disk.id}`,
      })),
      ...(hasProject ? projectPages : []).map(pageHit(base, '')),
      ...[{ name: 'All projects', path: '/projects' }].map(pageHit('', '')),
      ...(caller.is_operator ? fleetPages : []).map(pageHit('', 'fleet')),
    ]
  }, [projectId, hasProject, vms.data, groups.data, disks.data, caller.is_operator])
}
