import { spawnSync } from 'node:child_process'
import { accessSync, constants, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { isAbsolute, join } from 'node:path'
import { root } from './install.mjs'

const maxLockWaitMs = 600_000
const lockPollMs = 1_000

const cloudImage = 'packages/server/test/engines/qemu-cloud-image'
const incusSuites = [
  'packages/server/test/engines/incus/',
  'packages/server/test/operate/incus-hosts',
  'packages/server/test/operate/incus-start',
]
const incusGuests = 'packages/server/test/engines/incus/guests'
const qemuSuites = ['packages/server/test/engines/qemu', 'packages/server/test/attacks/qemu']

/**
 * Programs that some suites need. An entry applies only if the path of a test file begins with one of its
 * `suites`.
 */
const testPrograms = [
  { name: 'curl', binary: 'curl', packages: ['curl'], suites: ['packages/server/test/start'] },
  { name: 'chromium', binary: 'chromium', packages: ['chromium'], suites: ['packages/console/test/'] },
  {
    name: 'chromium-headless-shell',
    binary: '/usr/bin/chromium-headless-shell',
    packages: ['chromium-headless-shell'],
    suites: ['packages/console/test/'],
    isOptional: true,
    fallback: 'chromium',
  },
  {
    name: 'qemu',
    binary: process.arch === 'arm64' ? 'qemu-system-aarch64' : 'qemu-system-x86_64',
    packages: [process.arch === 'arm64' ? 'qemu-system-arm' : 'qemu-system-x86', 'qemu-utils'],
    suites: [...qemuSuites, incusGuests],
  },
  {
    name: 'qemu-img',
    binary: 'qemu-img',
    packages: ['qemu-utils'],
    suites: ['packages/server/test/operate/incus-start'],
  },
  { name: 'mmdebstrap', binary: 'mmdebstrap', packages: ['mmdebstrap'], suites: [cloudImage] },
  // Programs that create and boot a UEFI image. They are listed one by one, because a machine may already
  // have some of them.
  ...[
    { name: 'mtools', binary: 'mcopy', packages: ['mtools'] },
    { name: 'mkfs.vfat', binary: '/sbin/mkfs.vfat', packages: ['dosfstools'] },
    { name: 'sfdisk', binary: '/sbin/sfdisk', packages: ['fdisk'] },
    { name: 'objcopy', binary: 'objcopy', packages: ['binutils'] },
  ].map((program) => ({ ...program, suites: [cloudImage, incusGuests] })),
  {
    name: 'uefi',
    binary: process.arch === 'arm64' ? '/usr/share/AAVMF/AAVMF_CODE.fd' : '/usr/share/OVMF/OVMF_CODE_4M.fd',
    packages: [process.arch === 'arm64' ? 'qemu-efi-aarch64' : 'ovmf'],
    suites: [cloudImage, incusGuests],
  },
  { name: 'mkisofs', binary: 'mkisofs', packages: ['genisoimage'], suites: [incusGuests] },
  {
    name: 'nginx',
    binary: '/usr/sbin/nginx',
    packages: ['nginx-light'],
    suites: ['packages/server/test/http/proxies'],
  },
  {
    name: 'caddy',
    binary: '/usr/bin/caddy',
    packages: ['caddy'],
    suites: ['packages/server/test/http/proxies'],
  },
  {
    name: 'promtool',
    binary: 'promtool',
    packages: ['prometheus'],
    suites: ['packages/server/test/operate/monitoring', 'packages/server/test/metrics/vm-metrics'],
    isOptional: true,
  },
  { name: 'tmux', binary: 'tmux', packages: ['tmux'], suites: ['packages/cli/test/terminal'] },
  { name: 'zsh', binary: 'zsh', packages: ['zsh'], suites: ['packages/cli/test/completion'] },
  { name: 'fish', binary: 'fish', packages: ['fish'], suites: ['packages/cli/test/completion'] },
  {
    name: 'incus',
    binary: '/usr/libexec/incus/incusd',
    packages: ['incus-base', 'incus-client', 'dnsmasq-base', 'nftables', 'iproute2', 'busybox-static'],
    suites: incusSuites,
    // Incus is in backports of Debian 12 and in main of Debian 13. If the mirror has no backports, the tests
    // are skipped and print the reason.
    backports: 'bookworm',
    isOptional: true,
  },
  {
    name: 'bird',
    binary: '/usr/sbin/bird',
    packages: ['bird2'],
    suites: ['packages/server/test/engines/incus/bgp'],
  },
  {
    name: 'ethtool',
    binary: '/usr/sbin/ethtool',
    packages: ['ethtool'],
    suites: ['packages/server/test/engines/incus/ovn'],
  },
  {
    name: 'ssh',
    binary: 'ssh',
    packages: ['openssh-client'],
    suites: [...qemuSuites, ...incusSuites],
  },
]

/**
 * Installs the programs that the test files with this ending need, if this process is allowed to. Returns the
 * names of the programs that are still missing, and which of them are required. With filters, only files
 * whose path contains one of them count.
 */
export function ensureSystemPackages(ending = '.test.ts', filters = []) {
  const tests = readdirSync(join(root, 'packages'))
    .flatMap((name) => filesUnder(`packages/${name}/test`))
    .filter((path) => path.endsWith(ending))
    .filter((path) => filters.length === 0 || filters.some((filter) => join(root, path).includes(filter)))
  const isNeeded = ({ suites }) => suites.some((prefix) => tests.some((path) => path.startsWith(prefix)))
  const missing = testPrograms.filter((program) => isNeeded(program) && !isOnPath(program.binary))
  if (missing.length === 0) return { missing: [], required: [] }
  const packages = missing.flatMap((program) => program.packages)
  if (process.getuid?.() === 0 && existsSync('/etc/debian_version')) {
    console.error(`Installing ${packages.join(', ')} (apt-get) …`)
    const release = /VERSION_CODENAME=(\w+)/.exec(readFileSync('/etc/os-release', 'utf8'))?.[1]
    const isBackport = ({ backports }) => backports !== undefined && backports === release
    apt('update')
    if (missing.some(isBackport) && addBackports(release)) apt('update')
    const ordinary = missing.filter((program) => !isBackport(program))
    // Optional programs are installed separately, because apt installs nothing if one package name is
    // unknown.
    const needed = ordinary.filter(({ isOptional }) => !isOptional).flatMap((program) => program.packages)
    const optional = ordinary.filter(({ isOptional }) => isOptional).map((program) => program.packages)
    for (const packages of [needed, ...optional])
      if (packages.length > 0) apt('install', '-y', '--no-install-recommends', ...packages)
    const backported = missing.filter(isBackport).flatMap((program) => program.packages)
    if (backported.length > 0)
      apt('install', '-y', '--no-install-recommends', '-t', `${release}-backports`, ...backported)
  }
  const stillMissing = missing.filter((program) => !isOnPath(program.binary))
  for (const { name, packages, suites, fallback } of stillMissing)
    console.error(
      fallback
        ? `${name} is missing: ${suites.join(', ')} uses ${fallback}, which is slower`
        : `${name} is missing: install ${packages.join(' ')} to run ${suites.join(', ')}`,
    )
  const namesOf = (programs) => programs.map(({ name }) => name)
  return {
    missing: namesOf(stillMissing),
    required: namesOf(stillMissing.filter(({ isOptional }) => !isOptional)),
  }
}

/**
 * Adds the backports suite of the mirror that the machine already uses, and returns whether it was added.
 * apt-get lists only mirrors whose package lists have been downloaded.
 */
function addBackports(release) {
  const listed = spawnSync('apt-get', ['indextargets', '--format', '$(RELEASE) $(REPO_URI)'])
  const mirrors = new Map(
    String(listed.stdout ?? '')
      .split('\n')
      .map((line) => line.split(' ')),
  )
  const suite = `${release}-backports`
  if (!mirrors.has(release) || mirrors.has(suite)) return false
  writeFileSync(
    '/etc/apt/sources.list.d/slipway-backports.list',
    `deb ${mirrors.get(release)} ${suite} main\n`,
  )
  return true
}

/**
 * Runs apt-get. If another process holds a package lock, tries again until the lock is free, because apt-get itself
 * waits only for some locks.
 */
function apt(...args) {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C.UTF-8' }
  const given = ['-qq', '-o', 'DPkg::Lock::Timeout=600', '-o', 'Acquire::Retries=3', ...args]
  const until = performance.now() + maxLockWaitMs
  for (;;) {
    const { stderr } = spawnSync('apt-get', given, { stdio: ['ignore', 2, 'pipe'], env, encoding: 'utf8' })
    process.stderr.write(stderr ?? '')
    if (!/could not get lock|unable to lock/i.test(stderr ?? '') || performance.now() > until) return
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, lockPollMs)
  }
}

function isOnPath(binary) {
  if (isAbsolute(binary)) return existsSync(binary)
  return (process.env.PATH ?? '').split(':').some((dir) => {
    try {
      accessSync(join(dir, binary), constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}

function filesUnder(dir) {
  if (!existsSync(join(root, dir))) return []
  return readdirSync(join(root, dir), { recursive: true }).map((name) => join(dir, name))
}
