import { expect } from 'vitest'

/** The answer to a request that is refused for one of its fields, in these words. */
export const refused = (field: string, message: RegExp) => ({
  status: 400,
  body: {
    code: 'invalid_argument',
    message: expect.stringMatching(message),
    details: [{ field, message: expect.stringMatching(message) }],
  },
})
