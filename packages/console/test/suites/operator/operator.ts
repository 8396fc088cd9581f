import type { Browser, Page } from 'playwright-core'
import { beforeEach } from 'vitest'
import { modalOf, useConsole, visit } from '../../support/browser.ts'
import type { Service } from '../../support/service.ts'

/** A signed-in operator, whose tab shows the fleet map when a test begins, and the parts of the page that tests use. */
export type Operator = ReturnType<typeof useOperator>

export function useOperator() {
  const scene = useConsole('Operator', 'operator')
  const current = {} as { service: Service; browser: Browser; page: Page }
  beforeEach(async () => {
    const { service, browser, page } = scene
    Object.assign(current, { service, browser, page })
    await visit(page, '/fleet')
  })
  const link = (navigation: string, name: string) =>
    current.page.getByRole('navigation', { name: navigation }).getByRole('link', { name })
  return Object.assign(current, {
    main: () => current.page.getByRole('main'),
    dialog: () => modalOf(current.page),
    leaveHost: () => link('Breadcrumbs', 'Fleet').click(),
    openTabOf: (name: string) => link('Fleet', name).click(),
  })
}
