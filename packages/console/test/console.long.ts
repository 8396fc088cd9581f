import { afterAll } from 'vitest'
import './suites/dev-mode.ts'
import './suites/large-lists.ts'
import { closeShared } from './support/browser.ts'

// Suites that are too slow for `npm test`.
afterAll(closeShared)
