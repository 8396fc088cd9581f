import type { Disk, InstanceTemplate, SshKey, Vm } from '@slipway/sdk'
import { useProjectId, useWhyNot } from '../../api/me.ts'
import { read, readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { PaymentMethodAlert } from '../../features/alerts.tsx'
import { BillingButton } from '../../features/billing-button.tsx'
import { publicAddressOf } from '../../lib/addresses.ts'
import { useSearchState } from '../../lib/use-search-state.ts'
import { Page, Skeleton } from '../../ui/page.tsx'
import type { InitialValues } from './draft.ts'
import { VmCreateForm } from './form.tsx'

/**
 * Creates a VM or a group, or saves a template. The URL can contain the number of VMs, and the source of the initial
 * values: a template, an earlier creation or a VM.
 */
export function VmCreatePage() {
  const projectId = useProjectId()
  const whyNoBilling = useWhyNot('owner')
  const [{ from = '', like = '', template: templateId = '', save = '' }] = useSearchState()
  const earlier = useQuery({
    ...read('operationGet', { params: { project_id: projectId, operation_id: from } }),
    enabled: from !== '',
  })
  const original = useQuery({
    ...read('vmGet', { params: { project_id: projectId, vm_id: like } }),
    enabled: like !== '',
  })
  const keys = useQuery({ ...readAll('sshKeyList', { project_id: projectId }), enabled: like !== '' })
  const templates = useQuery(readAll('instanceTemplateList', { project_id: projectId }))
  const disks = useQuery(readAll('diskList', { project_id: projectId }))
  const startsEmpty = from === '' && templateId === '' && like === ''
  const isLoading =
    templates.isPending ||
    (!startsEmpty && disks.isPending) ||
    (from !== '' && !earlier.data && !earlier.error) ||
    (like !== '' && (original.isPending || keys.isPending))
  const template = templates.data?.find(({ id }) => id === templateId)
  const isTemplate = save === 'template'
  return (
    <Page
      title={isTemplate ? 'Create template' : 'Create VM'}
      trail={[
        isTemplate
          ? ['Templates', `/projects/${projectId}/templates`]
          : ['VMs', `/projects/${projectId}/vms`],
      ]}
    >
      <PaymentMethodAlert action={<BillingButton reason={whyNoBilling} />} />
      {original.data && !template && (
        <p className="card px-4 py-3">
          Based on <b className="font-medium">{original.data.name}</b>, with a new name and without its disks
          {original.data.startup_script_sha256 && ' and its startup script, which cannot be read back'}.
        </p>
      )}
      {isLoading ? (
        <Skeleton rows={12} />
      ) : (
        <VmCreateForm
          // Choosing another template resets the form.
          key={template?.id ?? ''}
          initial={
            template
              ? valuesOf(template)
              : original.data
                ? valuesLike(original.data, keys.data ?? [])
                : (earlier.data?.metadata.request ?? null)
          }
          template={template}
          templates={templates.data ?? []}
          disks={disks.data ?? noDisks}
          isTemplate={isTemplate}
        />
      )}
    </Page>
  )
}

const noDisks: Disk[] = []

/** Returns the settings of an existing VM that a new VM can share. Saved keys are selected by ID. */
function valuesLike(vm: Vm, saved: SshKey[]): InitialValues {
  const given = vm.ssh_public_keys.filter((key) => !saved.some(({ public_key }) => public_key === key))
  const chosen = saved.filter(({ public_key }) => vm.ssh_public_keys.includes(public_key))
  const [networkInterface] = vm.network_interfaces
  return {
    type: vm.type,
    location: vm.location,
    ...(vm.custom_image_id ? { custom_image: vm.custom_image_id } : { image: vm.image }),
    ...(given[0] && { ssh_public_key: given[0] }),
    ssh_key_ids: chosen.map(({ id }) => id),
    labels: vm.labels,
    ...(networkInterface && { subnet_id: networkInterface.subnet }),
    ...(!publicAddressOf(vm) && { public_ip: 'none' as const }),
  }
}

/** Omits the template's name, which is not the name of a VM. */
const valuesOf = ({ name: _, ...values }: InstanceTemplate): InitialValues => values
