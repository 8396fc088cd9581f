import { existsSync } from 'node:fs'
import { type Browser, chromium, type Page } from 'playwright-core'

/** Chromium without windows takes a quarter less of the processor; not every distribution has it. */
const shell = '/usr/bin/chromium-headless-shell'
const program = process.env.SLIPWAY_CHROMIUM ?? (existsSync(shell) ? shell : '/usr/bin/chromium')

export function launch(): Promise<Browser> {
  return chromium.launch({
    executablePath: program,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      // Fewer processes: those of a console's tabs share one, with the scripts that it has compiled.
      '--in-process-gpu',
      '--process-per-site',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      '--no-first-run',
    ],
  })
}

/** Goes to another page as a link does, without loading the console anew. */
export async function visit(page: Page, path: string): Promise<void> {
  await page.evaluate((path) => {
    // With another query, or none at all, the page stays.
    const isLeft = new URL(path, location.href).pathname !== location.pathname
    if (isLeft) for (const heading of document.querySelectorAll('h1')) heading.dataset.left = ''
    history.pushState(null, '', path)
  }, path)
  await page.locator('h1:not([data-left])').waitFor()
  await settled(page)
}

/** Waits until the page shows what it has read. */
export async function settled(page: Page): Promise<void> {
  await page.getByRole('heading', { level: 1 }).waitFor()
  await page.getByRole('status', { name: 'Loading' }).first().waitFor({ state: 'detached' })
}
