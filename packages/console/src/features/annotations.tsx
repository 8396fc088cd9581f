import { isApiError, type Vm } from '@slipway/sdk'
import { useState } from 'react'
import { useAction } from '../api/actions.ts'
import { client } from '../api/client.ts'
import { annotationCommand } from '../lib/annotation-command.ts'
import { labelsText, parseLabels } from '../lib/labels.ts'
import { nameProblem } from '../lib/names.ts'
import { projectCommands } from '../lib/shell.ts'
import { Button } from '../ui/button.tsx'
import { FormDialog, submitProps } from '../ui/dialog.tsx'
import { CheckField, TextField } from '../ui/field.tsx'
import { Icon } from '../ui/icon.tsx'
import { Labels } from '../ui/labels.tsx'

type AnnotatedResource = Pick<Vm, 'id' | 'name' | 'labels' | 'description' | 'deletion_protection'>

export const protectionReason = ({ deletion_protection }: Pick<AnnotatedResource, 'deletion_protection'>) =>
  deletion_protection ? 'Deletion protection is on. Turn it off in Edit first.' : undefined

/** The lock icon of a resource with deletion protection. */
export function ProtectedMark({ resource }: { resource: Pick<AnnotatedResource, 'deletion_protection'> }) {
  if (!resource.deletion_protection) return null
  return (
    <Icon
      name="lock"
      size={13}
      aria-label="deletion protection is on"
      className="ml-1.5 inline shrink-0 text-ink-muted"
    />
  )
}

/** Shows the description, labels and protection of a resource, if it has any. */
export function Annotations({ resource }: { resource: AnnotatedResource }) {
  const hasLabels = Object.keys(resource.labels).length > 0
  if (!resource.description && !hasLabels && !resource.deletion_protection) return null
  return (
    <div className="flex flex-wrap items-center gap-x-3 gap-y-1 text-ink-muted">
      {resource.description && <span className="break-words text-ink">{resource.description}</span>}
      {hasLabels && <Labels labels={resource.labels} />}
      {resource.deletion_protection && (
        <span className="inline-flex items-center gap-1.5 text-sm">
          <Icon name="lock" size={13} aria-hidden="true" /> Deletion protection
        </span>
      )}
    </div>
  )
}

export function EditButton({
  resource,
  kind,
  whyNot,
}: {
  resource: AnnotatedResource & { project_id: string }
  kind: Kind
  whyNot: string | undefined
}) {
  const [isEditing, setEditing] = useState(false)
  return (
    <>
      <Button
        size="small"
        kind="quiet"
        aria-label={kind === 'group' ? 'Edit labels and protection' : 'Edit name, labels and protection'}
        icon={<Icon name="pencil" size={13} />}
        reason={whyNot}
        onClick={() => setEditing(true)}
      >
        Edit
      </Button>
      {isEditing && (
        <AnnotationDialog
          resource={resource}
          kind={kind}
          projectId={resource.project_id}
          onClose={() => setEditing(false)}
        />
      )}
    </>
  )
}

/** Groups and images cannot be renamed, because member names and requests contain their names. */
type Kind = 'vm' | 'disk' | 'group' | 'snapshot' | 'image'
type Changes = Partial<Omit<AnnotatedResource, 'id'>>

/** Each change is complete when the server responds. */
const updates: Record<Kind, (project_id: string, id: string, changes: Changes) => Promise<unknown>> = {
  vm: (project_id, vm_id, changes) => client.vmUpdate({ project_id, vm_id }, changes),
  disk: (project_id, disk_id, changes) => client.diskUpdate({ project_id, disk_id }, changes),
  group: (project_id, instance_group_id, { name: _, ...changes }) =>
    client.instanceGroupUpdate({ project_id, instance_group_id }, changes),
  snapshot: (project_id, snapshot_id, changes) => client.snapshotUpdate({ project_id, snapshot_id }, changes),
  image: (project_id, custom_image_id, { name: _, ...changes }) =>
    client.customImageUpdate({ project_id, custom_image_id }, changes),
}

