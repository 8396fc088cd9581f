import type { ErrorCode, EventType, RouteId, RouteResponse } from '@slipway/contract'
import type { Recording } from '@slipway/contract/openapi/recording'
import type { CallOptions, TestService } from '@slipway/testing/service.ts'

export interface Recorder {
  service: TestService
  recording: Recording
  /** Used by every call that does not specify another one. */
  defaults: { token: string; params: Record<string, string> }
  /** Calls a route that must succeed. The first call of each route becomes its example. */
  ok<Id extends RouteId>(id: Id, options?: CallOptions<Id>): Promise<RouteResponse<Id>>
  /** Calls a route that must be refused with this code. */
  refused<Id extends RouteId>(code: ErrorCode, id: Id, options?: CallOptions<Id>): Promise<void>
}

export function startRecorder(service: TestService, requestId: string): Recorder {
  const recording: Recording = { parameters: {}, routes: {}, errors: {}, events: {}, texts: {} }
  const completed = <Id extends RouteId>(options: CallOptions<Id>): CallOptions<Id> => ({
    ...options,
    token: options.token === undefined ? recorder.defaults.token : options.token,
    params: { ...recorder.defaults.params, ...options.params },
    headers: { 'x-request-id': requestId, ...options.headers },
  })
  const recorder: Recorder = {
    service,
    recording,
    defaults: { token: service.credentials.operator_key, params: {} },
    async ok(id, options = {}) {
      const response = await service.ok(id, completed(options))
      recording.routes[id] ??= {
        ...(options.body !== undefined && { request: structuredClone(options.body) }),
        response: structuredClone(response),
      }
      for (const [name, value] of Object.entries(options.params ?? {})) recording.parameters[name] ??= value
      return response
    },
    async refused(code, id, options = {}) {
      const { body } = await service.call(id, completed(options))
      const refusal = body as { code?: string }
      if (refusal.code !== code)
        throw new Error(`${id} was not refused with ${code}: ${JSON.stringify(body)}`)
      recording.errors[code] ??= refusal
    },
  }
  return recorder
}

/** Records events, as webhooks receive them, and responses of endpoints outside the route table. */
export async function recordEventsAndTexts({ service, recording, defaults }: Recorder) {
  let page_token = ''
  do {
    const query = { limit: 500, ...(page_token && { page_token }) }
    const { items, next_page_token } = await service.ok('eventList', { ...defaults, query })
    // The newest come first, so the earliest of each type stays.
    for (const event of items) recording.events[event.type as EventType] = event
    page_token = next_page_token
  } while (page_token)
  // The order of events that background work writes differs between runs, so their positions are numbered here.
  recording.events = Object.fromEntries(
    Object.entries(recording.events)
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([type, event], index) => [type, { ...(event as object), position: index + 1 }]),
  )
  recording.texts['/readyz'] = JSON.stringify((await service.request('GET', '/readyz')).body)
  await service.ok('vmList', defaults)
  const metrics = String((await service.request('GET', '/metrics')).body).split('\n')
  const isShown = (line: string) =>
    /^# TYPE slipway_http_requests_total|route="vmList",status="200"/.test(line)
  recording.texts['/metrics'] = `${metrics.filter(isShown).slice(0, 2).join('\n')}\n`
}
