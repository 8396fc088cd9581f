import { families, familyNames } from '@slipway/sdk'
import { useState } from 'react'
import { useAction } from '../../../api/actions.ts'
import { client } from '../../../api/client.ts'
import { read } from '../../../api/read.ts'
import { useQuery } from '../../../api/use-query.ts'
import { operatorCommands, shellQuote } from '../../../lib/shell.ts'
import { Button } from '../../../ui/button.tsx'
import { FormDialog, submitProps } from '../../../ui/dialog.tsx'
import { SelectField, TextField } from '../../../ui/field.tsx'
import { Icon } from '../../../ui/icon.tsx'

const nameText = 'Enter a name of lowercase letters, digits, periods and hyphens'

export function RegisterHost() {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <Button kind="primary" icon={<Icon name="plus" size={16} />} onClick={() => setOpen(true)}>
        Register host
      </Button>
      {isOpen && <RegisterDialog onClose={() => setOpen(false)} />}
    </>
  )
}

function RegisterDialog({ onClose }: { onClose: () => void }) {
  const locations = useQuery(read('adminLocationList', {}))
  const [name, setName] = useState('')
  const [chosen, setChosen] = useState('')
  const [model, setModel] = useState<string>(families.a100.model)
  const [gpuCount, setGpuCount] = useState('8')
  const location = locations.data?.items.find((each) => each.name === chosen) ?? locations.data?.items[0]
  const hasName = /^[a-z0-9][a-z0-9.-]{0,62}$/.test(name)
  const reason = !location ? 'Loading locations' : hasName ? undefined : nameText
  const isSimulated = location?.engine === 'simulated'
  const request = {
    name,
    location: location?.name ?? '',
    ...(isSimulated && { gpus: { model, count: Number(gpuCount) } }),
  }
  const create = useAction({
    run: () => client.adminHostCreate(request),
    done: () => `Registered ${name}`,
    invalidates: ['adminHostList', 'adminCapacityList'],
    showsErrors: true,
  })
  return (
    <FormDialog
      isOpen
      onClose={onClose}
      title="Register host"
      action="Register host"
      {...submitProps(create, undefined, onClose)}
      reason={reason}
      commands={operatorCommands({
        cli: `slipway admin host create ${shellQuote(name || 'NAME')} --location ${request.location}${isSimulated ? ` --gpus ${shellQuote(`${gpuCount} x ${model}`)}` : ''}`,
        path: '/hosts',
        body: request,
      })}
    >
      <TextField label="Name" value={name} onChange={setName} autoFocus />
      <SelectField
        label="Location"
        value={location?.name ?? ''}
        onChange={setChosen}
        choices={(locations.data?.items ?? []).map((each) => ({
          value: each.name,
          label: `${each.name} (${each.engine})`,
        }))}
        hint={
          isSimulated ? 'Simulated: choose the host’s GPUs below.' : 'Its GPUs appear after its first report.'
        }
      />
      {isSimulated && (
        <div className="grid grid-cols-2 gap-4">
          <SelectField
            label="GPU"
            value={model}
            onChange={setModel}
            choices={familyNames.map((family) => ({
              value: families[family].model,
              label: families[family].model,
            }))}
          />
          <TextField label="Number of GPUs" inputMode="numeric" value={gpuCount} onChange={setGpuCount} />
        </div>
      )}
    </FormDialog>
  )
}
