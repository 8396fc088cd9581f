import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, statfsSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { Config } from '../config/index.ts'
import { type Finding, ok, problem, warning } from '../engines/incus/operate/finding.ts'
import type { DatabaseFacts } from '../postgres/examine.ts'

const gib = 1024 ** 3
const minFreeBytes = 2 * gib
const minDescriptors = 8_192
/** The service reports a clock jump of at least this size. */
const maxClockDifferenceMs = 5_000

export async function machineFindings(config: Config, facts: DatabaseFacts | undefined): Promise<Finding[]> {
  return [
    dataDirFinding(config.server.dataDir),
    diskFinding(config.server.dataDir),
    descriptorFinding(),
    clockFinding(facts),
  ]
}

function dataDirFinding(dataDir: string): Finding {
  const step = 'data directory'
  const stats = statSync(dataDir, { throwIfNoEntry: false })
  if (!stats) return ok(step, `${dataDir} does not exist yet; the first start creates it`)
  const uid = process.getuid?.()
  if (stats.uid !== uid)
    return warning(
      step,
      `${dataDir} belongs to another user (uid ${stats.uid}; this command runs as uid ${uid})`,
      'run this command as the user of the service, for example: runuser -u slipway -- slipway-server doctor',
    )
  if ((stats.mode & 0o022) !== 0)
    return problem(step, `other users can write to ${dataDir}`, `chmod go-w ${dataDir}`)
  return ok(step, dataDir)
}

function diskFinding(dataDir: string): Finding {
  const step = 'disk'
  let existing = resolve(dataDir)
  while (!existsSync(existing)) existing = dirname(existing)
  const { bavail, blocks, bsize } = statfsSync(existing)
  const [free, total] = [bavail * bsize, blocks * bsize]
  const text = `${(free / gib).toFixed(1)} GiB of ${(total / gib).toFixed(1)} GiB are free for ${dataDir}`
  const advice =
    'a full disk stops the embedded database and all changes: free space, or move the data directory'
  if (free < minFreeBytes) return problem(step, text, advice)
  return free < total / 10 ? warning(step, text, advice) : ok(step, text)
}

function descriptorFinding(): Finding {
  const step = 'file descriptors'
  const limits = readFileSync('/proc/self/limits', 'utf8')
  const limit = /^Max open files +(\S+)/m.exec(limits)?.[1] ?? 'unlimited'
  if (limit === 'unlimited' || Number(limit) >= minDescriptors) return ok(step, `limit ${limit}`)
  return warning(
    step,
    `limit ${limit}: half of it is for client connections`,
    'set LimitNOFILE=65536 in the systemd unit, or run ulimit -n 65536 before the start',
  )
}

function clockFinding(facts: DatabaseFacts | undefined): Finding {
  const step = 'clock'
  const advice = 'install chrony or systemd-timesyncd on this machine and on the database server'
  const difference = facts ? Math.abs(Date.now() - facts.nowMs) : 0
  if (difference > maxClockDifferenceMs)
    return problem(
      step,
      `the clocks of this machine and of the database differ by ${Math.round(difference / 1000)} s`,
      advice,
    )
  const { stdout, status } = spawnSync('timedatectl', ['show', '--property=NTPSynchronized', '--value'], {
    encoding: 'utf8',
    timeout: 5_000,
  })
  if (status === 0 && stdout.trim() === 'no') return warning(step, 'not synchronized by NTP', advice)
  return ok(step, status === 0 ? 'synchronized by NTP' : 'agrees with the database')
}
