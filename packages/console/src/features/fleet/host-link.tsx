import { Link } from '@tanstack/react-router'
import { readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { shortId } from '../../lib/format.ts'
import { NoBreak } from '../../ui/no-break.tsx'

/**
 * Links to the host that a VM is on, or shows "none". Host names are unique only within a location, so lists show the
 * location too.
 */
export function HostOfVm({
  vm,
  hasLocation = false,
}: {
  vm: { location: string; host_id: string }
  hasLocation?: boolean
}) {
  return (
    <>
      {vm.host_id ? <HostLink hostId={vm.host_id} /> : <span className="text-ink-muted">none</span>}
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
