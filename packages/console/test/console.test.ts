import { afterAll } from 'vitest'
import './suites/activity.ts'
import './suites/capacity.ts'
import './suites/destructive.ts'
import './suites/live.ts'
import './suites/metrics.ts'
import './suites/costs.ts'
import './suites/newcomer.ts'
import './suites/requests.ts'
import './suites/storage.ts'
import './suites/tenant/index.ts'
import { closeShared } from './support/browser.ts'

// These suites are in one file, so that they run in one worker with one service and one browser. console-pages.test.ts has
// the other suites, so that the two files use both cores.
afterAll(closeShared)
