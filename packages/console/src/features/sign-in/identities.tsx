import { useAction } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { read } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { Button } from '../../ui/button.tsx'
import { Section } from '../../ui/page.tsx'

/** The account's single sign-on identities; empty if no provider is configured. */
export function Identities() {
  const providers = useQuery(read('authOidcList', {}))
  const identities = useQuery(read('authIdentityList', {}))
  const link = useAction({
    run: async (provider: string) => location.assign((await client.authOidcLink({ provider })).url),
    done: () => '',
    failed: (provider) => `Could not link ${provider}`,
  })
  const unlink = useAction({
    run: (provider: string) => client.authOidcUnlink({ provider }),
    done: (provider) => `Unlinked ${provider}`,
    failed: (provider) => `Could not unlink ${provider}`,
    invalidates: ['authIdentityList'],
  })
  if (!providers.data?.items.length || !identities.data) return null
  const linked = new Set(identities.data.items.map(({ provider }) => provider))
  return (
    <Section title="Single sign-on">
      <ul className="card divide-y divide-line">
        {providers.data.items.map(({ name }) => (
          <li key={name} className="flex items-center justify-between gap-4 px-4 py-2">
            <span>
              <span className="font-medium">{name}</span>{' '}
              <span className="text-ink-muted">{linked.has(name) ? 'Linked' : 'Not linked'}</span>
            </span>
            {linked.has(name) ? (
              <Button size="small" kind="danger" onClick={() => unlink.mutate(name)}>
                Unlink {name}
              </Button>
            ) : (
              <Button size="small" onClick={() => link.mutate(name)}>
                Link {name}
              </Button>
            )}
          </li>
        ))}
      </ul>
    </Section>
  )
}
