import { parse, TomlError } from 'smol-toml'
import type { XidMeaning, XidMeanings } from '../domain/health/xids.ts'
import { type DatabaseConfig, readDatabase } from './database.ts'
import {
  anything,
  type Check,
  ConfigError,
  choice,
  field,
  filledText,
  pattern,
  readSection,
  readTable,
  readTables,
  refuse,
  type Section,
} from './fields.ts'
import { type Flags, parseFlags } from './flags.ts'
import { demoLocations, type LocationConfig, readLocations } from './locations.ts'
import {
  billingSection,
  capacitySection,
  DEMO_PRICES,
  type EngineName,
  engineNames,
  healthSection,
  limitsSection,
  logLevel,
  operationsSection,
  type PriceConfig,
  port,
  priceSection,
  type QuotaConfig,
  quotasSection,
  serverRoles,
  serverSection,
  webhooksSection,
} from './sections.ts'
import { type MailConfig, type OidcConfig, readMail, readOidc, signInSection } from './sign-in.ts'

export { ConfigError } from './fields.ts'
export { help } from './flags.ts'
export type {
  IncusConfig,
  LocationConfig,
  QemuConfig,
  QemuGpu,
  SimulatedConfig,
  SimulatedHosts,
} from './locations.ts'
export type { EngineName, GpuModel, LogLevel, PriceConfig, QuotaConfig, Role } from './sections.ts'
export type { MailConfig, OidcConfig } from './sign-in.ts'

export interface Config {
  /** `help` and `version` do not read any file. */
  command: 'serve' | 'help' | 'version'
  /** The path of the file; '' if there is none. */
  configFile: string
  /** True if the demo is created in an empty database. */
  isDemo: boolean
  /** True if clients may control the clock, faults and capacity through `/_dev`. */
  isDev: boolean
  /** The engine of the demo. Configured locations have their own engine. */
  engine: EngineName
  /** `metricsToken` is '' if only requests from loopback may read the metrics. */
  server: Section<typeof serverSection> & {
    metricsToken: string
    /** The file with the master key; '' for the file in the data directory. */
    secretKeyFile: string
  }
  database: DatabaseConfig
  limits: Section<typeof limitsSection>
  quotas: QuotaConfig
  operations: Section<typeof operationsSection>
  capacity: Section<typeof capacitySection>
  /** XID errors to which the configuration gives a meaning other than the default. */
  health: { meanings: XidMeanings }
  /** The Stripe secrets are '' with the built-in provider. */
  billing: Section<typeof billingSection> & {
    stripeKey: string
    stripeWebhookSecret: string
    /** The URL of a Stripe emulator; '' for Stripe itself. */
    stripeApiUrl: string
  }
  webhooks: Section<typeof webhooksSection>
  signIn: Section<typeof signInSection>
  /** Null if no mail is sent. */
  mail: MailConfig | null
  oidc: OidcConfig[]
  locations: LocationConfig[]
  prices: PriceConfig[]
}

type Environment = NodeJS.ProcessEnv
type ReadFile = (path: string) => string

const defaultFile = 'slipway.toml'
const httpUrl = pattern(/^https?:\/\/[^\s/]+$/, 'an http or https URL without a path')

/** The sections of the file, each with the value that stands for an absent section. */
const fileSections = {
  server: field(anything, {}),
  database: field(anything, {}),
  limits: field(anything, {}),
  quotas: field(anything, {}),
  operations: field(anything, {}),
  capacity: field(anything, {}),
  health: field(anything, {}),
  billing: field(anything, {}),
  webhooks: field(anything, {}),
  sign_in: field(anything, {}),
  mail: field(anything, null),
  oidc: field(anything, []),
  location: field(anything, null),
  price: field(anything, null),
}

function readToml(path: string, isNamed: boolean, readFile: ReadFile): { path: string; content: unknown } {
  let source: string
  try {
    source = readFile(path)
  } catch (error) {
    const { code = 'unreadable' } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' && !isNamed) return { path: '', content: {} }
    throw new ConfigError(`${path}: cannot be read (${code})`)
  }
  try {
    return { path, content: parse(source) }
  } catch (error) {
    if (!(error instanceof TomlError)) throw error
    const [problem] = error.message.split('\n')
    throw new ConfigError(`${path}:${error.line}:${error.column}: ${problem}`)
  }
}

type Given = [name: string, value: string | undefined]

/** Returns the first value that is set, otherwise the value from the file. An empty variable counts as unset. */
function pick<T>(check: Check<T>, given: Given[], otherwise: T): T {
  const found = given.find(([, value]) => value !== undefined && value !== '')
  return found ? check(found[1], found[0]) : otherwise
}

const portText: Check<number> = (value, key) =>
  /^[0-9]{1,9}$/.test(String(value)) ? port(Number(value), key) : port(value, key)

function readServer(value: unknown, flags: Flags, env: Environment): Config['server'] {
  const server = readSection(serverSection, value, 'server')
  if ((server.tlsCertFile === '') !== (server.tlsKeyFile === ''))
    refuse('server.tls_cert_file', server.tlsCertFile, 'set both tls_cert_file and tls_key_file, or neither')
  const flag = (name: keyof Flags['values']): Given => [name, flags.values[name]]
  const variable = (name: string): Given => [name, env[name]]
  const host = pick(filledText, [flag('--host'), variable('SLIPWAY_HOST')], server.host)
  if (server.familyApi && !isProtectedInTransit({ ...server, host }))
    refuse(
      'server.family_api',
      true,
      `requires TLS, because an intercepted request could be replayed: set tls_cert_file and tls_key_file, listen on loopback instead of ${host}, or set trusted_proxies and an https public_url`,
    )
  return {
    ...server,
    host,
    port: pick(portText, [flag('--port'), variable('SLIPWAY_PORT')], server.port),
    dataDir: pick(filledText, [flag('--data-dir'), variable('SLIPWAY_DATA_DIR')], server.dataDir),
    role: pick(choice(serverRoles), [flag('--role')], server.role),
    workerPort: pick(portText, [variable('SLIPWAY_WORKER_PORT')], server.workerPort),
    logLevel: pick(logLevel, [variable('SLIPWAY_LOG_LEVEL')], server.logLevel),
    secretKeyFile: env.SLIPWAY_SECRET_KEY_FILE ?? '',
    metricsToken: secret(env, 'server.metrics_token_env', server.metricsTokenEnv),
  }
}

