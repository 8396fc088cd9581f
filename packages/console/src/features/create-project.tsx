import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { useAction } from '../api/actions.ts'
import { client } from '../api/client.ts'
import { useMe } from '../api/me.ts'
import { curlCommand, shellQuote, terraformResource } from '../lib/shell.ts'
import { FormDialog, submitProps } from '../ui/dialog.tsx'
import { SelectField, TextField } from '../ui/field.tsx'

export function CreateProject({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const { organizations } = useMe()
  const navigate = useNavigate()
  const [name, setName] = useState('')
  const [organization, setOrganization] = useState('')
  const organization_id = organization || organizations[0]?.id || ''
  const create = useAction({
    run: () => client.projectCreate({ name: name.trim(), organization_id }),
    done: () => `Created project ${name.trim()}`,
    invalidates: ['projectList'],
    showsErrors: true,
  })
  return (
    <FormDialog
      isOpen={isOpen}
      onClose={onClose}
      title="New project"
      action="Create project"
      {...submitProps(create, undefined, (project) => {
        setName('')
        onClose()
        void navigate({ to: '/projects/$projectId', params: { projectId: project.id } })
      })}
      reason={name.trim() ? undefined : 'Enter a name'}
      commands={{
        cli: `slipway project create ${shellQuote(name.trim() || 'NAME')}${organizations.length > 1 ? ` --org ${organization_id}` : ''}`,
        curl: curlCommand('POST', '/v0.1/projects', { name: name.trim(), organization_id }),
        terraform: terraformResource('project', { name: name.trim(), organization_id }),
      }}
    >
      <TextField
        label="Name"
        value={name}
        onChange={setName}
        hint="The project starts with a network, a subnet in each location and firewall rules that allow SSH."
        autoFocus
      />
      {organizations.length > 1 && (
        <SelectField
          label="Organization"
          value={organization_id}
          onChange={setOrganization}
          choices={organizations.map(({ id, name }) => ({ value: id, label: name }))}
        />
      )}
    </FormDialog>
  )
}
