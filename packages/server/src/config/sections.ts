import { type Family, families, type OrganizationQuotaName } from '@slipway/contract'
import type { XidMeaning } from '../domain/health/xids.ts'
import {
  choice,
  envName,
  type Field,
  field,
  filledText,
  flag,
  integer,
  ipBlock,
  listOf,
  pattern,
  price,
  type readTable,
  type Section,
  text,
  textTable,
} from './fields.ts'

// All keys of slipway.toml with their checks and defaults, except those of locations and sign-in.

export const engineNames = ['simulated', 'qemu', 'incus'] as const
export const serverRoles = ['all', 'api', 'worker'] as const
export const logLevels = ['silent', 'fatal', 'error', 'warn', 'info', 'debug', 'trace'] as const
export const gpuModels = Object.values(families).map((family) => family.model)

export type EngineName = (typeof engineNames)[number]
export type Role = (typeof serverRoles)[number]
export type LogLevel = (typeof logLevels)[number]
export type GpuModel = (typeof families)[Family]['model']

const maxCount = 1_000_000_000
const count = integer(0, maxCount)

export const port = integer(0, 65_535)
export const logLevel = choice(logLevels)

export const serverSection = {
  host: field(filledText, '127.0.0.1'),
  port: field(port, 8080),
  data_dir: field(filledText, '.slipway'),
  role: field(choice(serverRoles), 'all'),
  public_url: field(pattern(/^(https?:\/\/[^\s/]+[^\s]*)?$/, 'an http or https URL, or empty'), ''),
  allowed_hosts: field(listOf(pattern(/^[a-z0-9._-]+$/i, 'a host name without a port')), []),
  trusted_proxies: field(listOf(ipBlock), []),
  tls_cert_file: field(text, ''),
  tls_key_file: field(text, ''),
  log_level: field(logLevel, 'info'),
  worker_port: field(port, 0),
  metrics_token_env: field(envName, ''),
  public_catalogue: field(flag, true),
  family_api: field(flag, false),
  family_image_aliases: field(textTable, {
    'ubuntu22.04:latest': 'ubuntu22.04-nvidia:latest',
    'ubuntu22.04-nvidia-pcie-docker:latest': 'ubuntu22.04-nvidia:latest',
    'ubuntu22.04-nvidia-sxm-docker:latest': 'ubuntu22.04-nvidia:latest',
  }),
}

export const databaseSection = {
  url_env: field(envName, 'DATABASE_URL'),
  urls: field(listOf(text), []),
  password_env: field(envName, 'DATABASE_PASSWORD'),
  pool_size: field(integer(1, 1000), 4),
}

export const limitsSection = {
  requests_per_second: field(integer(1, maxCount), 100),
  burst: field(integer(1, maxCount), 200),
  organization_requests_per_second: field(integer(1, maxCount), 300),
  organization_burst: field(integer(1, maxCount), 600),
  organization_in_flight: field(integer(1, maxCount), 32),
  organization_queue: field(count, 128),
  organization_streams: field(integer(1, maxCount), 256),
  page_bytes: field(integer(1024, 1_073_741_824), 1_048_576),
  connections_per_address: field(integer(1, maxCount), 200),
  password_failures_per_minute: field(integer(1, maxCount), 10),
  password_failures_per_address: field(integer(1, maxCount), 30),
  password_failures_per_email: field(integer(1, maxCount), 100),
  unknown_bearers_per_second: field(integer(1, maxCount), 20),
  body_bytes: field(integer(1024, 1_073_741_824), 1_048_576),
}

export const quotasSection = {
  a40_gpus: field(count, 8),
  a100_gpus: field(count, 8),
  'a100-80gb_gpus': field(count, 8),
  'l40s-48gb_gpus': field(count, 10),
  vms: field(count, 100),
  disk_gib: field(count, 102_400),
  shared_volume_tib: field(count, 100),
  firewall_rules: field(count, 200),
  projects: field(count, 20),
  networks: field(count, 50),
  subnets: field(count, 200),
  access_keys: field(count, 200),
  ssh_keys: field(count, 200),
  members: field(count, 200),
  webhooks: field(count, 50),
  capacity_requests: field(count, 50),
  instance_groups: field(count, 100),
  instance_templates: field(count, 200),
  custom_images: field(count, 50),
  snapshots: field(count, 500),
  captured_gib: field(count, 20_480),
  reserved_addresses: field(count, 10),
} satisfies Record<OrganizationQuotaName, Field<number>>

export const operationsSection = {
  lease_ms: field(integer(100, 3_600_000), 10_000),
  renew_ms: field(integer(10, 3_600_000), 3000),
  vm_deadline_s: field(integer(1, 86_400), 900),
  unreachable_s: field(integer(1, 86_400), 600),
  concurrency: field(integer(1, 10_000), 128),
  restored: field(flag, false),
}

export const capacitySection = {
  accumulate_after_s: field(integer(1, 86_400), 600),
  accumulate_max_s: field(integer(1, 604_800), 14_400),
  collect_before_h: field(integer(0, 8_760), 24),
}

const xids = listOf(integer(1, 999))
/** XID errors with a different meaning than in the table in `domain/health/xids.ts`. */
export const healthSection = {
  application: field(xids, []),
  information: field(xids, []),
  reset: field(xids, []),
  replace: field(xids, []),
} satisfies Partial<Record<XidMeaning, Field<number[]>>>

export const billingSection = {
  provider: field(choice(['builtin', 'stripe'] as const), 'builtin'),
  stripe_key_env: field(envName, 'STRIPE_API_KEY'),
  stripe_webhook_secret_env: field(envName, 'STRIPE_WEBHOOK_SECRET'),
  keys_may_open: field(flag, true),
  rollup_at_utc: field(pattern(/^([01][0-9]|2[0-3]):[0-5][0-9]$/, 'a time of day, such as 00:05'), '00:05'),
}

export const webhooksSection = {
  allow_private_ranges: field(listOf(ipBlock), []),
}

export const priceSection = {
  model: field(choice(gpuModels)),
  usd_per_gpu_hour: field(price),
}

export type PriceConfig = Section<typeof priceSection>

/** The keys are the API's quota names. */
export type QuotaConfig = ReturnType<typeof readTable<typeof quotasSection>>

/** Example prices, which are marked as such wherever they are shown. */
export const DEMO_PRICES: PriceConfig[] = [
  { model: 'A40 48GB PCIe', usdPerGpuHour: '0.9' },
  { model: 'A100 40GB PCIe', usdPerGpuHour: '1.45' },
  { model: 'A100 80GB PCIe', usdPerGpuHour: '1.65' },
  { model: 'L40S 48GB PCIe', usdPerGpuHour: '1' },
]
