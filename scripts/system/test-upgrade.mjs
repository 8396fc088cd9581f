// npm run test:upgrade [commit]: replaces the processes of an earlier version one by one under load, on one
// database, and checks that no request fails. The default commit is the released one.
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build } from '../build.mjs'
import { ensureInstalled, root } from '../install.mjs'
import { phase } from '../phase.mjs'
import { until } from './container.mjs'
import { Load } from './load.mjs'
import { ServerProcess } from './server-process.mjs'

/** The number of requests that each running server must serve in each phase. */
const requestsPerPhase = 150

const { commit: released } = JSON.parse(readFileSync(join(root, 'packages/server/released.json'), 'utf8'))
const commit = process.argv[2] ?? released
if (spawnSync('git', ['cat-file', '-e', `${commit}^{commit}`], { cwd: root }).status !== 0) {
  console.log(`Skipped: the history of this checkout does not contain ${commit}.`)
  process.exit(0)
}

ensureInstalled('run')
await build()
const earlier = join(root, '.cache/upgrade')
phase(`Building ${commit.slice(0, 8)}`, () => buildEarlier())
const scratch = mkdtempSync(join(tmpdir(), 'slipway-upgrade-'))
const processes = []

try {
  await replaceOneByOne()
} catch (error) {
  for (const each of processes) for (const line of each.errors.slice(0, 3)) console.error(line)
  throw error
} finally {
  for (const each of processes) await each.stop()
  rmSync(scratch, { recursive: true })
  execFileSync('git', ['worktree', 'remove', '--force', earlier], { cwd: root })
}

function buildEarlier() {
  if (existsSync(earlier)) execFileSync('git', ['worktree', 'remove', '--force', earlier], { cwd: root })
  const quietly = { cwd: earlier, stdio: ['ignore', 'ignore', 'inherit'] }
  execFileSync('git', ['worktree', 'add', '--detach', earlier, commit], { cwd: root, stdio: 'ignore' })
  execFileSync(
    'npm',
    ['ci', '--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'],
    quietly,
  )
  const script = `await (await import('./scripts/build.mjs')).build()`
  execFileSync(process.execPath, ['--input-type=module', '-e', script], quietly)
}

async function replaceOneByOne() {
  const config = join(scratch, 'slipway.toml')
  writeFileSync(config, configuration())
  const start = async (checkout) => {
    const server = new ServerProcess(checkout, ['--data-dir', join(scratch, 'data'), '--config', config])
    processes.push(server)
    await server.ready()
    return server
  }
  const oldServers = [await start(earlier), await start(earlier)]
  const load = new Load(JSON.parse(readFileSync(join(scratch, 'data/credentials.json'), 'utf8')))
  for (const server of oldServers) load.add(server.url)
  load.start(6)
  await load.waitUntilServed(oldServers, requestsPerPhase)
  console.log('ok  two processes of the earlier version serve requests')

  const newServers = [await start(root)]
  load.add(newServers[0].url)
  await load.waitUntilServed([...oldServers, ...newServers], requestsPerPhase)
  console.log('ok  both versions serve requests on the new schema')

  for (const old of oldServers) {
    await load.remove(old.url)
    assert.equal(await old.stop(), 0)
    if (newServers.length < oldServers.length) {
      newServers.push(await start(root))
      load.add(newServers.at(-1).url)
    }
    await load.waitUntilServed(newServers, requestsPerPhase)
  }
  await load.stop()
  const unexpected = load.failures.filter((failure) => !isKnown(failure, oldServers))
  assert.deepEqual(unexpected, [])
  const known = load.failures.length
  if (known > 0)
    console.log(
      `Known problem: ${known} requests got status 500 from the earlier version, which does not prepare statements again after a migration.`,
    )
  const states = await until('all operations have ended', () => load.endStates())
  assert.deepEqual(states, { SUCCEEDED: load.accepted.length })
  console.log(
    `ok  all processes were replaced: ${load.count} requests, ${known > 0 ? 'no others' : 'none'} failed, ${load.accepted.length} operations`,
  )
}

/**
 * Returns whether a failure is a known problem of versions up to 0.1.0: they do not repeat a statement that was
 * prepared before a migration changed its columns.
 */
function isKnown({ status, text }, oldServers) {
  const handles = ['grep', '--quiet', 'isOutdatedPlan', commit, '--', 'packages/server/src']
  if (status !== 500 || spawnSync('git', handles, { cwd: root }).status === 0) return false
  const { request_id } = JSON.parse(text)
  return oldServers.some(({ errors }) =>
    errors.some(
      (line) => line.includes(request_id) && line.includes('cached plan must not change result type'),
    ),
  )
}

function configuration() {
  return `[limits]
requests_per_second = 100000
burst = 100000
[[location]]
name = "us-east1-a"
public_ipv4 = "198.18.0.0/18"
[location.simulated]
boot_ms = 50
quarantine_ms = 50
hosts = [{ count = 20, model = "A100 40GB PCIe", gpus = 8 }]
`
}