/** The words of the CLI, the API and the Terraform provider for each kind of resource. */
const shownKinds: Record<Kind, { noun: string; path: string; terraform: string }> = {
  vm: { noun: 'vm', path: 'vms', terraform: 'vm' },
  disk: { noun: 'disk', path: 'disks', terraform: 'disk' },
  group: { noun: 'group', path: 'instance-groups', terraform: 'instance_group' },
  snapshot: { noun: 'snapshot', path: 'snapshots', terraform: 'snapshot' },
  image: { noun: 'custom-image', path: 'custom-images', terraform: 'custom_image' },
}

export function AnnotationDialog({
  resource,
  kind,
  projectId,
  onClose,
}: {
  resource: AnnotatedResource
  kind: Kind
  projectId: string
  onClose: () => void
}) {
  const [name, setName] = useState(resource.name)
  const [description, setDescription] = useState(resource.description)
  const [text, setText] = useState(labelsText(resource.labels))
  const [isProtected, setProtected] = useState(resource.deletion_protection)
  const { labels, problem } = parseLabels(text)
  const changes = {
    ...(name !== resource.name && { name }),
    ...(description !== resource.description && { description }),
    ...(labelsText(labels) !== labelsText(resource.labels) && { labels }),
    ...(isProtected !== resource.deletion_protection && { deletion_protection: isProtected }),
  }
  const hasChanges = Object.keys(changes).length > 0
  const shown = shownKinds[kind]
  const save = useAction({
    run: () => updates[kind](projectId, resource.id, changes),
    done: () => `Saved ${name}`,
    undo: () => () => {
      const { name, description, labels, deletion_protection } = resource
      return updates[kind](projectId, resource.id, { name, description, labels, deletion_protection })
    },
    failed: () => `Could not change ${resource.name}`,
    invalidates: [
      'vmGet',
      'vmList',
      'diskList',
      'instanceGroupGet',
      'instanceGroupList',
      'snapshotList',
      'customImageList',
    ],
    showsErrors: true,
  })
  return (
    <FormDialog
      isOpen
      onClose={onClose}
      title={`Edit ${kind === 'vm' ? 'VM' : kind} ${resource.name}`}
      action="Save changes"
      {...submitProps(save, undefined, onClose)}
      reason={
        (kind === 'group' || kind === 'image' ? '' : nameProblem(name)) ||
        problem ||
        (name && hasChanges ? undefined : 'No changes yet')
      }
      commands={
        hasChanges
          ? projectCommands(projectId, {
              cli: annotationCommand(shown.noun, resource, changes),
              method: 'PATCH',
              path: `/${shown.path}/${resource.id}`,
              body: changes,
              terraform: shown.terraform,
              changes: resource.name,
            })
          : undefined
      }
    >
      {kind !== 'group' && kind !== 'image' && (
        <TextField
          label="Name"
          value={name}
          onChange={setName}
          problem={
            isApiError(save.error) && save.error.code === 'already_exists'
              ? 'This name is already in use.'
              : nameProblem(name)
          }
          autoComplete="off"
        />
      )}
      <TextField label="Description" value={description} onChange={setDescription} maxLength={500} />
      <LabelsField value={text} onChange={setText} problem={problem} />
      <CheckField
        label="Deletion protection"
        hint="Prevents deletion while it is on."
        isChecked={isProtected}
        onChange={setProtected}
      />
    </FormDialog>
  )
}

export function LabelsField({
  label = 'Labels',
  value,
  onChange,
  problem,
}: {
  label?: string
  value: string
  onChange: (value: string) => void
  problem: string
}) {
  return (
    <TextField
      label={label}
      value={value}
      onChange={onChange}
      problem={problem}
      placeholder="team=ml, stage=prod"
      autoComplete="off"
      isMono
      hint="Separated by commas. Use labels to filter lists and group costs."
    />
  )
}
