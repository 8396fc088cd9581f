import { Link } from '@tanstack/react-router'
import { read, readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { shortId } from '../../lib/format.ts'
import { NoBreak } from '../../ui/no-break.tsx'

interface VmOnHost {
  state: string
  location: string
  host_id: string
}

/**
 * Links to the host that a VM is on, or shows "none". On shared storage, a stopped VM is on no host. Host names are
 * unique only within a location, so lists show the location too.
 */
export function HostOfVm({ vm, hasLocation = false }: { vm: VmOnHost; hasLocation?: boolean }) {
  const locations = useQuery({ ...read('adminLocationList', {}), staleTime: 60_000 })
  const storage = locations.data?.items.find(({ name }) => name === vm.location)?.storage
  const isOnHost = vm.host_id !== '' && (vm.state !== 'STATE_SHUTOFF' || storage === 'local')
  return (
    <>
      {isOnHost ? <HostLink hostId={vm.host_id} /> : <span className="text-ink-muted">none</span>}
      {hasLocation && (
        <span className="text-ink-muted">
          {' '}
          · <NoBreak>{vm.location}</NoBreak>
        </span>
      )}
    </>
  )
}

/** Links to a host whose name is known. The location is shown elsewhere. */
export const HostNameLink = ({ id, name }: { id: string; name: string }) => (
  <Link to="/fleet/hosts/$hostId" params={{ hostId: id }} className="link">
    {name}
  </Link>
)

function HostLink({ hostId }: { hostId: string }) {
  const hosts = useQuery({ ...readAll('adminHostList', {}), staleTime: 60_000 })
  const name = hosts.data?.find(({ id }) => id === hostId)?.name ?? `…${shortId(hostId)}`
  return (
    <Link to="/fleet/hosts/$hostId" params={{ hostId }} className="link">
      {name}
    </Link>
  )
}
