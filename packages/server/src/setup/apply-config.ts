import { isDeepStrictEqual } from 'node:util'
import { families, familyOfModel, vmTypes } from '@slipway/contract'
import { type Config, ConfigError, type LocationConfig, type PriceConfig } from '../config/index.ts'
import { demoLocations } from '../config/locations.ts'
import { DEMO_PRICES } from '../config/sections.ts'
import { cidrsOverlap, subnetFor } from '../domain/addresses.ts'
import { uuid } from '../domain/ids.ts'
import { displayUsd, parseDecimal, timesExact } from '../domain/money.ts'
import type { EngineImage } from '../engines/engine.ts'
import type { Database, Tx } from '../postgres/database.ts'
import { holdLock } from '../postgres/locks.ts'
import { type PriceRow, setPrices } from '../store/billing/prices.ts'
import { extendImage, insertImage } from '../store/fleet/images.ts'
import {
  defaultNetworksWithoutSubnet,
  findLocation,
  hasVmsOrDisks,
  type LocationRow,
  listLocations,
  putLocation,
  removeUnusedLocations,
} from '../store/fleet/locations.ts'
import { insertSubnet } from '../store/network/networks.ts'
import { putSimulatedHosts, type SimulatedHost } from '../store/simulated/hosts.ts'
import { fillQuotas } from './demo.ts'

/** Returns the images that a location's engine provides. */
type ImagesOf = (location: LocationConfig) => EngineImage[]

const simulatedImages: EngineImage[] = [
  {
    name: 'ubuntu24.04-nvidia:latest',
    description: 'Ubuntu 24.04 LTS with the NVIDIA driver and CUDA',
    tags: ['ubuntu', 'nvidia', 'cuda', 'cloud-init', 'slipway-guest'],
    source: {},
  },
  {
    name: 'ubuntu22.04-nvidia:latest',
    description: 'Ubuntu 22.04 LTS with the NVIDIA driver and CUDA',
    tags: ['ubuntu', 'nvidia', 'cuda', 'cloud-init', 'slipway-guest'],
    source: {},
  },
  { name: 'ubuntu24.04:latest', description: 'Ubuntu 24.04 LTS', tags: ['ubuntu', 'cloud-init'], source: {} },
  { name: 'debian12:latest', description: 'Debian 12', tags: ['debian', 'cloud-init'], source: {} },
]

const simulatedOnly: ImagesOf = ({ engine }) => (engine === 'simulated' ? simulatedImages : [])

const subnetPrefix = 20
const storagePrices: PriceRow[] = [
  { product_name: 'persistent-ssd', unit: 'gb_hour', usd: '0.00013' },
  { product_name: 'shared-volume', unit: 'gb_hour', usd: '0.00013' },
  { product_name: 'custom-image', unit: 'gb_hour', usd: '0.00007' },
  { product_name: 'snapshot', unit: 'gb_hour', usd: '0.00007' },
]

/**
 * Writes the configured catalogue to the database, at every start, possibly from several processes at the
 * same time. Keeps what operators changed by hand and what is in use. Returns the locations of this
 * deployment.
 */
export function applyConfig(
  database: Database,
  config: Pick<Config, 'locations' | 'prices' | 'engine' | 'quotas'>,
  imagesOf: ImagesOf = simulatedOnly,
): Promise<LocationConfig[]> {
  return database.transaction(async (tx) => {
    await holdLock(tx, 'applyConfig')
    const locations = effectiveLocations(config, await listLocations(tx))
    await writeLocations(tx, { ...config, locations }, imagesOf)
    await applyPrices(tx, config.prices)
    return locations
  })
}

/**
 * Writes locations that were reloaded while the service runs. Does not write prices, because operators may have
 * changed them since the start.
 */
export function applyLocations(
  database: Database,
  config: Pick<Config, 'locations' | 'quotas'>,
): Promise<void> {
  return database.transaction(async (tx) => {
    await holdLock(tx, 'applyConfig')
    await writeLocations(tx, config, simulatedOnly)
  })
}

async function writeLocations(
  tx: Tx,
  config: Pick<Config, 'locations' | 'quotas'>,
  imagesOf: ImagesOf,
): Promise<void> {
  const { locations } = config
  const newNames = await putLocations(tx, locations)
  await applyImages(tx, locations, newNames, imagesOf)
  for (const location of locations)
    if (location.engine === 'simulated')
      await putSimulatedHosts(tx, location.name, simulatedHosts(location.simulated.hosts))
  await addSubnets(tx, [...newNames])
  await fillQuotas(tx, config)
}

/** `--engine` only affects the demo of an empty database: later starts without a file keep the engine of the first start. */
export function effectiveLocations(
  config: Pick<Config, 'locations' | 'engine'>,
  stored: LocationRow[],
): LocationConfig[] {
  const [first] = stored
  const isDefault =
    config.locations.length === 0 || isDeepStrictEqual(config.locations, demoLocations(config.engine))
  if (!first || !isDefault) return config.locations
  const earlier = demoLocations(first.engine)
  const isDemoStore = earlier.every(({ name }) => stored.some((row) => row.name === name))
  return isDemoStore ? earlier : config.locations
}

