import { useInfiniteQuery } from '@tanstack/react-query'
import { client } from '../../api/client.ts'
import { readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { EventRows } from '../../features/event-table.tsx'
import { FleetPage } from '../../features/page-tabs.tsx'
import { Button } from '../../ui/button.tsx'
import { Loaded } from '../../ui/loaded.tsx'

/** Shows what all tenants and operators did. */
export function Audit() {
  const users = useQuery({ ...readAll('adminUserList', {}), staleTime: 60_000 })
  const actors = new Map((users.data ?? []).map(({ id, email }) => [`user:${id}`, email]))
  const events = useInfiniteQuery({
    queryKey: ['adminEventList'],
    initialPageParam: '',
    queryFn: ({ pageParam, signal }) =>
      client.adminEventList({ limit: 100, page_token: pageParam || undefined }, { signal }),
    getNextPageParam: (page) => page.next_page_token || undefined,
    refetchInterval: 5_000,
  })
  return (
    <FleetPage>
      <Loaded query={events}>
        {(data) => <EventRows rows={data.pages.flatMap((page) => page.items)} actors={actors} />}
      </Loaded>
      {events.hasNextPage && (
        <div>
          <Button isBusy={events.isFetchingNextPage} onClick={() => events.fetchNextPage()}>
            Older events
          </Button>
        </div>
      )}
    </FleetPage>
  )
}
