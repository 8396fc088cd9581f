import { describe } from 'vitest'
import { isBrowserMissing } from '../../support/browser.ts'
import { fleetTests } from './fleet.ts'
import { useOperator } from './operator.ts'
import { serviceTests } from './service.ts'

// The files share one tab, because signing in takes longer than most tests.
describe.skipIf(isBrowserMissing)('an operator in the console', () => {
  const operator = useOperator()
  fleetTests(operator)
  serviceTests(operator)
})
