import { afterAll } from 'vitest'
import './suites/craft.ts'
import './suites/danger.ts'
import './suites/live.ts'
import './suites/money.ts'
import './suites/newcomer.ts'
import './suites/operator.ts'
import './suites/owner.ts'
import './suites/pages.ts'
import './suites/session.ts'
import './suites/tenant.ts'
import './suites/truth.ts'
import { closeShared } from './support/browser.ts'

// One file, so that all suites run in one worker, on one service and in one browser.
afterAll(closeShared)
