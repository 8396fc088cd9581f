import { cidrsOverlap, subnetFor } from '../domain/addresses.ts'
import {
  anything,
  type Check,
  ConfigError,
  choice,
  field,
  filledText,
  flag,
  fraction,
  integer,
  ipv4Block,
  listOf,
  optional,
  pattern,
  readSection,
  readTables,
  refuse,
  type Section,
  sectionOf,
  text,
} from './fields.ts'
import { type EngineName, engineNames, type GpuModel, gpuModels } from './sections.ts'

const maxWaitMs = 86_400_000
/** A range that is reserved for network tests, so these addresses have no machine behind them. */
const simulatedAddresses = '198.18.0.0/15'
const simulatedPoolPrefix = 18

const hostFields = {
  count: field(integer(1, 100_000), 1),
  model: field(choice(gpuModels)),
  gpus: field(integer(1, 16), 8),
}

export type SimulatedHosts = Section<typeof hostFields>

const DEMO_HOSTS: SimulatedHosts[] = [
  { count: 4, model: 'A40 48GB PCIe', gpus: 8 },
  { count: 4, model: 'A100 40GB PCIe', gpus: 8 },
  { count: 4, model: 'A100 80GB PCIe', gpus: 8 },
  { count: 3, model: 'L40S 48GB PCIe', gpus: 10 },
]

/** One number is a fixed time; two are the limits of a random time. */
const bootMs: Check<[min: number, max: number]> = (value, key) => {
  const wait = integer(0, maxWaitMs)
  if (!Array.isArray(value)) return [wait(value, key), wait(value, key)]
  const [min, max, ...more] = listOf(wait)(value, key)
  return min !== undefined && max !== undefined && more.length === 0 && min <= max
    ? [min, max]
    : refuse(key, value, 'must be a number of milliseconds, or a range such as [2000, 5000]')
}

const simulatedSection = {
  boot_ms: field(bootMs, [2000, 5000]),
  quarantine_ms: field(integer(0, maxWaitMs), 500),
  hosts: field(listOf(sectionOf(hostFields)), DEMO_HOSTS),
}

/** Declared GPUs by model and count, or a real GPU by its PCI address. */
export type QemuGpu = { model: GpuModel; count: number } | { pci: string }

const declaredGpu = { model: field(choice(gpuModels)), count: field(integer(1, 16), 1) }
const passedGpu = {
  pci: field(pattern(/^[0-9a-f]{4}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]$/, 'a PCI address, such as 0000:41:00.0')),
}

const qemuGpu: Check<QemuGpu> = (value, key) =>
  typeof value === 'object' && value !== null && 'pci' in value
    ? readSection(passedGpu, value, key)
    : readSection(declaredGpu, value, key)

const qemuSection = {
  scale: field(fraction(0.0001, 1), 0.01),
  address_range: field(ipv4Block, '127.100.0.0/16'),
  egress: field(choice(['none', 'user'] as const), 'none'),
  egress_allow: field(listOf(ipv4Block), []),
  gpus: field(listOf(qemuGpu), [{ model: 'A100 80GB PCIe', count: 8 }]),
  boot_timeout_s: field(integer(1, 86_400), 120),
}

const incusSection = {
  urls: field(listOf(pattern(/^https:\/\/[^\s/]+\/?$/, 'an https URL, such as https://10.0.0.1:8443')), []),
  socket: field(text, ''),
  client_cert_file: field(text, ''),
  client_key_file: field(text, ''),
  server_cert_file: field(text, ''),
  project: field(filledText, 'slipway'),
  instance_type: field(choice(['virtual-machine', 'container'] as const), 'virtual-machine'),
  storage_pool: field(filledText, 'default'),
  disk_pool: field(text, ''),
  shared_volume_pool: field(text, ''),
  profiles: field(listOf(filledText), []),
  allow_unfiltered_internal: field(flag, false),
  network_limits: field(flag, true),
  gpus: field(listOf(sectionOf(declaredGpu)), []),
}

export type SimulatedConfig = Section<typeof simulatedSection>
export type QemuConfig = Section<typeof qemuSection>
export type IncusConfig = Section<typeof incusSection>

