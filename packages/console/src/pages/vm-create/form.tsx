import { type Disk, gpuQuota, type InstanceTemplate, isApiError, type VmCreate } from '@slipway/sdk'
import { useNavigate } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import { useOperation } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { useProject, useWhyNot } from '../../api/me.ts'
import { useLacksPaymentMethod } from '../../features/alerts.tsx'
import { useSearchState } from '../../lib/use-search-state.ts'
import { ErrorState } from '../../ui/error.tsx'
import { Skeleton } from '../../ui/page.tsx'
import { resolveDraft, useFormData } from './data.ts'
import {
  countOf,
  countProblem,
  type Draft,
  draftProblem,
  type GroupCreate,
  groupRequestOf,
  type InitialValues,
  newDraft,
  requestOf,
} from './draft.ts'
import { FormFields } from './fields.tsx'
import { limitProblem, stockProblem } from './limits.ts'
import type { Problem } from './problem.tsx'
import { rememberKeys } from './remembered-key.ts'
import { SaveTemplate } from './save-template.tsx'
import { Summary } from './summary.tsx'
import { requestFromTemplate, templateProblem } from './template.ts'
import { useWaiting } from './wait-for-capacity.tsx'

export interface VmCreateFormProps {
  initial: InitialValues | null
  /** The template that the form starts with. */
  template: InstanceTemplate | undefined
  /** All versions of all templates. */
  templates: InstanceTemplate[]
  disks: Disk[]
  /** True if the form saves a template instead of creating a VM. */
  isTemplate: boolean
}

/** The form for a new VM or group on one page, with the price always visible. */
export function VmCreateForm({ initial, template, templates, disks, isTemplate }: VmCreateFormProps) {
  const { id: projectId } = useProject()
  const navigate = useNavigate()
  const whyNot = useWhyNot('member')
  const lacksPaymentMethod = useLacksPaymentMethod()
  const [search, setSearch] = useSearchState()
  const data = useFormData()
  const [draft, setDraft] = useState(() => newDraft(initial, disks, search.count ?? '1'))
  const create = useCreation(projectId)
  const change = (changes: Partial<Draft>) => {
    create.reset()
    waiting.wait.reset()
    setDraft((before) => ({ ...before, ...changes }))
  }
  /** Changes the type, location or template, and clears the error of the previous attempt. */
  const choose = (changes: Record<string, string>) => {
    create.reset()
    waiting.wait.reset()
    setSearch(changes)
  }
  const wanted = {
    type: search.type ?? initial?.type,
    location: search.location ?? initial?.location,
  } as Parameters<typeof resolveDraft>[2]
  const resolved = resolveDraft(data, draft, wanted, template)
  const { type, location, stock = 0, keyIds } = resolved
  const count = countProblem(draft) ? 1 : countOf(draft)
  const fullRequest = requestOf(draft, { ...resolved, type: type.name })
  const request = template ? requestFromTemplate(fullRequest, template) : fullRequest
  const group = count > 1 ? groupRequestOf(request, draft, template) : null
  const waiting = useWaiting(request, group, type.name)
  const isWaiting = resolved.stock !== undefined && stock < count && !isTemplate
  const ownProblem = firstProblem(
    { text: whyNot ?? '' },
    draftProblem(draft, keyIds, data.keys.length > 0),
    templateProblem(fullRequest, template),
  )
  const createProblem = firstProblem(
    { text: whyNot ?? '' },
    { text: lacksPaymentMethod ? 'Add a payment method first' : '' },
    { text: limitProblem(type, data.limits, count), part: 'type' },
    { text: stockProblem(type.name, location, stock, count), part: count > 1 ? 'count' : 'type' },
    ownProblem,
    { text: resolved.image === '' && !resolved.customImage ? 'No image is available in this location' : '' },
  )
  const problem = isWaiting ? ownProblem : createProblem
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (isWaiting) {
      if (!problem && !waiting.wait.isPending) waiting.send()
      return
    }
    if (problem || create.isPending || isTemplate) return
    create.mutate(group ?? request, {
      onSuccess: ({ operation }) => {
        rememberKeys(draft.key, keyIds)
        const folder = group ? 'groups' : 'vms'
        void navigate({ to: `/projects/${projectId}/${folder}/${operation.metadata.id}` })
      },
    })
  }
  if (data.error) return <ErrorState error={data.error} onRetry={data.retry} />
  if (!data.isReady) return <Skeleton rows={12} />
  const availableLocations = isApiError(create.error) ? create.error.availableLocations : []
  const isLatest = !templates.some(
    ({ name, version }) => name === template?.name && version > template.version,
  )
  const save = (
    <SaveTemplate
      isPrimary={isTemplate}
      request={fullRequest}
      template={template}
      templates={templates}
      reason={whyNot}
      onSaved={({ id }) =>
        isTemplate &&
        void navigate({ to: '/projects/$projectId/templates', params: { projectId }, search: { open: id } })
      }
    />
  )
  const names = {
    keyNames: data.keys.flatMap(({ id, name }) => (keyIds.includes(id) ? [name] : [])),
    template: template ? (isLatest ? template.name : template.id) : '',
  }
  return (
    <form
      onSubmit={submit}
      noValidate
      className="grid grid-cols-1 items-start gap-8 lg:grid-cols-[minmax(0,1fr)_376px]"
    >
      <FormFields
        {...{ data, draft, resolved, count, request, group, names, template, templates, disks, isTemplate }}
        {...{ waiting, isWaiting }}
        onChange={change}
        onChoose={choose}
        whyNotWait={ownProblem?.text}
      />
      <Summary
        {...{ request, group, names, type, location, count, problem, save, isTemplate, isWaiting }}
        isHeld={waiting.isHeld}
        usdPerHour={data.prices.find((item) => item.product_name === type.name)?.usd ?? null}
        isBusy={isWaiting ? waiting.wait.isPending : create.isPending}
        error={isWaiting ? waiting.wait.error : create.error}
        gpuLimit={data.limits.find(({ name }) => name === gpuQuota(type.family))}
        vmLimit={data.limits.find(({ name }) => name === 'vms')}
        stock={stock}
        otherLocations={
          availableLocations.length > 0
            ? availableLocations
            : resolved.offered
                .filter(({ name }) => name !== location && resolved.fitsIn(name))
                .map(({ name }) => name)
        }
        isAllOutOfStock={data.capacities.every(({ quantity }) => quantity === 0)}
        onMove={(name) => choose({ location: name })}
        onCount={(fewer) => change({ count: String(fewer) })}
      />
    </form>
  )
}

const useCreation = (projectId: string) =>
  useOperation({
    projectId,
    run: (body: VmCreate | GroupCreate) =>
      'desired_count' in body
        ? client.instanceGroupCreate({ project_id: projectId }, body)
        : client.vmCreate({ project_id: projectId }, body),
    done: (body) => `${body.name} is running`,
    failed: (body) => `Could not create ${body.name}`,
    invalidates: ['vmList', 'instanceGroupList', 'quotaList', 'capacityList'],
    showsErrors: true,
  })

const firstProblem = (...problems: (Problem | null)[]): Problem | null =>
  problems.find((problem) => problem?.text) ?? null
