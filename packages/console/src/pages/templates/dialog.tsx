import type { InstanceTemplate } from '@slipway/sdk'
import type { ReactNode } from 'react'
import { useState } from 'react'
import { useAction } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { useProjectId, useWhyNot } from '../../api/me.ts'
import { readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { plural, shortId, sizeText } from '../../lib/format.ts'
import { projectCommands } from '../../lib/shell.ts'
import { Button, ButtonLink } from '../../ui/button.tsx'
import { Copyable } from '../../ui/copy.tsx'
import { Confirm, Dialog, submitProps } from '../../ui/dialog.tsx'
import { SelectField } from '../../ui/field.tsx'
import { Labels } from '../../ui/labels.tsx'
import { Timestamp } from '../../ui/time.tsx'

interface TemplateDialogProps {
  template: InstanceTemplate
  /** All versions, the latest first. */
  versions: InstanceTemplate[]
  onOpen: (id: string) => void
  onClose: () => void
}

/** Shows a version of a template, and deletes it or creates a VM from it. */
export function TemplateDialog({ template, versions, onOpen, onClose }: TemplateDialogProps) {
  const projectId = useProjectId()
  const whyNot = useWhyNot('member')
  const [isDeleting, setDeleting] = useState(false)
  const remove = useAction({
    run: ({ id }: InstanceTemplate) =>
      client.instanceTemplateDelete({ project_id: projectId, instance_template_id: id }),
    done: ({ name, version }) => `Deleted version ${version} of ${name}`,
    invalidates: ['instanceTemplateList', 'organizationQuotaList'],
    showsErrors: true,
  })
  const next = versions.find(({ id }) => id !== template.id)
  const deletion = next ? 'Delete version' : 'Delete template'
  if (isDeleting)
    return (
      <Confirm
        isOpen
        onClose={() => setDeleting(false)}
        title={
          next ? `Delete version ${template.version} of ${template.name}` : `Delete template ${template.name}`
        }
        action={deletion}
        commands={projectCommands(projectId, {
          cli: `slipway template delete ${template.id}`,
          method: 'DELETE',
          path: `/instance-templates/${template.id}`,
        })}
        {...submitProps(remove, template, () => {
          setDeleting(false)
          if (next) onOpen(next.id)
          else onClose()
        })}
      >
        <p>
          The {next ? 'version' : 'template'} will be permanently deleted.{' '}
          {next && 'Other versions are kept. '}
          VMs and groups that were created from this {next ? 'version' : 'template'} are not affected.
        </p>
      </Confirm>
    )
  return (
    <Dialog isOpen onClose={onClose} title={`Template ${template.name}`} isWide>
      <div className="flex flex-col gap-4">
        <SelectField
          label="Version"
          value={template.id}
          onChange={onOpen}
          choices={versions.map(({ id, version }, index) => ({
            value: id,
            label: index === 0 ? `${version} (latest)` : String(version),
          }))}
        />
        <TemplateFacts template={template} />
        <div className="flex flex-wrap justify-end gap-2 max-sm:flex-col-reverse">
          <Button kind="danger" reason={whyNot} className="sm:mr-auto" onClick={() => setDeleting(true)}>
            {deletion}
          </Button>
          <ButtonLink
            to="/projects/$projectId/vms/new"
            params={{ projectId }}
            search={{ template: template.id, count: '2' }}
          >
            Create group
          </ButtonLink>
          <ButtonLink
            kind="primary"
            to="/projects/$projectId/vms/new"
            params={{ projectId }}
            search={{ template: template.id }}
          >
            Create VM
          </ButtonLink>
        </div>
      </div>
    </Dialog>
  )
}

function TemplateFacts({ template }: { template: InstanceTemplate }) {
  const keys = useQuery(readAll('sshKeyList', { project_id: template.project_id }))
  const keyName = (id: string) => keys.data?.find((key) => key.id === id)?.name ?? `key …${shortId(id)}`
  const facts: [string, ReactNode][] = [
    ['Type', template.type],
    ['Location', template.location],
    ['Image', template.image],
    ['SSH keys', template.ssh_key_ids?.map(keyName).join(', ')],
    ['SSH public key', template.ssh_public_key && <Code text={template.ssh_public_key} />],
    ['Startup script', template.startup_script && <Code text={template.startup_script} />],
    ['Shutdown script', template.shutdown_script && <Code text={template.shutdown_script} />],
    ['Attached disks', template.disks?.length && plural(template.disks.length, 'disk')],
    ['New disks', template.new_disks?.map(({ size }) => sizeText(size)).join(', ')],
    ['OS disk', template.os_disk_size && sizeText(template.os_disk_size)],
    ['Public address', template.public_ip === 'none' && 'none'],
    ['Expires', template.ttl_seconds && `after ${plural(template.ttl_seconds / 3600, 'hour')}`],
    ['Labels', template.labels && <Labels labels={template.labels} />],
    ['Description', template.description],
    ['Protection', template.deletion_protection && 'deletion protection is on'],
    ['Placement', template.placement_policy],
    ['ID', <Copyable key="id" text={template.id} />],
    ['Created', <Timestamp key="created" iso={template.created_at} />],
  ]
  return (
    <dl className="divide-y divide-line rounded-md border border-line px-3">
      {facts
        .filter(([, value]) => Boolean(value))
        .map(([label, value]) => (
          <div key={label} className="flex gap-4 py-1.5 max-sm:flex-col max-sm:gap-0">
            <dt className="w-32 shrink-0 text-ink-muted">{label}</dt>
            <dd className="min-w-0 flex-1 break-words">{value}</dd>
          </div>
        ))}
    </dl>
  )
}

const Code = ({ text }: { text: string }) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
  <pre tabIndex={0} className="mono max-h-40 overflow-auto break-all whitespace-pre-wrap">
    {text}
  </pre>
)
