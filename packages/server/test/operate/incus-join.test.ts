import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { readPastedToken } from '../../src/engines/incus/operate/join.ts'

const token = 'eyJzZXJ2ZXJfbmFtZSI6Imhvc3QyIn0='

test('a pasted token is read without waiting for the end of the input, with or without the line before it', async () => {
  for (const pasted of [`${token}\n`, `Member host2 join token:\n${token}\n`, `\n  ${token}  \r\n`]) {
    const terminal = new PassThrough()
    terminal.write(pasted)
    expect(await readPastedToken(terminal)).toBe(token)
  }
})

test('a token from a file without a line end is read, and an empty input has none', async () => {
  const file = (content: string) => new PassThrough().end(content)
  expect(await readPastedToken(file(token))).toBe(token)
  expect(await readPastedToken(file(''))).toBe('')
})
