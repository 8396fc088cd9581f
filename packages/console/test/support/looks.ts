import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '@slipway/testing/root.ts'
import axe from 'axe-core'
import type { Page } from 'playwright-core'

/** No test reads the screenshots, and to take them is a fifth of the browser's work. */
const takesScreenshots = Boolean(process.env.SLIPWAY_SCREENSHOTS)
const screenshots = join(root, 'artifacts')
export const wide = { width: 1280, height: 860 }

/** Returns everything that axe finds, by all of its rules but those of AAA and those that it has given up, in words. */
async function findingsOf(page: Page, part: string, isOnlyColour: boolean): Promise<string[]> {
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(axe.source)
  const violations = await page.evaluate(
    async ({ part, isOnlyColour }) => {
      const { axe } = window as unknown as { axe: typeof import('axe-core') }
      const left = /^(wcag2aaa|deprecated)$/
      const rules = axe
        .getRules(isOnlyColour ? ['cat.color'] : [])
        .filter(({ tags }) => !tags.some((tag) => left.test(tag)))
      const { violations } = await axe.run(part, {
        runOnly: { type: 'rule', values: rules.map(({ ruleId }) => ruleId) },
        resultTypes: ['violations'],
        preload: false,
        // To find a selector for each element takes as long as to look at it.
        selectors: false,
      })
      return violations.map(({ id, nodes }) => ({
        id,
        nodes: nodes.slice(0, 3).map(({ html, failureSummary }) => `${html} ${failureSummary}`),
      }))
    },
    { part, isOnlyColour },
  )
  return violations.map(({ id, nodes }) => `${id}: ${nodes.join(' | ')}`)
}

/** Takes a screenshot if SLIPWAY_SCREENSHOTS is set. */
export async function screenshot(page: Page, name: string): Promise<void> {
  if (takesScreenshots) await drawn(page)
  await capture(page, name)
}

/** Takes the page as it is drawn, which is half the work of Playwright's own screenshots. */
async function capture(page: Page, name: string): Promise<void> {
  if (!takesScreenshots) return
  const session = await page.context().newCDPSession(page)
  const { data } = await session.send('Page.captureScreenshot', { format: 'png', optimizeForSpeed: true })
  await session.detach()
  mkdirSync(screenshots, { recursive: true })
  writeFileSync(join(screenshots, `${name}.png`), Buffer.from(data, 'base64'))
}

/** Returns what axe says of the page, or of a part of it, in each theme. */
export async function inBothThemes(page: Page, name: string, part = 'html'): Promise<string[]> {
  const findings: string[] = []
  for (const theme of ['light', 'dark']) {
    await setTheme(page, theme)
    await drawn(page)
    // Between the themes nothing but the colours differs.
    const found = await findingsOf(page, part, theme === 'dark')
    findings.push(...found.map((finding) => `${name} ${theme}: ${finding}`))
    await capture(page, `${name}-${theme}`)
  }
  await setTheme(page, 'light')
  return findings
}

/**
 * Waits until the page holds still: what a new size or theme changes by observers and listeners comes some frames later,
 * and the end of a transition later still.
 */
const drawn = (page: Page) =>
  page.evaluate(async () => {
    const isMoving = () =>
      document.getAnimations().some(({ effect }) => effect?.getComputedTiming().endTime !== Infinity)
    let before = ''
    for (let stillFrames = 0; stillFrames < 3; ) {
      await new Promise(requestAnimationFrame)
      const now = document.body.outerHTML
      stillFrames = now === before && !isMoving() ? stillFrames + 1 : 0
      before = now
    }
  })

export const setTheme = (page: Page, theme: string) =>
  page.evaluate((wanted) => {
    document.documentElement.dataset.theme = wanted
  }, theme)

/** Returns what is too wide for a narrow screen. */
export async function onNarrowScreen(page: Page, name: string): Promise<string[]> {
  await page.setViewportSize({ width: 390, height: 1600 })
  const overflowOf = () => {
    const content = document.querySelector('#content') ?? document.documentElement
    return content.scrollWidth - content.clientWidth
  }
  // Some parts learn of the new width only after the page has it.
  await page.waitForFunction(`(${overflowOf})() <= 0`, undefined, { timeout: 5_000 }).catch(() => {})
  const overflow = await page.evaluate(overflowOf)
  await screenshot(page, `${name}-narrow`)
  await page.setViewportSize(wide)
  return overflow > 0 ? [`${name} narrow: ${overflow} px too wide`] : []
}

/** Returns what of an open dialog or menu cannot be seen on a phone. */
export async function openOnNarrowScreen(page: Page, name: string, part: string): Promise<string[]> {
  const width = 390
  await page.setViewportSize({ width, height: 844 })
  await drawn(page)
  const popup = page.locator(part).first()
  const box = (await popup.boundingBox())!
  const overflow = await popup.evaluate((element) => element.scrollWidth - element.clientWidth)
  await capture(page, `${name}-narrow`)
  await page.setViewportSize(wide)
  const isOutside = box.x < 0 || box.x + box.width > width
  return isOutside || overflow > 0 ? [`${name} narrow: does not fit`] : []
}
