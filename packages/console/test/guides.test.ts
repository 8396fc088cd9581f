import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { guides, guidesUrl } from '../src/app/guides.ts'

const root = new URL('../../../', import.meta.url)

test('the guides in the help exist in the repository, with these titles', () => {
  const { repository } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8'))
  expect(`git+${guidesUrl}`).toBe(repository.url.replace(/\.git$/, '/blob/main/docs/guides'))
  for (const [file, title] of Object.entries(guides))
    expect(readFileSync(new URL(`docs/guides/${file}.md`, root), 'utf8').split('\n')[0]).toBe(`# ${title}`)
})
