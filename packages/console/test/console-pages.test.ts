import { afterAll } from 'vitest'
import './suites/content.ts'
import './suites/controls.ts'
import './suites/operator/index.ts'
import './suites/owner.ts'
import './suites/pages.ts'
import './suites/session.ts'
import { closeShared } from './support/browser.ts'

// See console.test.ts.
afterAll(closeShared)
