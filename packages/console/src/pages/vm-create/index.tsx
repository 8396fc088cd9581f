import { defaultImage } from '@slipway/contract/default-image'
import { type Disk, gpuQuota, isApiError, type VmCreate, vmType } from '@slipway/sdk'
import { useNavigate } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import { useOperation } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { useProject, useProjectId, useWhyNot } from '../../api/me.ts'
import { usePrices } from '../../api/prices.ts'
import { read, readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { PaymentMethodAlert, useLacksPaymentMethod } from '../../features/alerts.tsx'
import { BillingButton } from '../../features/billing-button.tsx'
import { limitsOf } from '../../lib/limits.ts'
import { nameProblem } from '../../lib/names.ts'
import { useSearchState } from '../../lib/use-search-state.ts'
import { ErrorState } from '../../ui/error.tsx'
import { CheckField, SelectField, TextField } from '../../ui/field.tsx'
import { Page, Skeleton } from '../../ui/page.tsx'
import { DiskPicker } from './disk-picker.tsx'
import { type Draft, draftProblem, newDraft, requestOf } from './draft.ts'
import { Group } from './group.tsx'
import { KeyPicker } from './key-picker.tsx'
import { defaultType, limitProblem } from './limits.ts'
import { LocationPicker } from './location-picker.tsx'
import { NetworkPicker } from './network-picker.tsx'
import { Options } from './options.tsx'
import { type Problem, partId } from './problem.tsx'
import { rememberKeys, usualKeys } from './remembered-key.ts'
import { Summary } from './summary.tsx'
import { TypePicker } from './type-picker.tsx'
import { WaitForCapacity } from './wait-for-capacity.tsx'

/** Creates a VM, with the values of an earlier creation if the URL names its operation. */
export function VmCreatePage() {
  const projectId = useProjectId()
  const [{ from = '' }] = useSearchState()
  const earlier = useQuery({
    ...read('operationGet', { params: { project_id: projectId, operation_id: from } }),
    enabled: from !== '',
  })
  const disks = useQuery(readAll('diskList', { project_id: projectId }))
  const isLoading = from !== '' && ((!earlier.data && !earlier.error) || disks.isPending)
  if (isLoading)
    return (
      <Page title="Create VM" trail={[['VMs', `/projects/${projectId}/vms`]]}>
        <Skeleton rows={12} />
      </Page>
    )
  return <VmCreateForm earlier={earlier.data?.metadata.request ?? null} disks={disks.data ?? []} />
}

interface VmCreateFormProps {
  earlier: Partial<VmCreate> | null
  disks: Disk[]
}

/** The form for a new VM on one page, with the price always visible. */
function VmCreateForm({ earlier, disks }: VmCreateFormProps) {
  const { id: projectId, organization_id } = useProject()
  const params = { project_id: projectId }
  const navigate = useNavigate()
  const whyNot = useWhyNot('member')
  const whyNoBilling = useWhyNot('owner')
  const lacksPaymentMethod = useLacksPaymentMethod()
  const [search, setSearch] = useSearchState()
  const capacities = useQuery({ ...read('capacityList', { params }), refetchInterval: 10_000 })
  const locations = useQuery(read('locationList', { params }))
  const prices = usePrices(projectId)
  const images = useQuery(read('imageList', { params }))
  const quotas = useQuery(read('quotaList', { params }))
  const wholeQuotas = useQuery(read('organizationQuotaList', { params: { organization_id } }))
  const networks = useQuery(readAll('networkList', { project_id: projectId }))
  const subnets = useQuery(readAll('subnetList', { project_id: projectId }))
  const keys = useQuery(readAll('sshKeyList', { project_id: projectId }))
  const [draft, setDraft] = useState(() => newDraft(earlier, disks))
  const change = (changes: Partial<Draft>) => {
    create.reset()
    setDraft((before) => ({ ...before, ...changes }))
  }
  /** Changes the type or location, and clears the error of the previous attempt. */
  const choose = (changes: Record<string, string>) => {
    create.reset()
    setSearch(changes)
  }

  const limits = limitsOf(quotas.data?.items ?? [], wholeQuotas.data?.items ?? [])
  const type = vmType(search.type ?? earlier?.type ?? '') ?? defaultType(capacities.data?.items ?? [], limits)
  const stockOf = (location: string) =>
    capacities.data?.items.find((item) => item.type === type.name && item.location === location)?.quantity
  const offered = (locations.data?.items ?? []).filter(({ name }) => stockOf(name) !== undefined)
  const location =
    offered.find(({ name }) => name === (search.location ?? earlier?.location))?.name ??
    offered.find(({ name }) => (stockOf(name) ?? 0) > 0)?.name ??
    offered[0]?.name ??
    ''
  const usable = (images.data?.items ?? []).filter((image) => image.locations.includes(location))
  const image =
    usable.find(({ name }) => name === draft.image)?.name ??
    defaultImage(usable.map(({ name }) => name)) ??
    usable[0]?.name ??
    ''
  const attached = draft.disks.filter(({ disk }) => disk.location === location)
  const here = (subnets.data ?? []).filter((subnet) => subnet.location === location)
  const subnetId = here.find(({ id }) => id === draft.subnetId)?.id ?? ''
  const keyIds = draft.keyIds ?? usualKeys(keys.data ?? [])
  const settled = { type: type.name, location, image, disks: attached, keyIds, subnetId }
  const request = requestOf(draft, settled)
  const create = useOperation({
    projectId,
    run: (body: VmCreate) => client.vmCreate(params, body),
    done: (body) => `${body.name} is running`,
    failed: (body) => `Not created: ${body.name}`,
    invalidates: ['vmList', 'quotaList', 'capacityList'],
    showsErrors: true,
  })
  const problem = firstProblem(
    { words: whyNot ?? '' },
    { words: lacksPaymentMethod ? 'Add a payment method first' : '' },
    { words: limitProblem(type, limits), part: 'type' },
    { words: stockOf(location) === 0 ? `${type.name} is out of stock in ${location}` : '', part: 'type' },
    draftProblem(draft, keyIds),
    { words: image === '' ? 'No image is available in this location' : '' },
  )
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (problem || create.isPending) return
    create.mutate(request, {
      onSuccess: ({ operation }) => {
        rememberKeys(draft.key, keyIds)
        void navigate({
          to: '/projects/$projectId/vms/$vmId',
          params: { projectId, vmId: operation.metadata.id },
        })
      },
    })
  }
  const isPending = [quotas, wholeQuotas, networks, subnets].some((query) => query.isPending)
  const broken = capacities.error ?? locations.error
  const places = isApiError(create.error) ? create.error.availableLocations : []
  return (
    <Page title="Create VM" trail={[['VMs', `/projects/${projectId}/vms`]]}>
      <PaymentMethodAlert action={<BillingButton reason={whyNoBilling} />} />
      {broken && !(capacities.data && locations.data) ? (
        <ErrorState
          error={broken}
          onRetry={() => void Promise.all([capacities.refetch(), locations.refetch()])}
        />
      ) : !capacities.data || !locations.data || isPending ? (
        <Skeleton rows={12} />
      ) : (
        <form
          onSubmit={submit}
          noValidate
          className="grid grid-cols-1 items-start gap-8 lg:grid-cols-[minmax(0,1fr)_340px]"
        >
          <div className="flex min-w-0 flex-col gap-8">
            <TypePicker
              value={type.name}
              onChange={(name) => choose({ type: name })}
              prices={prices.data?.items ?? []}
              capacities={capacities.data.items}
            />
            <LocationPicker
              value={location}
              onChange={(name) => choose({ location: name })}
              locations={offered}
              stockOf={stockOf}
              typeName={type.name}
            />
            {stockOf(location) === 0 && (
              <WaitForCapacity
                request={request}
                reason={firstProblem({ words: whyNot ?? '' }, draftProblem(draft, keyIds))?.words}
              />
            )}
            <Group title="System">
              <SelectField
                label="Image"
                value={image}
                onChange={(value) => change({ image: value })}
                choices={usable.map(({ name }) => ({ value: name, label: name }))}
                hint={usable.find(({ name }) => name === image)?.description}
              />
              <div id={partId('name')}>
                <TextField
                  label="Name"
                  value={draft.name}
                  onChange={(name) => change({ name })}
                  problem={nameProblem(draft.name)}
                  autoComplete="off"
                />
              </div>
              <div id={partId('key')} className="flex flex-col gap-4">
                <KeyPicker
                  registered={keys.data ?? []}
                  chosen={keyIds}
                  onChoose={(chosen) => change({ keyIds: chosen })}
                  pasted={draft.key}
                  onPaste={(key) => change({ key })}
                />
              </div>
            </Group>
            <Group title="Disks">
              <DiskPicker
                disks={disks}
                location={location}
                type={type}
                chosen={attached}
                onChange={(next) => change({ disks: next })}
                projectId={projectId}
              />
            </Group>
            <Group title="Network">
              <NetworkPicker
                networks={networks.data ?? []}
                subnets={here}
                value={subnetId}
                onChange={(chosen) => change({ subnetId: chosen })}
              />
              <CheckField
                label="Public address"
                hint="Without one, the VM is reachable only from its own network."
                isChecked={draft.hasPublicIp}
                onChange={(hasPublicIp) => change({ hasPublicIp })}
              />
            </Group>
            <Group title="Options">
              <Options draft={draft} onChange={change} />
            </Group>
          </div>
          <Summary
            request={request}
            keyNames={(keys.data ?? []).flatMap(({ id, name }) => (keyIds.includes(id) ? [name] : []))}
            type={type}
            usdPerHour={prices.data?.items.find((item) => item.product_name === type.name)?.usd ?? null}
            problem={problem}
            isBusy={create.isPending}
            error={create.error}
            gpuLimit={limits.find(({ name }) => name === gpuQuota(type.family))}
            vmLimit={limits.find(({ name }) => name === 'vms')}
            stock={stockOf(location)}
            otherLocations={
              places.length > 0
                ? places
                : offered
                    .filter(({ name }) => name !== location && (stockOf(name) ?? 0) > 0)
                    .map(({ name }) => name)
            }
            onMove={(name) => choose({ location: name })}
          />
        </form>
      )}
    </Page>
  )
}

const firstProblem = (...problems: (Problem | null)[]): Problem | null =>
  problems.find((problem) => problem?.words) ?? null