export const isLoopback = (host: string) => host === 'localhost' || host === '::1' || /^127\./.test(host)

/**
 * Returns whether requests cannot be read in transit, because of TLS in this process or at a trusted proxy,
 * or because clients are on the same machine.
 */
const isProtectedInTransit = (
  server: Pick<Config['server'], 'host' | 'tlsCertFile' | 'trustedProxies' | 'publicUrl'>,
): boolean =>
  server.tlsCertFile !== '' ||
  isLoopback(server.host) ||
  (server.trustedProxies.length > 0 && server.publicUrl.startsWith('https://'))

/**
 * An environment variable that is named in the configuration file must be set, so that a missing token does
 * not disable a protection.
 */
function secret(env: Environment, key: string, variable: string): string {
  if (variable === '') return ''
  return env[variable] || refuse(key, variable, 'this environment variable is not set')
}

function readBilling(value: unknown, env: Environment): Config['billing'] {
  const billing = readSection(billingSection, value, 'billing')
  if (billing.provider === 'builtin')
    return { ...billing, stripeKey: '', stripeWebhookSecret: '', stripeApiUrl: '' }
  const { stripeKeyEnv, stripeWebhookSecretEnv } = billing
  if (stripeKeyEnv === '' || stripeWebhookSecretEnv === '') {
    refuse('billing.provider', 'stripe', 'requires stripe_key_env and stripe_webhook_secret_env')
  }
  return {
    ...billing,
    stripeKey: secret(env, 'billing.stripe_key_env', stripeKeyEnv),
    stripeWebhookSecret: secret(env, 'billing.stripe_webhook_secret_env', stripeWebhookSecretEnv),
    stripeApiUrl: pick(httpUrl, [['SLIPWAY_STRIPE_API_URL', env.SLIPWAY_STRIPE_API_URL]], ''),
  }
}

function readOperations(value: unknown): Config['operations'] {
  const operations = readSection(operationsSection, value, 'operations')
  const { renewMs, leaseMs } = operations
  if (renewMs * 2 > leaseMs) {
    const rule = `must be at most half of operations.lease_ms (${leaseMs}); nearest valid: ${Math.floor(leaseMs / 2)}`
    refuse('operations.renew_ms', renewMs, rule)
  }
  return operations
}

function readPrices(value: unknown): PriceConfig[] {
  const models = new Set<string>()
  return readTables(value, 'price', (table, key) => {
    const price = readSection(priceSection, table, key)
    if (models.has(price.model)) refuse(`${key}.model`, price.model, 'already has a price')
    models.add(price.model)
    return price
  })
}

function readMeanings(content: unknown): XidMeanings {
  const section = readTable(healthSection, content, 'health')
  const meanings = new Map<number, XidMeaning>()
  for (const [meaning, xids] of Object.entries(section) as [XidMeaning, number[]][])
    for (const xid of xids) {
      if (meanings.has(xid)) refuse(`health.${meaning}`, xid, 'already has a meaning')
      meanings.set(xid, meaning)
    }
  return meanings
}

/**
 * Reads and checks the configuration. Flags override the environment, which overrides the file, which
 * overrides defaults. Throws a ConfigError with a one-line message.
 */
export function loadConfig(argv: string[], environment: Environment, readFile: ReadFile): Config {
  // An empty variable counts as unset, because scripts and service managers clear variables this way.
  const env = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''))
  const flags = parseFlags(argv)
  if (flags.switches.has('--help')) return { ...loadConfig([], {}, () => ''), command: 'help' }
  if (flags.switches.has('--version')) return { ...loadConfig([], {}, () => ''), command: 'version' }
  const named = flags.values['--config'] ?? env.SLIPWAY_CONFIG
  const file = readToml(named ?? defaultFile, named !== undefined, readFile)
  const tables = readTable(fileSections, file.content, '')
  const isDemo = !flags.switches.has('--no-demo')
  const engine = pick(choice(engineNames), [['--engine', flags.values['--engine']]], 'simulated')
  return {
    command: 'serve',
    configFile: file.path,
    isDemo,
    isDev: flags.switches.has('--dev'),
    engine,
    server: readServer(tables.server, flags, env),
    database: readDatabase(tables.database, env),
    limits: readSection(limitsSection, tables.limits, 'limits'),
    quotas: readTable(quotasSection, tables.quotas, 'quotas'),
    operations: readOperations(tables.operations),
    capacity: readSection(capacitySection, tables.capacity, 'capacity'),
    health: { meanings: readMeanings(tables.health) },
    billing: readBilling(tables.billing, env),
    webhooks: readSection(webhooksSection, tables.webhooks, 'webhooks'),
    signIn: readSection(signInSection, tables.sign_in, 'sign_in'),
    mail: readMail(tables.mail, (key, variable) => secret(env, key, variable)),
    oidc: readOidc(tables.oidc, (key, variable) => secret(env, key, variable)),
    locations:
      tables.location !== null ? readLocations(tables.location) : isDemo ? demoLocations(engine) : [],
    prices: tables.price !== null ? readPrices(tables.price) : isDemo ? DEMO_PRICES : [],
  }
}
