// npm test [-- <path> …]: installs what the suites need, runs them, and ends with one line of counts.
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, normalize } from 'node:path'
import { ensureInstalled, root } from './install.mjs'
import { exitWithMessage } from './phase.mjs'
import { ensureSystemPackages } from './system-packages.mjs'

ensureInstalled('all')
// The test files of npm run test:vm end with .vm.ts, those of test:cluster with .cluster.ts. The configuration
// has the same word in its name.
const kind = /vitest\.(\w+)\.config\.ts/.exec(process.argv.join(' '))?.[1] ?? 'test'
const filters = process.argv
  .slice(2)
  .filter((word, index, words) => !word.startsWith('-') && !words[index - 1]?.startsWith('-'))
const { missing, required } = ensureSystemPackages(
  `.${kind}.ts`,
  filters.map((filter) => normalize(filter)),
)
if (required.length > 0 && process.env.CI === 'true')
  exitWithMessage(`Missing programs, which are required with CI=true: ${required.join(', ')}`)

const reportDir = mkdtempSync(join(tmpdir(), 'slipway-test-'))
const report = join(reportDir, 'report.json')
process.exitCode = await runVitest(process.argv.slice(2))
printCounts()
rmSync(reportDir, { recursive: true })

function runVitest(extraArgs) {
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`]
  const vitest = join(root, 'node_modules/vitest/vitest.mjs')
  const child = spawn(process.execPath, [vitest, 'run', ...reporters, ...extraArgs], {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, SLIPWAY_MISSING: missing.join(',') },
  })
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal))
  return new Promise((resolve) => child.once('close', (code) => resolve(code ?? 1)))
}

function printCounts() {
  let results
  try {
    results = JSON.parse(readFileSync(report, 'utf8'))
  } catch {
    process.exitCode ||= 1
    console.log('0 passed, 1 failed')
    return
  }
  // A file that cannot be loaded has no failed test, so it is counted separately.
  const brokenFiles = results.testResults.filter(
    ({ status, assertionResults }) =>
      status === 'failed' && assertionResults.every((assertion) => assertion.status !== 'failed'),
  )
  // A run can also fail because of an uncaught error outside of any test.
  const failed = results.numFailedTests + brokenFiles.length || (process.exitCode ? 1 : 0)
  const skipped = results.numPendingTests + results.numTodoTests
  if (failed > 0) process.exitCode ||= 1
  console.log(
    `${results.numPassedTests} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`,
  )
}