interface LocationBase {
  name: string
  description: string
  storage: 'shared' | 'local'
  /** The pool of public addresses; '' if there is none. */
  publicIpv4: string
}

export type LocationConfig = LocationBase &
  (
    | { engine: 'simulated'; simulated: SimulatedConfig }
    | { engine: 'qemu'; qemu: QemuConfig }
    | { engine: 'incus'; incus: IncusConfig }
  )

function readIncus(value: unknown, key: string): IncusConfig {
  const incus = readSection(incusSection, value, key)
  if (incus.urls.length > 0 && incus.socket !== '') {
    refuse(`${key}.socket`, incus.socket, `must be empty if ${key}.urls is set`)
  }
  if (incus.urls.length > 0 && (incus.clientCertFile === '' || incus.clientKeyFile === '')) {
    throw new ConfigError(`${key}.client_cert_file and ${key}.client_key_file are required with ${key}.urls`)
  }
  if (incus.gpus.length > 0 && incus.instanceType !== 'container')
    throw new ConfigError(
      `${key}.gpus requires instance_type = "container": the GPUs of virtual machines are detected`,
    )
  return incus.urls.length > 0 || incus.socket !== ''
    ? incus
    : { ...incus, socket: '/var/lib/incus/unix.socket' }
}

const locationSection = {
  name: field(pattern(/^[a-z0-9]+(-[a-z0-9]+)+$/, 'a region and a zone, such as us-east1-a')),
  description: field(text, ''),
  engine: field(choice(engineNames), 'simulated'),
  storage: field(optional(choice(['shared', 'local'] as const)), ''),
  public_ipv4: field(optional(ipv4Block), ''),
  simulated: field(anything, {}),
  qemu: field(anything, {}),
  incus: field(anything, {}),
}

function readLocation(value: unknown, key: string, index: number): LocationConfig {
  const { name, description, engine, ...given } = readSection(locationSection, value, key)
  const stray = engineNames.find((other) => other !== engine && Object.hasOwn(value as object, other))
  if (stray) refuse(`${key}.engine`, engine, `does not allow a table [location.${stray}]`)
  const base = {
    name,
    description,
    storage: given.storage || (engine === 'qemu' ? ('local' as const) : ('shared' as const)),
    publicIpv4: given.publicIpv4,
  }
  switch (engine) {
    case 'simulated': {
      const simulated = readSection(simulatedSection, given.simulated, `${key}.simulated`)
      const publicIpv4 = base.publicIpv4 || subnetFor(simulatedAddresses, index % 8, simulatedPoolPrefix)
      return { ...base, engine, simulated, publicIpv4 }
    }
    case 'qemu': {
      const qemu = readSection(qemuSection, given.qemu, `${key}.qemu`)
      return { ...base, engine, qemu, publicIpv4: base.publicIpv4 || qemu.addressRange }
    }
    case 'incus':
      return { ...base, engine, incus: readIncus(given.incus, `${key}.incus`) }
  }
}

export function readLocations(value: unknown): LocationConfig[] {
  const locations = readTables(value, 'location', readLocation)
  locations.forEach((location, i) => {
    for (const earlier of locations.slice(0, i)) {
      if (earlier.name === location.name) {
        refuse(`location[${i}].name`, location.name, 'is the name of another location')
      }
      const pools = [earlier.publicIpv4, location.publicIpv4] as const
      if (!pools.includes('') && cidrsOverlap(...pools)) {
        refuse(`location[${i}].public_ipv4`, pools[1], `overlaps with ${pools[0]} of ${earlier.name}`)
      }
    }
  })
  return locations
}

/** Returns the demo's locations, for a configuration file that has none. */
export function demoLocations(engine: EngineName): LocationConfig[] {
  if (engine !== 'simulated') return readLocations([{ name: 'local-a', description: 'This machine', engine }])
  return readLocations([
    { name: 'us-east1-a', description: 'Simulated, US East' },
    { name: 'us-west1-a', description: 'Simulated, US West' },
    { name: 'eu-north1-a', description: 'Simulated, EU North' },
  ])
}
