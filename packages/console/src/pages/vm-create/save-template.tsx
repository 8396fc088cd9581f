import { type InstanceTemplate, isApiError, type VmCreate } from '@slipway/sdk'
import { useState } from 'react'
import { useAction } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { useProjectId } from '../../api/me.ts'
import { readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { nameProblem } from '../../lib/names.ts'
import { projectCommands } from '../../lib/shell.ts'
import { Button } from '../../ui/button.tsx'
import { FormDialog, submitProps } from '../../ui/dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { templateCommand } from './commands.ts'
import { templateFieldsOf } from './template.ts'

interface SaveTemplateProps {
  request: VmCreate
  /** The template that the form started with. */
  template: InstanceTemplate | undefined
  templates: InstanceTemplate[]
  reason: string | undefined
  onSaved: (template: InstanceTemplate) => void
}

/** Saves the values of the form as a template, or as a new version of one. */
export function SaveTemplate({ isPrimary = false, ...props }: SaveTemplateProps & { isPrimary?: boolean }) {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <Button kind={isPrimary ? 'primary' : 'plain'} reason={props.reason} onClick={() => setOpen(true)}>
        Save as template
      </Button>
      {isOpen && <SaveDialog {...props} onClose={() => setOpen(false)} />}
    </>
  )
}

function SaveDialog({
  request,
  template,
  templates,
  onSaved,
  onClose,
}: SaveTemplateProps & { onClose: () => void }) {
  const projectId = useProjectId()
  const [name, setName] = useState(template?.name ?? '')
  const latest = Math.max(0, ...templates.filter((each) => each.name === name).map(({ version }) => version))
  const fields = templateFieldsOf(request, template)
  const body = { name, ...(latest > 0 && { new_version: true }), ...fields }
  const keys = useQuery(readAll('sshKeyList', { project_id: projectId }))
  const keyNames = (fields.ssh_key_ids ?? []).map((id) => keys.data?.find((key) => key.id === id)?.name ?? id)
  const save = useAction({
    run: () => client.instanceTemplateCreate({ project_id: projectId }, body),
    done: (_, saved) => `Saved template ${saved.name}, version ${saved.version}`,
    invalidates: ['instanceTemplateList', 'organizationQuotaList'],
    showsErrors: true,
  })
  const isTaken = isApiError(save.error) && save.error.code === 'already_exists'
  return (
    <FormDialog
      isOpen
      onClose={onClose}
      title="Save as template"
      action={latest > 0 ? 'Save new version' : 'Save template'}
      {...submitProps(save, undefined, (saved) => {
        onSaved(saved)
        onClose()
      })}
      reason={nameProblem(name) || (name === '' ? 'Enter a name' : undefined)}
      commands={projectCommands(projectId, {
        cli: templateCommand(name, fields, keyNames, latest > 0),
        path: '/instance-templates',
        body,
        terraform: 'instance_template',
      })}
    >
      <TextField
        label="Template name"
        value={name}
        onChange={setName}
        problem={isTaken ? 'This name is already in use.' : nameProblem(name)}
        hint={
          latest > 0
            ? `This template exists. Saving creates version ${latest + 1} and keeps earlier versions.`
            : 'The name of the template, not of its VMs.'
        }
        autoComplete="off"
        autoFocus
      />
      <p className="text-ink-muted">
        The template stores all values of the form except the name and the number of VMs. Viewers cannot see
        its scripts.
      </p>
    </FormDialog>
  )
}
