import { validateAnswer } from './answers.ts'

export interface ClientAnswer {
  status: number
  headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape, already held against the document
  body: any
}

interface Request {
  token?: string
  body?: unknown
  headers?: Record<string, string>
}

/** Calls one server by path, as nobody unless there is a token. */
export async function send(
  server: { url: string },
  method: string,
  path: string,
  { token, body, headers = {} }: Request = {},
): Promise<ClientAnswer> {
  const response = await fetch(`${server.url}/v0.1${path}`, {
    method,
    headers: {
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const answer = await response.json()
  validateAnswer(method, `/v0.1${path}`, response.status, 'application/json', answer)
  return { status: response.status, headers: response.headers, body: answer }
}
