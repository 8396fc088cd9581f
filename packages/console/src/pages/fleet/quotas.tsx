import type { Quota, QuotaName } from '@slipway/sdk'
import { type FormEvent, useState } from 'react'
import { useAction } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { read } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { useMe } from '../../app/me.ts'
import { quotaLabel } from '../../lib/format.ts'
import { useSearchState } from '../../lib/use-search.ts'
import { Button } from '../../ui/button.tsx'
import { ErrorState } from '../../ui/error.tsx'
import { Skeleton } from '../../ui/page.tsx'
import { FleetPage } from '../../ui/page-tabs.tsx'

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

export function Quotas() {
  const { projects } = useMe()
  const [search, setSearch] = useSearchState()
  const projectId = search.project ?? projects[0]?.id ?? ''
  const [typed, setTyped] = useState(projectId)
  const quotas = useQuery({
    ...read('adminQuotaList', { query: { project_id: projectId } }),
    enabled: uuid.test(projectId),
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (uuid.test(typed.trim())) setSearch({ project: typed.trim() })
  }
  return (
    <FleetPage>
      <form onSubmit={submit} className="flex flex-wrap items-center gap-2">
        <label htmlFor="quota-project" className="text-ink-muted">
          Project id
        </label>
        <input
          id="quota-project"
          value={typed}
          list="quota-projects"
          onChange={(event) => setTyped(event.target.value)}
          className="mono h-8 w-80 max-w-full rounded-md border border-line-strong bg-surface px-2.5"
        />
        <datalist id="quota-projects">
          {projects.map(({ id, name }) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </datalist>
        <Button
          type="submit"
          reason={
            uuid.test(typed.trim()) ? undefined : 'The id of a project, as its owner sees it under Settings'
          }
        >
          Show quotas
        </Button>
      </form>
      {quotas.error && !quotas.data ? (
        <ErrorState error={quotas.error} onRetry={() => quotas.refetch()} />
      ) : quotas.data ? (
        <QuotaForm key={projectId} projectId={projectId} quotas={quotas.data.items} />
      ) : uuid.test(projectId) ? (
        <Skeleton rows={8} />
      ) : (
        <p className="text-ink-muted">
          Quotas belong to a project. Its owner finds the id under Settings, Project.
        </p>
      )}
    </FleetPage>
  )
}

function QuotaForm({ projectId, quotas }: { projectId: string; quotas: Quota[] }) {
  const [values, setValues] = useState<Record<string, string>>({})
  const changed = quotas.filter(
    (quota) => values[quota.name] !== undefined && Number(values[quota.name]) !== quota.max,
  )
  const isValid = changed.every((quota) => /^\d+$/.test(values[quota.name] ?? ''))
  const save = useAction({
    run: () =>
      client.adminQuotaSet({
        project_id: projectId,
        items: changed.map(({ name }) => ({ name: name as QuotaName, max: Number(values[name]) })),
      }),
    done: () => 'Set the quotas',
    touches: ['adminQuotaList'],
  })
  return (
    <div className="card max-w-2xl divide-y divide-line">
      {quotas.map((quota) => (
        <div key={quota.name} className="flex min-h-11 items-center gap-4 px-4">
          <span className="flex-1">{quotaLabel(quota.name)}</span>
          <span className="figures text-sm text-ink-muted">{quota.used.toLocaleString('en-US')} used of</span>
          <input
            aria-label={quotaLabel(quota.name)}
            inputMode="numeric"
            value={values[quota.name] ?? String(quota.max)}
            onChange={(event) => setValues({ ...values, [quota.name]: event.target.value })}
            className="figures h-8 w-28 rounded-md border border-line-strong bg-surface px-2.5 text-right"
          />
        </div>
      ))}
      <div className="p-4">
        <Button
          kind="primary"
          isBusy={save.isPending}
          reason={
            changed.length === 0 ? 'Nothing has been changed' : isValid ? undefined : 'Whole numbers only'
          }
          onClick={() => save.mutate(undefined, { onSuccess: () => setValues({}) })}
        >
          Set quotas
        </Button>
      </div>
    </div>
  )
}
