import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient, logIn, type Vm } from '@slipway/sdk'
import { eventually } from '@slipway/testing/eventually.ts'
import { startRealServer } from '@slipway/testing/real-server.ts'
import { root } from '@slipway/testing/root.ts'
import { sshKey } from '@slipway/testing/ssh-key.ts'
import { openTerminal } from '@slipway/testing/terminal.ts'
import type { Browser, Page } from 'playwright-core'
import { launch, visit, waitUntilLoaded } from '../test/support/browser-program.ts'

/** The limit of all pictures together, because every reader of the README downloads them. */
const maxBytes = 300_000
const folder = join(root, 'docs/pictures')

/** The VMs in the pictures. */
const vms = [
  ['llama-finetune-1', 'a100-80gb.8x', 'us-east1-a', 'training'],
  ['llama-finetune-2', 'a100-80gb.8x', 'us-east1-a', 'training'],
  ['eval-nightly', 'a100-80gb.2x', 'us-east1-a', 'evaluation'],
  ['diffusion-sweep', 'a100.4x', 'us-west1-a', 'training'],
  ['render-farm', 'l40s-48gb.10x', 'eu-north1-a', 'graphics'],
  ['inference-prod', 'l40s-48gb.4x', 'eu-north1-a', 'serving'],
  ['protein-folding', 'a100.8x', 'us-east1-a', 'research'],
  ['vision-pretrain', 'a40.8x', 'us-east1-a', 'training'],
  ['notebook-ada', 'a40.1x', 'us-east1-a', 'research'],
  ['notebook-grace', 'a40.1x', 'us-east1-a', 'research'],
] as const
const stopped = ['notebook-ada', 'eval-nightly']

/** Takes the pictures of the README into docs/pictures: the list of VMs, a creation at a terminal, the fleet's map. */
export async function takeReadmePictures(): Promise<number> {
  mkdirSync(folder, { recursive: true })
  const server = await startRealServer({ config: '' })
  const browser = await launch()
  try {
    const { token } = await logIn({ baseUrl: server.url, email: server.email, password: server.password })
    const project = createClient({ baseUrl: server.url, token }).project(server.project_id)
    const create = async ([name, type, location, team]: (typeof vms)[number]) => {
      const body = {
        name,
        type,
        location,
        image: 'ubuntu24.04-nvidia',
        ssh_public_key: sshKey,
        labels: { team },
      }
      return (await project.wait<Vm>((await project.vmCreate(body)).operation)).result
    }
    const created = await Promise.all(vms.map(create))
    for (const { id, name } of created)
      if (stopped.includes(name))
        await project.wait((await project.vmUpdate({ vm_id: id }, { action: 'STOP' })).operation)
    // Give the VMs different ages.
    await server.sql(
      `UPDATE vms v SET created_at = v.created_at - n * n * interval '37 minutes'
       FROM (SELECT id, row_number() OVER (ORDER BY id DESC) AS n FROM vms) o WHERE o.id = v.id`,
    )
    await eventually(
      async () => (await server.sql(`SELECT FROM gpus WHERE state = 'quarantined'`)).length === 0,
    )

    const owner = await signIn(browser, server.url, server.email, server.password)
    await visit(owner, `/projects/${server.project_id}/vms`)
    await take(owner, 'console')
    const operator = await signIn(browser, server.url, server.operator_email, server.operator_password)
    await visit(operator, '/fleet')
    await take(operator, 'fleet')
    const screen = await creationAtTerminal(server)
    await takeTerminal(browser, screen)
  } finally {
    await browser.close()
    await server.close()
  }
  const bytes = ['console', 'fleet', 'terminal'].reduce((sum, name) => sum + statSync(fileOf(name)).size, 0)
  if (bytes > maxBytes) throw new Error(`the pictures have ${bytes} bytes; ${maxBytes} are allowed`)
  return 3
}

const fileOf = (name: string) => join(folder, `${name}.png`)

