import { imageNamePattern } from '@slipway/contract/names'
import type { CustomImage } from '@slipway/sdk'
import { useState } from 'react'
import { useOperation } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { usePrices } from '../../api/prices.ts'
import { readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { copyPriceText } from '../../lib/disks.ts'
import { projectCommands, shellQuote } from '../../lib/shell.ts'
import { Confirm, FormDialog, submitProps } from '../../ui/dialog.tsx'
import { CheckField, SelectField, TextField } from '../../ui/field.tsx'

interface ImageProps {
  projectId: string
  image: CustomImage
  onClose: () => void
}

const imageName = new RegExp(imageNamePattern)
const nameProblemOf = (name: string) =>
  name === '' || imageName.test(name)
    ? ''
    : 'Use lowercase letters, digits, dots, underscores and hyphens, starting with a letter or digit. You can add a version after a colon, for example trainer:v1.'

export function CreateImage({ projectId, onClose }: Omit<ImageProps, 'image'>) {
  const params = { project_id: projectId }
  const vms = useQuery(readAll('vmList', params))
  const usable = (vms.data ?? []).filter(
    ({ state }) => state === 'STATE_RUNNING' || state === 'STATE_SHUTOFF',
  )
  const [name, setName] = useState('')
  const [chosen, setChosen] = useState('')
  const [allowsCrashConsistent, setAllowsCrashConsistent] = useState(false)
  const vm = usable.find(({ id }) => id === chosen) ?? usable[0]
  const osDiskSize = vm?.disks.find(({ attachment_type }) => attachment_type === 'os')?.size ?? ''
  const prices = usePrices(projectId).data?.items ?? []
  const isRunning = vm?.state === 'STATE_RUNNING'
  const isCrashConsistent = isRunning && allowsCrashConsistent
  const request = {
    name,
    vm_id: vm?.id ?? '',
    ...(isCrashConsistent && { allow_crash_consistent: true }),
  }
  const create = useOperation({
    projectId,
    run: () => client.customImageCreate(params, request),
    done: () => `Created image ${name}`,
    failed: () => `Could not create image ${name}`,
    invalidates: ['customImageList', 'organizationQuotaList'],
    showsErrors: true,
  })
  const problem = vm
    ? name === ''
      ? 'Enter a name'
      : nameProblemOf(name)
    : 'You need a running or stopped VM'
  return (
    <FormDialog
      isOpen
      onClose={onClose}
      title="Create image"
      action="Create image"
      {...submitProps(create, undefined, onClose)}
      reason={problem || undefined}
      commands={projectCommands(projectId, {
        cli: `slipway custom-image create ${shellQuote(name || 'NAME')} --vm ${shellQuote(vm?.name ?? 'VM')}${isCrashConsistent ? ' --allow-crash-consistent' : ''}`,
        path: '/custom-images',
        body: request,
        terraform: 'custom_image',
      })}
    >
      <SelectField
        label="VM"
        value={vm?.id ?? ''}
        onChange={setChosen}
        choices={usable.map(({ id, name, state }) => ({
          value: id,
          label: `${name}, ${state === 'STATE_RUNNING' ? 'running' : 'stopped'}`,
        }))}
        hint={`Copies everything on the OS disk of this VM, except SSH keys and host keys. Remove other secrets first. ${copyPriceText('custom-image', osDiskSize, prices)}`}
      />
      <TextField
        label="Name"
        value={name}
        onChange={setName}
        problem={nameProblemOf(name)}
        placeholder="trainer:v1"
        autoComplete="off"
        autoFocus
      />
      {isRunning && (
        <CheckField
          label="Copy even if the file systems cannot be frozen"
          hint="The VM is running. Without a guest agent, its file systems cannot be frozen: the image is then like a disk after a power failure. If this is off, the copy fails instead."
          isChecked={allowsCrashConsistent}
          onChange={setAllowsCrashConsistent}
        />
      )}
    </FormDialog>
  )
}

export function DeleteImage({ projectId, image, onClose }: ImageProps) {
  const remove = useOperation({
    projectId,
    run: () => client.customImageDelete({ project_id: projectId, custom_image_id: image.id }),
    done: () => `Deleted image ${image.name}`,
    failed: () => `Could not delete image ${image.name}`,
    invalidates: ['customImageList', 'organizationQuotaList'],
    showsErrors: true,
  })
  return (
    <Confirm
      isOpen
      onClose={onClose}
      title={`Delete image ${image.name}`}
      action="Delete image"
      {...submitProps(remove, undefined, onClose)}
      nameToType={image.name}
      commands={projectCommands(projectId, {
        cli: `slipway custom-image delete ${shellQuote(image.name)}`,
        method: 'DELETE',
        path: `/custom-images/${image.id}`,
      })}
    >
      <p>The image will be permanently deleted. VMs that were created from it keep working.</p>
    </Confirm>
  )
}
