import { defaultImage } from '@slipway/contract/default-image'
import type { InstanceTemplate, VmCreate } from '@slipway/sdk'
import { vmType } from '@slipway/sdk'
import { limitsOf } from '../../api/limits.ts'
import { useProject } from '../../api/me.ts'
import { usePrices } from '../../api/prices.ts'
import { read, readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { countOf, type Draft } from './draft.ts'
import { defaultType } from './limits.ts'
import { defaultSubnet } from './network-picker.tsx'
import { defaultKeys } from './remembered-key.ts'

/** Loads the choices of the form: types, locations, prices, images, quotas, networks and keys. */
export function useFormData() {
  const { id: project_id, organization_id } = useProject()
  const params = { project_id }
  const capacities = useQuery({ ...read('capacityList', { params }), refetchInterval: 10_000 })
  const locations = useQuery(read('locationList', { params }))
  const prices = usePrices(project_id)
  const images = useQuery(read('imageList', { params }))
  const customImages = useQuery(readAll('customImageList', params))
  const quotas = useQuery(read('quotaList', { params }))
  const organizationQuotas = useQuery(read('organizationQuotaList', { params: { organization_id } }))
  const networks = useQuery(readAll('networkList', params))
  const subnets = useQuery(readAll('subnetList', params))
  const keys = useQuery(readAll('sshKeyList', params))
  return {
    isReady: [capacities, locations, quotas, organizationQuotas, networks, subnets].every(
      ({ data, isPending }) => data !== undefined || !isPending,
    ),
    error: [capacities, locations].find(({ data, error }) => error && !data)?.error ?? null,
    retry: () => void Promise.all([capacities.refetch(), locations.refetch()]),
    capacities: capacities.data?.items ?? [],
    locations: locations.data?.items ?? [],
    prices: prices.data?.items ?? [],
    images: images.data?.items ?? [],
    customImages: (customImages.data ?? []).filter(({ state }) => state === 'available'),
    limits: limitsOf(quotas.data?.items ?? [], organizationQuotas.data?.items ?? []),
    networks: networks.data ?? [],
    subnets: subnets.data ?? [],
    keys: keys.data ?? [],
  }
}

export type FormData = ReturnType<typeof useFormData>

/** The type and location from the URL or, if the URL has none, from the initial values of the form. */
type Preselection = Pick<Partial<VmCreate>, 'type' | 'location'>

/** Returns the values that the form shows: the user's choices, or a default where a choice is not available. */
export function resolveDraft(
  data: FormData,
  draft: Draft,
  wanted: Preselection,
  template: InstanceTemplate | undefined,
) {
  const type = vmType(wanted.type ?? '') ?? defaultType(data.capacities, data.limits)
  const count = countOf(draft)
  const stockOf = (location: string) =>
    data.capacities.find((item) => item.type === type.name && item.location === location)?.quantity
  const fitsIn = (location: string) => (stockOf(location) ?? 0) >= count
  const offered = data.locations.filter(({ name }) => stockOf(name) !== undefined)
  const location =
    offered.find(({ name }) => name === wanted.location)?.name ??
    offered.find(({ name }) => fitsIn(name))?.name ??
    offered[0]?.name ??
    ''
  const images = data.images.filter((image) => image.locations.includes(location))
  const image =
    images.find(({ name }) => name === draft.image || name === `${draft.image}:latest`)?.name ??
    defaultImage(images.map(({ name }) => name)) ??
    images[0]?.name ??
    ''
  const customImages = data.customImages.filter(({ locations }) => locations.includes(location))
  const subnets = data.subnets.filter((subnet) => subnet.location === location)
  const subnetId =
    subnets.find(({ id }) => id === draft.subnetId)?.id ??
    (template?.subnet_id ? (defaultSubnet(subnets, data.networks)?.id ?? '') : '')
  // Only one VM can write to a persistent disk.
  const disks = draft.disks
    .filter(({ disk }) => disk.location === location)
    .map(({ disk, mode }) => ({
      disk,
      mode: count > 1 && disk.type === 'persistent-ssd' ? ('read-only' as const) : mode,
    }))
  return {
    type,
    location,
    offered,
    stock: stockOf(location),
    stockOf,
    fitsIn,
    images,
    image,
    customImages,
    customImage: customImages.find(({ id }) => id === draft.customImage),
    subnets,
    subnetId,
    disks,
    keyIds: draft.keyIds ?? defaultKeys(data.keys),
  }
}
