import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '@slipway/testing/root.ts'
import axe from 'axe-core'
import type { Page } from 'playwright-core'

/** Screenshots are optional: no test reads them, and they take a fifth of the browser's time. */
const takesScreenshots = Boolean(process.env.SLIPWAY_SCREENSHOTS)
const screenshots = join(root, 'artifacts')
export const wide = { width: 1280, height: 860 }

/** Returns the violations of all axe rules except AAA and deprecated ones, as text. */
async function findingsOf(page: Page, part: string, isOnlyColour: boolean): Promise<string[]> {
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(axe.source)
  const violations = await page.evaluate(
    async ({ part, isOnlyColour }) => {
      const { axe } = window as unknown as { axe: typeof import('axe-core') }
      const excluded = /^(wcag2aaa|deprecated)$/
      const rules = axe
        .getRules(isOnlyColour ? ['cat.color'] : [])
        .filter(({ tags }) => !tags.some((tag) => excluded.test(tag)))
      const { violations } = await axe.run(part, {
        runOnly: { type: 'rule', values: rules.map(({ ruleId }) => ruleId) },
        resultTypes: ['violations'],
        preload: false,
        // Selectors take as long as the checks themselves.
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
  if (takesScreenshots) await waitForRendering(page)
  await capture(page, name)
}

/** Captures the page as it is rendered, which takes half the time of Playwright's screenshots. */
async function capture(page: Page, name: string): Promise<void> {
  if (!takesScreenshots) return
  const session = await page.context().newCDPSession(page)
  const { data } = await session.send('Page.captureScreenshot', { format: 'png', optimizeForSpeed: true })
  await session.detach()
  mkdirSync(screenshots, { recursive: true })
  writeFileSync(join(screenshots, `${name}.png`), Buffer.from(data, 'base64'))
}

/** Returns the axe violations of the page, or of a part of it, in both themes. */
export async function inBothThemes(page: Page, name: string, part = 'html'): Promise<string[]> {
  const findings: string[] = []
  for (const theme of ['light', 'dark']) {
    await setTheme(page, theme)
    await waitForRendering(page)
    // The themes differ only in colors.
    const found = await findingsOf(page, part, theme === 'dark')
    findings.push(...found.map((finding) => `${name} ${theme}: ${finding}`))
    await capture(page, `${name}-${theme}`)
  }
  await setTheme(page, 'light')
  return findings
}

/** Waits until observers, listeners and transitions have finished after a change of size or theme. */
async function waitForRendering(page: Page): Promise<void> {
  const problem = await page.evaluate(async (limitMs) => {
    const moving = () =>
      document.getAnimations().filter(({ effect }) => effect?.getComputedTiming().endTime !== Infinity)
    const startedAt = performance.now()
    let before = ''
    for (let stillFrames = 0; stillFrames < 3; ) {
      // A page in the background gets no frames.
      await Promise.race([new Promise(requestAnimationFrame), new Promise((done) => setTimeout(done, 1_000))])
      const now = document.body.outerHTML
      if (performance.now() - startedAt > limitMs) {
        let at = 0
        while (at < now.length && now[at] === before[at]) at++
        const targets = moving().map(({ effect }) =>
          (effect as KeyframeEffect).target?.outerHTML.slice(0, 300),
        )
        return [document.visibilityState, `changed: ${now.slice(at, at + 300)}`, ...targets].join('\n')
      }
      stillFrames = now === before && moving().length === 0 ? stillFrames + 1 : 0
      before = now
    }
  }, 60_000)
  if (problem) throw new Error(`The page ${page.url()} keeps changing:\n${problem}`)
}

export const setTheme = (page: Page, theme: string) =>
  page.evaluate((wanted) => {
    document.documentElement.dataset.theme = wanted
  }, theme)

/** Returns a finding if the page is too wide for a narrow screen. */
export async function onNarrowScreen(page: Page, name: string): Promise<string[]> {
  await page.setViewportSize({ width: 390, height: 1600 })
  const overflowOf = () => {
    const content = document.querySelector('#content') ?? document.documentElement
    return content.scrollWidth - content.clientWidth
  }
  // Some parts are resized after the page.
  await page.waitForFunction(`(${overflowOf})() <= 0`, undefined, { timeout: 5_000 }).catch(() => {})
  const overflow = await page.evaluate(overflowOf)
  await screenshot(page, `${name}-narrow`)
  await page.setViewportSize(wide)
  return overflow > 0 ? [`${name} narrow: ${overflow} px too wide`] : []
}

/** Returns a finding if an open dialog or menu does not fit on a phone. */
export async function openOnNarrowScreen(page: Page, name: string, part: string): Promise<string[]> {
  const width = 390
  await page.setViewportSize({ width, height: 844 })
  await waitForRendering(page)
  const popup = page.locator(part).first()
  const box = (await popup.boundingBox())!
  const overflow = await popup.evaluate((element) => element.scrollWidth - element.clientWidth)
  await capture(page, `${name}-narrow`)
  await page.setViewportSize(wide)
  const isOutside = box.x < 0 || box.x + box.width > width
  return isOutside || overflow > 0 ? [`${name} narrow: does not fit`] : []
}
