import { type ReactNode, useState } from 'react'
import { useAction } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { read, readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { recordedPollMs, settingsPollMs } from '../../features/fleet/poll.ts'
import { type AdminProject, ProjectPicker } from '../../features/fleet/project-picker.tsx'
import { FleetPage } from '../../features/page-tabs.tsx'
import { count, quotaLabel } from '../../lib/format.ts'
import { type Commands, operatorCommands } from '../../lib/shell.ts'
import { useSearchState } from '../../lib/use-search-state.ts'
import { Button } from '../../ui/button.tsx'
import { ShowAs } from '../../ui/commands.tsx'
import { Loaded } from '../../ui/loaded.tsx'
import { Section, UsageBar } from '../../ui/page.tsx'
import { QuotaRequests } from './quota-requests.tsx'

export function Quotas() {
  const projects = useQuery({
    ...readAll('adminProjectList', {}),
    refetchInterval: settingsPollMs,
    staleTime: 0,
  })
  return (
    <FleetPage>
      <QuotaRequests />
      <Loaded query={projects} rows={8}>
        {(data) =>
          data.length === 0 ? (
            <p className="card px-4 py-3 text-ink-muted">
              No projects yet. Quotas appear after the first project is created.
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
  const organizationQuotas = useQuery({
    ...read('adminOrganizationQuotaList', { params: { organization_id } }),
    refetchInterval: recordedPollMs,
  })
  // Every read of one project's quotas is recorded in the audit log, so do not poll.
  const projectQuotas = useQuery(read('adminQuotaList', { query: { project_id } }))
  return (
    <Section
      title="Limits"
      actions={
        <div className="w-80 max-w-full">
          <ProjectPicker
            projects={projects}
            value={project}
            onChange={({ id }) => setSearch({ project: id })}
          />
        </div>
      }
    >
      <div className="grid grid-cols-1 items-start gap-x-6 gap-y-4 lg:grid-cols-2">
        <Holder
          title={`Organization ${project.organization_name}`}
          about="Limits for all projects of the organization combined."
        >
          <Loaded query={organizationQuotas} rows={14}>
            {({ items }) => (
              <QuotaForm
                key={organization_id}
                holder={project.organization_name}
                quotas={items}
                set={(changed) => client.adminOrganizationQuotaSet({ organization_id }, { items: changed })}
                commandsOf={(changed) =>
                  operatorCommands({
                    cli: `slipway admin org quotas ${organization_id} ${quotaArguments(changed)}`,
                    method: 'PUT',
                    path: `/organizations/${organization_id}/quotas`,
                    body: { items: changed },
                  })
                }
              />
            )}
          </Loaded>
        </Holder>
        <Holder
          title={`Project ${project.name}`}
          about="Limits for this project, within the organization’s limits."
        >
          <Loaded query={projectQuotas} rows={8}>
            {({ items }) => (
              <QuotaForm
                key={project_id}
                holder={project.name}
                quotas={items}
                set={(changed) => client.adminQuotaSet({ project_id, items: changed })}
                commandsOf={(changed) =>
                  operatorCommands({
                    cli: `slipway admin quota set ${project_id} ${quotaArguments(changed)}`,
                    method: 'PUT',
                    path: '/quotas',
                    body: { project_id, items: changed },
                  })
                }
              />
            )}
          </Loaded>
        </Holder>
      </div>
    </Section>
  )
}

/** A part of the section, so its heading is smaller. */
const Holder = ({ title, about, children }: { title: string; about: string; children: ReactNode }) => (
  <section aria-label={title} className="flex min-w-0 flex-col gap-3">
    <div>
      <h3 className="font-semibold wrap-anywhere">{title}</h3>
      <p className="text-ink-muted">{about}</p>
    </div>
    {children}
  </section>
)

type Limits<Name extends string = string> = { name: Name; max: number }[]

const quotaArguments = (items: Limits): string => items.map(({ name, max }) => `${name}=${max}`).join(' ')

function QuotaForm<Name extends string>({
  holder,
  quotas,
  set,
  commandsOf,
}: {
  holder: string
  quotas: { name: Name; max: number; used: number }[]
  set: (items: Limits<Name>) => Promise<unknown>
  commandsOf: (items: Limits) => Commands
}) {
  const [values, setValues] = useState<Record<string, string>>({})
  /** Limits are shown with thousands separators, and accepted with or without them. */
  const maxOf = ({ name, max }: { name: Name; max: number }) =>
    values[name] === undefined ? max : Number(values[name].replaceAll(/[^\d]/g, '') || Number.NaN)
  const changed = quotas.filter((quota) => maxOf(quota) !== quota.max)
  const isValid = changed.every((quota) => /^\d[\d.,’'\s]*$/.test(values[quota.name] ?? ''))
  const items = changed.map((quota) => ({ name: quota.name, max: maxOf(quota) }))
  const save = useAction({
    run: () => set(items),
    done: () => `Changed quotas of ${holder}`,
    failed: () => `Could not change quotas of ${holder}`,
    invalidates: ['adminQuotaList', 'adminOrganizationQuotaList', 'quotaList', 'organizationQuotaList'],
  })
  return (
    <div className="card divide-y divide-line">
      <div className="flex h-9 items-center justify-between px-4 text-sm text-ink-muted">
        <span>Quota and use</span>
        <span className="pr-2.5">Limit</span>
      </div>
      {quotas.map((quota) => (
        <div key={quota.name} className="flex items-center gap-6 px-4 py-1.5">
          <div className="min-w-0 flex-1">
            <UsageBar label={quotaLabel(quota.name)} used={quota.used} max={quota.max} />
          </div>
          <input
            aria-label={`${quotaLabel(quota.name)} of ${holder}`}
            inputMode="numeric"
            value={values[quota.name] ?? count(quota.max)}
            onChange={(event) => setValues({ ...values, [quota.name]: event.target.value })}
            className={`figures h-8 w-24 rounded-md border bg-surface px-2.5 text-right ${changed.includes(quota) ? 'border-accent' : 'border-line-strong'}`}
          />
        </div>
      ))}
      {/* The button stays visible while the form scrolls. */}
      <div className="sticky bottom-0 flex flex-wrap items-center justify-end gap-x-4 gap-y-2 -mt-px rounded-b-md border-t border-line bg-surface px-4 py-3">
        <p className="min-w-0 flex-1 text-sm text-ink-muted">
          {changed.map(({ name, max }) => `${quotaLabel(name)}: ${count(max)} → ${values[name]}`).join(', ')}
        </p>
        <Button
          kind="primary"
          aria-label={`Set quotas of ${holder}`}
          isBusy={save.isPending}
          reason={changed.length === 0 ? 'No changes yet' : isValid ? undefined : 'Enter whole numbers'}
          onClick={() => save.mutate(undefined, { onSuccess: () => setValues({}) })}
        >
          Set quotas
        </Button>
        {changed.length > 0 && isValid && (
          <div className="w-full">
            <ShowAs commands={commandsOf(items)} />
          </div>
        )}
      </div>
    </div>
  )
}
