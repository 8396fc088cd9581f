import { Link } from '@tanstack/react-router'
import { readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { shortId } from '../../lib/format.ts'
import { NoBreak } from '../../ui/no-break.tsx'

/** Links to a host whose name is known. The location is shown elsewhere. */
export const HostNameLink = ({ id, name }: { id: string; name: string }) => (
  <Link to="/fleet/hosts/$hostId" params={{ hostId: id }} className="link">
    {name}
  </Link>
)

/** Links to a host. Host names are unique only within a location, so lists show the location too. */
export function HostLink({ hostId, location = '' }: { hostId: string; location?: string }) {
  const hosts = useQuery({ ...readAll('adminHostList', {}), staleTime: 60_000 })
  const name = hosts.data?.find(({ id }) => id === hostId)?.name ?? `…${shortId(hostId)}`
  return (
    <>
      <Link to="/fleet/hosts/$hostId" params={{ hostId }} className="link">
        {name}
      </Link>
      {location && (
        <span className="text-ink-muted">
          {' '}
          · <NoBreak>{location}</NoBreak>
        </span>
      )}
    </>
  )
}
