import { existsSync } from 'node:fs'
import { type Browser, chromium, type Page } from 'playwright-core'

/** The headless shell needs a quarter less CPU time; not every distribution has it. */
const shell = '/usr/bin/chromium-headless-shell'
const program = process.env.SLIPWAY_CHROMIUM ?? (existsSync(shell) ? shell : '/usr/bin/chromium')

export function launch(): Promise<Browser> {
  return chromium.launch({
    executablePath: program,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      // Tabs of the console share one process and its compiled scripts.
      '--in-process-gpu',
      '--process-per-site',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      '--no-first-run',
    ],
  })
}

/** Navigates like a link, without reloading the console. */
export async function visit(page: Page, path: string): Promise<void> {
  await page.evaluate((path) => {
    // A change of only the query does not replace the page.
    const isLeft = new URL(path, location.href).pathname !== location.pathname
    if (isLeft) for (const heading of document.querySelectorAll('h1')) heading.dataset.left = ''
    history.pushState(null, '', path)
  }, path)
  await page.locator('h1:not([data-left])').waitFor()
  await waitUntilLoaded(page)
}

/** Waits until the page has loaded its data. */
export async function waitUntilLoaded(page: Page): Promise<void> {
  await page.getByRole('heading', { level: 1 }).waitFor()
  await page.getByRole('status', { name: 'Loading' }).first().waitFor({ state: 'detached' })
}
