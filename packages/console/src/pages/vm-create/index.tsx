import type { Disk, InstanceTemplate } from '@slipway/sdk'
import { useProjectId, useWhyNot } from '../../api/me.ts'
import { read, readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { PaymentMethodAlert } from '../../features/alerts.tsx'
import { BillingButton } from '../../features/billing-button.tsx'
import { useSearchState } from '../../lib/use-search-state.ts'
import { Page, Skeleton } from '../../ui/page.tsx'
import type { Earlier } from './draft.ts'
import { VmCreateForm } from './form.tsx'

/**
 * Creates a VM or a group, or saves a template. The URL can name the template or the earlier creation whose values the form
 * starts with, and the number of VMs.
 */
export function VmCreatePage() {
  const projectId = useProjectId()
  const whyNoBilling = useWhyNot('owner')
  const [{ from = '', template: templateId = '', save = '' }] = useSearchState()
  const earlier = useQuery({
    ...read('operationGet', { params: { project_id: projectId, operation_id: from } }),
    enabled: from !== '',
  })
  const templates = useQuery(readAll('instanceTemplateList', { project_id: projectId }))
  const disks = useQuery(readAll('diskList', { project_id: projectId }))
  const startsEmpty = from === '' && templateId === ''
  const isLoading =
    templates.isPending ||
    (!startsEmpty && disks.isPending) ||
    (from !== '' && !earlier.data && !earlier.error)
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
      {isLoading ? (
        <Skeleton rows={12} />
      ) : (
        <VmCreateForm
          // Another template fills in the form again.
          key={template?.id ?? ''}
          earlier={template ? valuesOf(template) : (earlier.data?.metadata.request ?? null)}
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

/** The name of a template is not the name of its VMs. */
const valuesOf = ({ name: _, ...members }: InstanceTemplate): Earlier => members
