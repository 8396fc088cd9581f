import type { Page } from 'playwright-core'
import { beforeEach } from 'vitest'
import { createVm, modalOf, result, takeProject, useConsole, visit } from '../../support/browser.ts'
import type { Service } from '../../support/service.ts'

/** A tenant with a project for each test, and the parts of the page that tests use. */
export type Tenant = ReturnType<typeof useTenant>

export function useTenant() {
  const scene = useConsole('Tenant')
  const current = {} as { service: Service; page: Page; project_id: string }
  beforeEach(() => {
    const { service, page } = scene
    Object.assign(current, { service, page, project_id: takeProject(service) })
  })
  const open = (path: string) => visit(current.page, `/projects/${current.project_id}${path}`)
  return Object.assign(current, {
    main: () => current.page.getByRole('main'),
    dialog: () => modalOf(current.page),
    summary: () => current.page.getByRole('complementary', { name: 'Summary' }),
    result: (words: string | RegExp) => result(current.page, words),
    open,
    openVm: async (name: string, type: string) => {
      const vm = await createVm(current.service, name, type, current.project_id)
      await open(`/vms/${vm.id}`)
      await current.page.getByRole('heading', { level: 1, name }).waitFor()
    },
  })
}
