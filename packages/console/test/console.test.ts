import { afterAll } from 'vitest'
import './suites/capacity.ts'
import './suites/controls.ts'
import './suites/destructive.ts'
import './suites/dev-mode.ts'
import './suites/live.ts'
import './suites/costs.ts'
import './suites/newcomer.ts'
import './suites/operator/index.ts'
import './suites/owner.ts'
import './suites/pages.ts'
import './suites/session.ts'
import './suites/storage.ts'
import './suites/tenant/index.ts'
import './suites/content.ts'
import { closeShared } from './support/browser.ts'

// All suites are in one file, so that they run in one worker with one service and one browser.
afterAll(closeShared)