/** Returns the names of new locations. */
async function putLocations(tx: Tx, locations: LocationConfig[]): Promise<Set<string>> {
  const newNames = new Set<string>()
  for (const [position, location] of locations.entries()) {
    const { name, engine } = location
    const stored = await findLocation(tx, name)
    if (stored && stored.engine !== engine && (await hasVmsOrDisks(tx, name)))
      throw new ConfigError(
        `location[${position}].engine: ${engine}: cannot change the engine of ${name}, which has VMs or disks of the engine ${stored.engine}`,
      )
    if (await putLocation(tx, { ...location, position })) newNames.add(name)
  }
  const names = locations.map(({ name }) => name)
  await removeUnusedLocations(tx, names)
  return newNames
}

/** Adds the images of new locations. In existing locations, the operator decides which images are available. */
async function applyImages(
  tx: Tx,
  locations: LocationConfig[],
  newNames: Set<string>,
  imagesOf: ImagesOf,
): Promise<void> {
  for (const location of locations) {
    const isNew = newNames.has(location.name)
    for (const image of imagesOf(location)) {
      const inserted = isNew && (await insertImage(tx, fromEngine(image, location.name)))
      if (!inserted) await extendImage(tx, image.name, { ...image, locations: isNew ? [location.name] : [] })
    }
  }
}

/** Images of the simulated engine have no source that a host could open. */
const fromEngine = (image: EngineImage, location: string) => ({
  ...image,
  isRegistered: Object.keys(image.source).length > 0,
  locations: [location],
})

/** Offers the images of an engine in its location. */
export function offerImages(database: Database, location: string, images: EngineImage[]): Promise<void> {
  return database.transaction(async (tx) => {
    await holdLock(tx, 'applyConfig')
    for (const image of images)
      if (!(await insertImage(tx, fromEngine(image, location))))
        await extendImage(tx, image.name, { ...image, locations: [location] })
  })
}

/** Prices in the file replace stored ones. The demo's prices and the default disk prices are only set if none is stored. */
async function applyPrices(tx: Tx, prices: PriceConfig[]): Promise<void> {
  await setPrices(tx, storagePrices, { onlyUnset: true })
  const areExamples = isDeepStrictEqual(prices, DEMO_PRICES)
  await setPrices(tx, prices.flatMap(typePrices), { onlyUnset: areExamples })
}

function typePrices({ model, usdPerGpuHour }: PriceConfig): PriceRow[] {
  const perGpu = parseDecimal(usdPerGpuHour)
  return vmTypes
    .filter((type) => type.gpuModel === model)
    .map((type) => ({
      product_name: type.name,
      unit: 'vm_hour',
      usd: displayUsd(timesExact(perGpu, BigInt(type.gpuCount)), 12),
    }))
}

/** Hosts are named by family and number, so that a longer list adds hosts and renames none. */
export function simulatedHosts(hosts: { count: number; model: string; gpus: number }[]): SimulatedHost[] {
  const counts = new Map<string, number>()
  return hosts.flatMap(({ count, model, gpus }) => {
    const family = familyOfModel(model)
    if (!family) throw new ConfigError(`hosts: ${model}: must be one of ${knownModels.join(', ')}`)
    const before = counts.get(family) ?? 0
    counts.set(family, before + count)
    return Array.from({ length: count }, (_, i) => ({
      name: `${family}-${before + i + 1}`,
      model,
      gpuCount: gpus,
    }))
  })
}

const knownModels = Object.values(families).map(({ model }) => model)

/** Adds a subnet for each new location to the default networks that have a free block. */
async function addSubnets(tx: Tx, newLocations: string[]): Promise<void> {
  const taken = new Map<string, string[]>()
  for (const network of await defaultNetworksWithoutSubnet(tx, newLocations)) {
    const { network_id: networkId, project_id: projectId, location } = network
    const blocks = taken.get(networkId) ?? network.taken
    taken.set(networkId, blocks)
    const cidr = firstFreeBlock(network.cidr, blocks)
    if (!cidr) continue
    blocks.push(cidr)
    await insertSubnet(tx, {
      id: uuid(),
      projectId,
      networkId,
      name: `default-subnet-${location}`,
      cidr,
      location,
    })
  }
}

function firstFreeBlock(network: string, taken: string[]): string | undefined {
  const blocks = 2 ** (subnetPrefix - Number(network.split('/')[1]))
  return Array.from({ length: blocks }, (_, i) => subnetFor(network, i, subnetPrefix)).find(
    (block) => !taken.some((other) => cidrsOverlap(block, other)),
  )
}
