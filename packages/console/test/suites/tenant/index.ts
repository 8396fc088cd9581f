import { describe } from 'vitest'
import { isBrowserMissing } from '../../support/browser.ts'
import { vmCreationTests } from './create.ts'
import { projectTests } from './project.ts'
import { useTenant } from './tenant.ts'
import { vmTests } from './vms.ts'

// The files share one tab, because signing in takes longer than most tests.
describe.skipIf(isBrowserMissing)('a tenant in the console', () => {
  const tenant = useTenant()
  vmCreationTests(tenant)
  vmTests(tenant)
  projectTests(tenant)
})
