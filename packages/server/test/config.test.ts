import { readFileSync } from 'node:fs'
import { parse } from 'smol-toml'
import { expect, expectTypeOf, test } from 'vitest'
import { type Config, ConfigError, help, type LocationConfig, loadConfig } from '../src/config/index.ts'

const EXAMPLE = readFileSync(new URL('../../../slipway.example.toml', import.meta.url), 'utf8')

function files(contents: Record<string, string>) {
  return (path: string) => {
    const content = contents[path]
    if (content === undefined) throw Object.assign(new Error('no such file'), { code: 'ENOENT' })
    return content
  }
}
const load = (argv: string[] = [], env: NodeJS.ProcessEnv = {}, toml?: string) =>
  loadConfig(argv, env, files(toml === undefined ? {} : { 'slipway.toml': toml }))

function problem(toml: string, argv: string[] = [], env: NodeJS.ProcessEnv = {}): string {
  try {
    load(argv, env, toml)
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError)
    return (error as ConfigError).message
  }
  throw new Error('was accepted')
}

test('the default configuration runs the demo on this machine only', () => {
  const config = load()
  expect(config).toMatchObject({ command: 'serve', configFile: '', isDemo: true, engine: 'simulated' })
  expect(config.server).toEqual({
    host: '127.0.0.1',
    port: 8080,
    dataDir: '.slipway',
    role: 'all',
    publicUrl: '',
    allowedHosts: [],
    trustedProxies: [],
    tlsCertFile: '',
    tlsKeyFile: '',
    logLevel: 'info',
    workerPort: 0,
    metricsTokenEnv: '',
    publicCatalogue: true,
    familyApi: false,
    familyImageAliases: {
      'ubuntu22.04:latest': 'ubuntu22.04-nvidia:latest',
      'ubuntu22.04-nvidia-pcie-docker:latest': 'ubuntu22.04-nvidia:latest',
      'ubuntu22.04-nvidia-sxm-docker:latest': 'ubuntu22.04-nvidia:latest',
    },
    metricsToken: '',
    secretKeyFile: '',
  })
  expect(config.database).toEqual({ source: 'DATABASE_URL', urls: [], poolSize: 4 })
  expect(config.quotas['a100-80gb_gpus']).toBe(8)
  expect(config.locations.map(({ name, publicIpv4 }) => [name, publicIpv4])).toEqual([
    ['us-east1-a', '198.18.0.0/18'],
    ['us-west1-a', '198.18.64.0/18'],
    ['eu-north1-a', '198.18.128.0/18'],
  ])
  expect(config.prices.map(({ usdPerGpuHour }) => usdPerGpuHour)).toEqual(['0.9', '1.45', '1.65', '1'])
})

test.each([
  '',
  'host = "0.0.0.0"\ntls_cert_file = "a"\ntls_key_file = "b"',
  'host = "0.0.0.0"\ntrusted_proxies = ["10.0.0.1"]\npublic_url = "https://gpu.example"',
])('the compatible API can be enabled on loopback, with TLS or behind a proxy with TLS: %j', (lines) => {
  expect(load([], {}, `[server]\nfamily_api = true\n${lines}`).server.familyApi).toBe(true)
})

test('the types of the configuration are exact', () => {
  expectTypeOf<Config['server']['port']>().toEqualTypeOf<number>()
  expectTypeOf<Config['server']['role']>().toEqualTypeOf<'all' | 'api' | 'worker'>()
  expectTypeOf<Config['server']['trustedProxies']>().toEqualTypeOf<string[]>()
  expectTypeOf<Config['quotas']['l40s-48gb_gpus']>().toEqualTypeOf<number>()
  expectTypeOf<Config['operations']['vmDeadlineS']>().toEqualTypeOf<number>()
  type Simulated = Extract<LocationConfig, { engine: 'simulated' }>['simulated']
  expectTypeOf<Simulated['bootMs']>().toEqualTypeOf<[min: number, max: number]>()
})

