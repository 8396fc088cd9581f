import { type Family, families, type QuotaName } from '@slipway/contract'
import {
  choice,
  type Field,
  field,
  filledText,
  integer,
  ipBlock,
  listOf,
  pattern,
  price,
  type readTable,
  type Section,
} from './fields.ts'

/** Every key of the file but those of locations, with its check and its default. */

export const ENGINES = ['simulated', 'qemu', 'incus'] as const
export const ROLES = ['all', 'api', 'worker'] as const
export const LOG_LEVELS = ['silent', 'fatal', 'error', 'warn', 'info', 'debug', 'trace'] as const
export const GPU_MODELS = Object.values(families).map((family) => family.model)

export type EngineName = (typeof ENGINES)[number]
export type Role = (typeof ROLES)[number]
export type LogLevel = (typeof LOG_LEVELS)[number]
export type GpuModel = (typeof families)[Family]['model']

const MAX_COUNT = 1_000_000_000
const envName = pattern(/^([A-Za-z_][A-Za-z0-9_]*)?$/, 'the name of an environment variable')
const count = integer(0, MAX_COUNT)

export const port = integer(0, 65_535)
export const logLevel = choice(LOG_LEVELS)

export const SERVER = {
  host: field(filledText, '127.0.0.1'),
  port: field(port, 8080),
  data_dir: field(filledText, '.slipway'),
  role: field(choice(ROLES), 'all'),
  public_url: field(pattern(/^(https?:\/\/[^\s/]+[^\s]*)?$/, 'an http or https URL, or empty'), ''),
  trusted_proxies: field(listOf(ipBlock), []),
  log_level: field(logLevel, 'info'),
  metrics_token_env: field(envName, ''),
}

export const DATABASE = {
  url_env: field(envName, 'DATABASE_URL'),
  pool_size: field(integer(1, 1000), 8),
}

export const LIMITS = {
  requests_per_second: field(integer(1, MAX_COUNT), 100),
  burst: field(integer(1, MAX_COUNT), 200),
  password_failures_per_minute: field(integer(1, MAX_COUNT), 10),
  body_bytes: field(integer(1024, 1_073_741_824), 1_048_576),
}

export const QUOTAS = {
  a40_gpus: field(count, 8),
  a100_gpus: field(count, 8),
  'a100-80gb_gpus': field(count, 8),
  'l40s-48gb_gpus': field(count, 10),
  vms: field(count, 100),
  disk_gib: field(count, 102_400),
  shared_volume_tib: field(count, 100),
  firewall_rules: field(count, 200),
} satisfies Record<QuotaName, Field<number>>

export const OPERATIONS = {
  lease_ms: field(integer(100, 3_600_000), 10_000),
  renew_ms: field(integer(10, 3_600_000), 3000),
  vm_deadline_s: field(integer(1, 86_400), 900),
  concurrency: field(integer(1, 10_000), 32),
}

export const BILLING = {
  provider: field(choice(['builtin', 'stripe'] as const), 'builtin'),
  stripe_key_env: field(envName, 'STRIPE_API_KEY'),
  stripe_webhook_secret_env: field(envName, 'STRIPE_WEBHOOK_SECRET'),
  rollup_at_utc: field(pattern(/^([01][0-9]|2[0-3]):[0-5][0-9]$/, 'a time of day, such as 00:05'), '00:05'),
}

export const WEBHOOKS = {
  allow_private_ranges: field(listOf(ipBlock), []),
}

export const PRICE = {
  model: field(choice(GPU_MODELS)),
  usd_per_gpu_hour: field(price),
}

export type PriceConfig = Section<typeof PRICE>

/** The names are those of the quotas in the API, so they stay as they are. */
export type QuotaConfig = ReturnType<typeof readTable<typeof QUOTAS>>

/** Examples, and marked as such wherever they show. */
export const DEMO_PRICES: PriceConfig[] = [
  { model: 'A40 48GB PCIe', usdPerGpuHour: '0.9' },
  { model: 'A100 40GB PCIe', usdPerGpuHour: '1.45' },
  { model: 'A100 80GB PCIe', usdPerGpuHour: '1.65' },
  { model: 'L40S 48GB PCIe', usdPerGpuHour: '1' },
]
