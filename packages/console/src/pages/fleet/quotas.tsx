import { useState } from 'react'
import { useAction } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { read, readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { settingsPollMs } from '../../features/fleet/poll.ts'
import { type AdminProject, ProjectPicker } from '../../features/fleet/project-picker.tsx'
import { FleetPage } from '../../features/page-tabs.tsx'
import { count, quotaLabel } from '../../lib/format.ts'
import { useSearchState } from '../../lib/use-search-state.ts'
import { Button } from '../../ui/button.tsx'
import { Loaded } from '../../ui/loaded.tsx'
import { Section } from '../../ui/page.tsx'

export function Quotas() {
  const projects = useQuery({ ...readAll('adminProjectList', {}), refetchInterval: settingsPollMs })
  return (
    <FleetPage>
      <Loaded query={projects} rows={8}>
        {(data) =>
          data.length === 0 ? (
            <p className="card px-4 py-3 text-ink-muted">
              Quotas are shown with a project, and no organization has one yet.
            </p>
          ) : (
            <ProjectQuotas projects={data} />
          )
        }
      </Loaded>
    </FleetPage>
  )
}

function ProjectQuotas({ projects }: { projects: AdminProject[] }) {
  const [search, setSearch] = useSearchState()
  const project = projects.find(({ id }) => id === search.project) ?? projects[0]!
  const { id: project_id, organization_id } = project
  const whole = useQuery({
    ...read('adminOrganizationQuotaList', { params: { organization_id } }),
    refetchInterval: settingsPollMs,
  })
  const own = useQuery({
    ...read('adminQuotaList', { query: { project_id } }),
    refetchInterval: settingsPollMs,
  })
  return (
    <>
      <ProjectPicker projects={projects} value={project} onChange={({ id }) => setSearch({ project: id })} />
      <Section title={`All projects of ${project.organization_name} together`}>
        <Loaded query={whole} rows={14}>
          {({ items }) => (
            <QuotaForm
              key={organization_id}
              holder={project.organization_name}
              quotas={items}
              set={(changed) => client.adminOrganizationQuotaSet({ organization_id }, { items: changed })}
            />
          )}
        </Loaded>
      </Section>
      <Section title={`${project.name} alone, within these`}>
        <Loaded query={own} rows={8}>
          {({ items }) => (
            <QuotaForm
              key={project_id}
              holder={project.name}
              quotas={items}
              set={(changed) => client.adminQuotaSet({ project_id, items: changed })}
            />
          )}
        </Loaded>
      </Section>
    </>
  )
}

function QuotaForm<Name extends string>({
  holder,
  quotas,
  set,
}: {
  holder: string
  quotas: { name: Name; max: number; used: number }[]
  set: (items: { name: Name; max: number }[]) => Promise<unknown>
}) {
  const [values, setValues] = useState<Record<string, string>>({})
  const changed = quotas.filter(
    (quota) => values[quota.name] !== undefined && Number(values[quota.name]) !== quota.max,
  )
  const isValid = changed.every((quota) => /^\d+$/.test(values[quota.name] ?? ''))
  const save = useAction({
    run: () => set(changed.map(({ name }) => ({ name, max: Number(values[name]) }))),
    done: () => `Set the quotas of ${holder}`,
    touches: ['adminQuotaList', 'adminOrganizationQuotaList', 'quotaList', 'organizationQuotaList'],
  })
  return (
    <div className="card max-w-2xl divide-y divide-line">
      {quotas.map((quota) => (
        <div key={quota.name} className="flex min-h-11 items-center gap-4 px-4">
          <span className="flex-1">{quotaLabel(quota.name)}</span>
          <span className="figures text-sm text-ink-muted">{count(quota.used)} used of</span>
          <input
            aria-label={`${quotaLabel(quota.name)} of ${holder}`}
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
          {`Set quotas of ${holder}`}
        </Button>
      </div>
    </div>
  )
}