test('the example file contains every default', () => {
  const fromExample = load([], {}, EXAMPLE)
  expect({ ...fromExample, configFile: '' }).toEqual(load())
  const raw = parse(EXAMPLE)
  const { metricsToken: _m, secretKeyFile: _s, ...server } = load().server
  for (const [section, keys] of Object.entries({
    server: Object.keys(server).length,
    database: 4,
    limits: Object.keys(load().limits).length,
    quotas: Object.keys(load().quotas).length,
    operations: Object.keys(load().operations).length,
    billing: 5,
    webhooks: 1,
  })) {
    expect(Object.keys(raw[section] as object), section).toHaveLength(keys)
  }
})

test.each(['qemu', 'incus'] as const)(
  'the example file contains the defaults of --engine %s as comments',
  (engine) => {
    const lines = EXAMPLE.split('\n')
    const start = lines.findIndex((line) => line.includes(`--engine ${engine} creates this location`))
    const length = lines.slice(start).indexOf('')
    const block = lines.slice(start + 1, start + length).map((line) => line.replace(/^# ?/, ''))
    expect(load([], {}, block.join('\n')).locations).toEqual(load(['--engine', engine]).locations)
    const written = (parse(block.join('\n')).location as Record<string, object>[])[0]![engine]!
    const [location] = load(['--engine', engine]).locations as unknown as Record<string, object>[]
    expect(Object.keys(written)).toHaveLength(Object.keys(location![engine]!).length)
  },
)

test('the demo of --engine qemu is one local location with the qemu engine', () => {
  expect(load(['--engine', 'qemu']).locations).toEqual([
    {
      name: 'local-a',
      description: 'This machine',
      engine: 'qemu',
      storage: 'local',
      publicIpv4: '127.100.0.0/16',
      qemu: {
        scale: 0.01,
        addressRange: '127.100.0.0/16',
        egress: 'none',
        egressAllow: [],
        gpus: [{ model: 'A100 80GB PCIe', count: 8 }],
        bootTimeoutS: 120,
      },
    },
  ])
})

test('the demo of --engine qemu is overridden by the file and by --no-demo', () => {
  const toml =
    '[[location]]\nname = "lab-1"\n[[price]]\nmodel = "A40 48GB PCIe"\nusd_per_gpu_hour = "0.000001"\n'
  const config = load(['--engine', 'qemu'], {}, toml)
  expect(config.locations).toMatchObject([{ name: 'lab-1', engine: 'simulated' }])
  expect(config.prices).toEqual([{ model: 'A40 48GB PCIe', usdPerGpuHour: '0.000001' }])
  expect(load(['--no-demo'])).toMatchObject({ isDemo: false, locations: [], prices: [] })
  expect(load(['--no-demo'], {}, toml).locations).toHaveLength(1)
})

const toml = '[server]\nport = 1\nhost = "file"\ndata_dir = "file"\nrole = "api"\nlog_level = "warn"\n'

test('settings are taken from flags, then environment, then file, then defaults', () => {
  const env = { SLIPWAY_PORT: '2', SLIPWAY_HOST: 'env', SLIPWAY_LOG_LEVEL: 'debug', SLIPWAY_DATA_DIR: '' }
  expect(load([], {}, toml).server).toMatchObject({ port: 1, host: 'file', dataDir: 'file', role: 'api' })
  expect(load([], env, toml).server).toMatchObject({
    port: 2,
    host: 'env',
    dataDir: 'file',
    logLevel: 'debug',
  })
  const argv = ['--port=0', '--host', 'flag', '--role', 'worker', '--data-dir=a=b']
  expect(load(argv, env, toml).server).toMatchObject({
    port: 0,
    host: 'flag',
    dataDir: 'a=b',
    role: 'worker',
  })
})

test('[health] changes the meaning of XID errors, each at most once', () => {
  const { meanings } = load([], {}, '[health]\nreset = [79]\napplication = [54, 63]').health
  expect([...meanings]).toEqual(
    expect.arrayContaining([
      [79, 'reset'],
      [54, 'application'],
      [63, 'application'],
    ]),
  )
  expect(meanings.size).toBe(3)
  expect(problem('[health]\nreset = [79]\nreplace = [79]')).toMatch(/health\.\w+ = 79: already has a meaning/)
  expect(problem('[health]\nreset = [0]')).toMatch(/health\.reset/)
})

test('the path of the configuration file follows the same precedence', () => {
  const readFile = files({
    'slipway.toml': '[server]\nport = 1',
    a: '[server]\nport = 2',
    b: '[server]\nport = 3',
  })
  expect(loadConfig([], {}, readFile)).toMatchObject({ configFile: 'slipway.toml', server: { port: 1 } })
  expect(loadConfig([], { SLIPWAY_CONFIG: 'a' }, readFile)).toMatchObject({
    configFile: 'a',
    server: { port: 2 },
  })
  expect(loadConfig(['--config', 'b'], { SLIPWAY_CONFIG: 'a' }, readFile).server.port).toBe(3)
})

test('the database URL is taken from the variable that is named in the file', () => {
  const env = { DATABASE_URL: 'postgres://one/db', OTHER: 'postgresql://two/db' }
  expect(load([], env).database.urls).toEqual(['postgres://one/db'])
  expect(load([], env, '[database]\nurl_env = "OTHER"').database.urls).toEqual(['postgresql://two/db'])
  expect(load([], env, '[database]\nurl_env = ""').database.urls).toEqual([])
})

test('several database servers are listed in the file, and their password is in a variable', () => {
  const urls = (...list: string[]) => `[database]\nurls = ${JSON.stringify(list)}`
  const both = urls('postgres://u@one/db', 'postgres://u@two/db?sslmode=require')
  expect(load([], { DATABASE_PASSWORD: 'a/b c' }, both).database).toEqual({
    poolSize: 4,
    source: '[database] urls',
    urls: ['postgres://u:a%2Fb%20c@one/db', 'postgres://u:a%2Fb%20c@two/db?sslmode=require'],
  })
  expect(load([], {}, urls('postgres:///db?host=/run/postgresql')).database.urls).toEqual([
    'postgres:///db?host=/run/postgresql',
  ])
  const refusal = (env: Record<string, string>, text: string) => {
    try {
      load([], env, text)
    } catch (error) {
      return (error as Error).message
    }
    return ''
  }
  const withPassword = refusal({}, urls('postgres://u@one/db', 'postgres://u:secret@two/db'))
  expect(withPassword).toMatch(/^database\.urls\[1\]: must not contain a password/)
  expect(withPassword).not.toContain('secret')
  expect(refusal({}, urls('mysql://one/db'))).toMatch(/^database\.urls\[0\]: must begin with postgres/)
  expect(refusal({ DATABASE_URL: 'postgres://x/db' }, both)).toMatch(/DATABASE_URL is also set/)
})

test('a location in the file can boot in a fixed time or within a range', () => {
  const boot = (value: string) =>
    load([], {}, `[[location]]\nname = "a-b"\n[location.simulated]\nboot_ms = ${value}`).locations[0]
  expect(boot('0')).toMatchObject({ simulated: { bootMs: [0, 0] } })
  expect(boot('[5, 7]')).toMatchObject({ simulated: { bootMs: [5, 7] } })
})

test('locations in the file can mix engines and name real GPUs', () => {
  const toml = `
      [[location]]
      name = "lab-a"
      engine = "qemu"
      [location.qemu]
      gpus = [{ pci = "0000:41:00.0" }, { model = "A40 48GB PCIe" }]
      [[location]]
      name = "lab-b"
      engine = "incus"
      public_ipv4 = "203.0.113.0/24"
      [location.incus]
      urls = ["https://10.0.0.1:8443"]
      client_cert_file = "c"
      client_key_file = "k"`
  expect(load([], {}, toml).locations).toMatchObject([
    { engine: 'qemu', qemu: { gpus: [{ pci: '0000:41:00.0' }, { model: 'A40 48GB PCIe', count: 1 }] } },
    { engine: 'incus', storage: 'shared', incus: { socket: '', project: 'slipway' } },
  ])
})

const location = '[[location]]\nname = "a-b"\n'
test.each([
  ['[server]\nprot = 1', 'server.prot = 1: unknown key; did you mean server.port?'],
  ['[sever]\nport = 1', 'sever = {"port":1}: unknown key; did you mean server?'],
  ['[[locations]]\nname = "a-b"', /^locations = .*did you mean location\?$/],
  ['[quotas]\na100_80gb_gpus = 1', /did you mean quotas\.a100-80gb_gpus\?/],
  [
    `${location}[location.simulated]\nboot = 1`,
    /^location\[0\]\.simulated\.boot = 1: .* location\[0\]\.simulated\.boot_ms\?/,
  ],
  [
    '[[location]]\nnmae = "a-b"',
    /location\[0\]\.nmae = "a-b": unknown key; did you mean location\[0\]\.name\?/,
  ],
  ['[[location]]\n', 'location[0].name is missing and has no default'],
  [
    '[server]\nport = 70000',
    'server.port = 70000: must be a whole number from 0 to 65535; nearest valid: 65535',
  ],
  ['[server]\nport = "8081"', /^server\.port = "8081": .*; nearest valid: 8081$/],
  ['[server]\nport = 1.5', /server\.port = 1\.5: must be a whole number/],
  ['[server]\nport = true', /^server\.port = true: must be a whole number/],
  [
    '[server]\nrole = "wroker"',
    'server.role = "wroker": must be one of all, api, worker; did you mean "worker"?',
  ],
  ['[server]\nhost = 1', /server\.host = 1: must be a string/],
  ['[server]\nhost = ""', /server\.host = "": must not be empty/],
  [
    '[server]\npublic_url = "example.org"',
    /server\.public_url = "example\.org": must be an http or https URL/,
  ],
  ['[server]\nhost = "0.0.0.0"\nfamily_api = true', /server\.family_api = true: requires TLS/],
  [
    '[server]\nhost = "0.0.0.0"\ntrusted_proxies = ["10.0.0.1"]\npublic_url = "http://gpu.example"\nfamily_api = true',
    /server\.family_api = true: requires TLS/,
  ],
  ['[server]\nfamily_image_aliases = { a = 1 }', /server\.family_image_aliases\.a = 1: must be a string/],
  ['[server]\nfamily_image_aliases = "a"', /server\.family_image_aliases = "a": must be a table/],
  ['[server]\ntrusted_proxies = "10.0.0.0/8"', /server\.trusted_proxies = .*list/],
  ['[server]\ntrusted_proxies = ["::1", "10.0.0.1/8"]', /server\.trusted_proxies\[1\] = "10\.0\.0\.1\/8"/],
  ['server = 1', /^server = 1: must be a table/],
  ['server = 2026-01-01', /^server = .*: must be a table/],
  ['location = "x"', /^location = "x": must be an array of tables, \[\[location\]\]/],
  [
    '[server]\nmetrics_token_env = "NOT_SET"',
    /metrics_token_env = "NOT_SET": this environment variable is not set/,
  ],
  ['[billing]\nprovider = "stirpe"', /did you mean "stripe"/],
  ['[billing]\nprovider = "stripe"', /billing\.stripe_key_env = "STRIPE_API_KEY": .* not set/],
  ['[billing]\nrollup_at_utc = "24:00"', /billing\.rollup_at_utc = "24:00": must be a time of day/],
  ['[operations]\nrenew_ms = 6000', /operations\.renew_ms = 6000: .*lease_ms \(10000\); nearest valid: 5000/],
  ['[webhooks]\nallow_private_ranges = ["fd00::/200"]', /allow_private_ranges\[0\]/],
  ['[[location]]\nname = "Lab 1"', /location\[0\]\.name = "Lab 1": must be a region and a zone/],
  [location + location, /location\[1\]\.name = "a-b": is the name of another/],
  [`${location}engine = "kvm"`, /location\[0\]\.engine = "kvm": must be one of simulated, qemu, incus/],
  [`${location}storage = "locla"`, /must be one of shared, local; did you mean "local"/],
  [
    `${location}public_ipv4 = "198.18.1.0/18"`,
    /location\[0\]\.public_ipv4 = "198\.18\.1\.0\/18": .*host bits are all zero/,
  ],
  [
    `${location}public_ipv4 = "198.18.64.0/18"\n[[location]]\nname = "a-c"`,
    /location\[1\]\.public_ipv4 = .*overlaps/,
  ],
  [
    `${location}[location.qemu]`,
    /location\[0\]\.engine = "simulated": does not allow a table \[location\.qemu\]/,
  ],
  [`${location}[location.simulated]\nboot_ms = [5, 4]`, /boot_ms = \[5,4\]: .*a range such as/],
  [
    `${location}[location.simulated]\nhosts = [{ model = "A100 80GB" }]`,
    /hosts\[0\]\.model = .*did you mean "A100 80GB PCIe"/,
  ],
  [`${location}engine = "qemu"\n[location.qemu]\nscale = 2`, /qemu\.scale = 2: .*nearest valid: 1/],
  [`${location}engine = "incus"\n[location.incus]\nurls = ["https://a"]`, /client_cert_file/],
  ['[[price]]\nmodel = "A40 48GB PCIe"\nusd_per_gpu_hour = -1', /price\[0\]\.usd_per_gpu_hour = -1/],
  ['[server]\nport = ', /^slipway\.toml:2:\d+: /],
])('a configuration error is reported in one line: %j', (toml, message) => {
  const error = problem(toml)
  expect(error).not.toContain('\n')
  if (typeof message === 'string') expect(error).toBe(message)
  else expect(error).toMatch(message)
})

test.each([
  [['--prot', '1'], /unknown flag --prot; did you mean --port\?/],
  [['--no-dmeo'], /did you mean --no-demo\?/],
  [['--port'], /--port requires a value/],
  [['--port='], /--port requires a value/],
  [['--host', '--port', '1'], /--host requires a value/],
  [['--no-demo=yes'], /--no-demo takes no value/],
  [['serve'], /unexpected argument "serve"/],
  [['--port', 'http'], /--port = "http": must be a whole number/],
  [['--port', '-1'], /--port = "-1": .*nearest valid: 0/],
  [['--port=1e3'], /--port = "1e3"/],
  [['--engine', 'qmeu'], /--engine = "qmeu": .*did you mean "qemu"/],
  [['--role=al'], /--role = "al": .*did you mean "all"/],
  [['--config', 'none.toml'], /none\.toml: cannot be read \(ENOENT\)/],
])('a configuration error is reported in one line: %j', (argv, message) =>
  expect(problem('', argv)).toMatch(message),
)

test('an error in the environment names the invalid variable, but shows no password', () => {
  expect(problem('', [], { SLIPWAY_PORT: 'x' })).toMatch(/^SLIPWAY_PORT = "x"/)
  expect(problem('', [], { SLIPWAY_LOG_LEVEL: 'inf' })).toMatch(
    /^SLIPWAY_LOG_LEVEL = "inf": .*did you mean "info"/,
  )
  expect(problem('', [], { DATABASE_URL: 'mysql://u:hunter2@h' })).toMatch(
    /^DATABASE_URL: must begin with postgres/,
  )
  expect(problem('', [], { DATABASE_URL: 'mysql://u:hunter2@h' })).not.toContain('hunter2')
})

test('an empty environment variable counts as unset', () => {
  const names = ['HOST', 'PORT', 'DATA_DIR', 'WORKER_PORT', 'LOG_LEVEL', 'CONFIG', 'SECRET_KEY_FILE']
  const env = Object.fromEntries(names.map((name) => [`SLIPWAY_${name}`, '']))
  expect(load([], { ...env, DATABASE_URL: '', SLIPWAY_STRIPE_API_URL: '' })).toEqual(load([], {}))
})

test('an unreadable configuration file is not treated as missing', () => {
  const denied = () => {
    throw Object.assign(new Error('denied'), { code: 'EACCES' })
  }
  expect(() => loadConfig([], {}, denied)).toThrow('slipway.toml: cannot be read (EACCES)')
})

test('--help and --version work with any file and environment', () => {
  expect(load(['--help', '--port', 'x'], { SLIPWAY_PORT: 'x' }, 'nonsense').command).toBe('help')
  expect(load(['--version'], {}, 'nonsense').command).toBe('version')
  for (const flag of ['port', 'host', 'data-dir', 'engine', 'role', 'config', 'no-demo']) {
    expect(help).toContain(`--${flag}`)
  }
})