async function signIn(browser: Browser, url: string, email: string, password: string): Promise<Page> {
  const context = await browser.newContext({
    viewport: { width: 1440, height: 690 },
    reducedMotion: 'reduce',
    colorScheme: 'light',
  })
  const page = await context.newPage()
  await page.goto(url)
  await page.getByLabel('E-mail').fill(email)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.getByRole('navigation', { name: 'Main' }).waitFor()
  // The first page after sign-in may still be loading.
  await page.goto(`${url}/account`)
  await waitUntilLoaded(page)
  return page
}

const take = (page: Page, name: string) => page.screenshot({ path: fileOf(name), animations: 'disabled' })

/** Runs `slipway vm create` in a real terminal and returns its screen with color codes. */
async function creationAtTerminal(server: {
  url: string
  access_key: string
  project_id: string
}): Promise<string> {
  const home = mkdtempSync(join(tmpdir(), 'slipway-picture-'))
  mkdirSync(join(home, '.ssh'))
  writeFileSync(join(home, '.ssh/id_ed25519.pub'), `${sshKey}\n`)
  const env = {
    PATH: process.env.PATH!,
    HOME: home,
    TERM: 'xterm-256color',
    LANG: 'C.UTF-8',
    SLIPWAY_API_URL: server.url,
    SLIPWAY_ACCESS_KEY: server.access_key,
    SLIPWAY_PROJECT: server.project_id,
  }
  const program = `slipway() { node ${join(root, 'packages/cli/dist/slipway.js')} "$@"; }`
  const terminal = openTerminal({ folder: home, env, program, columns: 96 })
  try {
    terminal.type(`PS1='$ '; ${program}; clear`)
    terminal.press('Enter')
    await terminal.see(/^\$ *\n*$/)
    terminal.type(`slipway vm create train-8 --type a100.1x --location any --ttl 8h --yes`)
    terminal.press('Enter')
    await terminal.see(/\n\$ *\n*$/)
    terminal.type('slipway vm list -o columns=name,type,location,state,usd_per_hour')
    terminal.press('Enter')
    await terminal.see(/columns=[\s\S]*\n\$ *\n*$/)
    return terminal.colors().trimEnd()
  } finally {
    terminal.close()
    // The shell may still write its history.
    rmSync(home, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
  }
}

/** The colors of a terminal and of dimmed text, on a light background. */
const colors: Record<string, string> = {
  31: '#b3261e',
  32: '#1a7f37',
  33: '#8a6100',
  34: '#0a58ca',
  36: '#0b7285',
  90: '#6e7781',
  2: '#6e7781',
}

const escapeCharacter = String.fromCharCode(27)

/** Converts the text of a terminal to HTML. A color or weight applies until the next reset. */
function htmlOf(screen: string): string {
  const escaped = screen.replace(/[&<>]/g, (character) => `&#${character.charCodeAt(0)};`)
  let open = 0
  const text = escaped.replaceAll(new RegExp(`${escapeCharacter}\\[([\\d;]*)m`, 'g'), (_, codes: string) =>
    codes
      .split(';')
      .map((code) => {
        if (!code || /^(0|22|39)$/.test(code)) {
          const closed = '</span>'.repeat(open)
          open = 0
          return closed
        }
        open += 1
        return `<span style="${code === '1' ? 'font-weight:600' : `color:${colors[code] ?? 'inherit'}`}">`
      })
      .join(''),
  )
  return text + '</span>'.repeat(open)
}

async function takeTerminal(browser: Browser, screen: string): Promise<void> {
  const page = await browser.newPage({ viewport: { width: 1000, height: 200 } })
  const style = `margin:0;padding:20px 24px;font:14px/1.5 'JetBrains Mono','DejaVu Sans Mono',monospace;
    color:#1f2328;background:#f6f8fa;border-radius:10px;display:inline-block;white-space:pre`
  await page.setContent(`<body style="margin:0"><pre style="${style}">${htmlOf(screen)}</pre></body>`)
  await page.locator('pre').screenshot({ path: fileOf('terminal'), omitBackground: true })
}
