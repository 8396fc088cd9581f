import { Link } from '@tanstack/react-router'
import { readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { shortId } from '../../lib/format.ts'
import { Token } from '../../ui/token.tsx'

/** Leads to a host. Hosts of several locations may look alike by name: the location stands beside it. */
export function HostLink({ hostId, location }: { hostId: string; location: string }) {
  const hosts = useQuery({ ...readAll('adminHostList', {}), staleTime: 60_000 })
  const name = hosts.data?.find(({ id }) => id === hostId)?.name ?? `…${shortId(hostId)}`
  return (
    <Link to="/fleet/hosts/$hostId" params={{ hostId }} className="link">
      <Token>{name}</Token> · <Token>{location}</Token>
    </Link>
  )
}
