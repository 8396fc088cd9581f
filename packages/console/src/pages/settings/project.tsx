import { useNavigate } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import { useAction } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { useMe, useProject, useWhyNot } from '../../api/me.ts'
import { readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { SettingsTabs } from '../../features/page-tabs.tsx'
import { plural } from '../../lib/format.ts'
import { projectCommands, shellQuote } from '../../lib/shell.ts'
import { Button } from '../../ui/button.tsx'
import { ShowAs } from '../../ui/commands.tsx'
import { Copyable } from '../../ui/copy.tsx'
import { Confirm, submitProps } from '../../ui/dialog.tsx'
import { ErrorNote } from '../../ui/error.tsx'
import { TextField } from '../../ui/field.tsx'
import { Facts, Page, Section } from '../../ui/page.tsx'

export function ProjectSettings() {
  const project = useProject()
  const { organizations } = useMe()
  const whyNot = useWhyNot('admin')
  const contents = useDeleteProblem(project.id)
  const navigate = useNavigate()
  const [name, setName] = useState(project.name)
  const [isDeleting, setDeleting] = useState(false)
  const rename = useAction({
    run: () => client.projectUpdate({ project_id: project.id }, { name: name.trim() }),
    done: () => `Renamed the project to ${name.trim()}`,
    invalidates: ['projectList'],
    showsErrors: true,
  })
  const remove = useAction({
    run: () => client.projectDelete({ project_id: project.id }),
    done: () => `Deleted project ${project.name}`,
    showsErrors: true,
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (name.trim() && !whyNot) rename.mutate(undefined)
  }
  return (
    <Page title="Settings" tabTitle="Project">
      <SettingsTabs />
      <Facts
        items={[
          ['Project ID', <Copyable key="id" text={project.id} />],
          ['Organization', organizations.find(({ id }) => id === project.organization_id)?.name ?? '–'],
          ['API version', project.version],
          ['API URL', <Copyable key="api" text={`${location.origin}/v0.1`} />],
        ]}
      />
      <Section title="Name">
        <form onSubmit={submit} noValidate className="card flex max-w-md flex-col gap-4 p-4">
          <TextField label="Project name" value={name} onChange={setName} />
          {rename.error && <ErrorNote error={rename.error} />}
          {/* The commands have a margin of their own, for dialogs. */}
          <div className="-mt-4">
            <ShowAs
              commands={projectCommands(project.id, {
                cli: `slipway project rename ${shellQuote(project.name)} ${shellQuote(name.trim() || 'NAME')}`,
                method: 'PATCH',
                path: '',
                body: { name: name.trim() },
                terraform: 'project',
                changes: project.name,
              })}
            />
          </div>
          <div>
            <Button
              type="submit"
              isBusy={rename.isPending}
              reason={
                whyNot ?? (name.trim() && name.trim() !== project.name ? undefined : 'Enter a new name')
              }
            >
              Rename
            </Button>
          </div>
        </form>
      </Section>
      <Section title="Delete project">
        <div className="card flex flex-wrap items-center justify-between gap-4 px-4 py-3">
          <span className="text-ink-muted">
            Delete all VMs, groups, disks, snapshots, images and reserved addresses first.
          </span>
          <Button kind="danger" reason={whyNot ?? contents} onClick={() => setDeleting(true)}>
            Delete project
          </Button>
        </div>
      </Section>
      <Confirm
        isOpen={isDeleting}
        onClose={() => setDeleting(false)}
        title={`Delete project ${project.name}`}
        action="Delete project"
        commands={projectCommands(project.id, {
          cli: `slipway project delete ${shellQuote(project.name)}`,
          method: 'DELETE',
          path: '',
        })}
        {...submitProps(remove, undefined, () => {
          void navigate({ to: '/' }).then(() => location.reload())
        })}
        nameToType={project.name}
      >
        <p>
          The project’s networks, firewall rules, templates, keys and webhooks will be permanently deleted.
          Invoices and the audit log will be kept.
        </p>
      </Confirm>
    </Page>
  )
}

/** Returns why the project cannot be deleted; undefined if it is empty. */
function useDeleteProblem(projectId: string): string | undefined {
  const vms = useQuery(readAll('vmList', { project_id: projectId })).data ?? []
  const disks = useQuery(readAll('diskList', { project_id: projectId })).data ?? []
  if (vms.length + disks.length === 0) return undefined
  const words = [vms.length > 0 && plural(vms.length, 'VM'), disks.length > 0 && plural(disks.length, 'disk')]
  const them = vms.length + disks.length === 1 ? 'it' : 'them'
  return `The project still has ${words.filter(Boolean).join(' and ')}. Delete ${them} first.`
}
