import type { FastifyInstance } from 'fastify'
import type { Services } from '../services.ts'
import { mountConsoleSession } from './console-session.ts'
import { mountStaticFiles } from './static-files.ts'

/** The web console at `/`, and the session that its page lives by. */
export function mountConsole(app: FastifyInstance, services: Services): void {
  mountConsoleSession(app, services)
  mountStaticFiles(app)
}
