import type { Requester } from '../operations/admission.ts'
import type { Context } from './context.ts'

/** The caller, as operations know one. */
export const requesterOf = (context: Context): Requester => ({
  projectId: context.project.projectId,
  actor: context.actor,
  requestId: context.requestId,
  signals: context.services.signals,
  audit: (event) => context.audit(event),
  noteEvent: () => context.noteEvent(),
})

/** A comma-separated filter; null when it is not given. */
export const commaList = (text: string | undefined): string[] | null =>
  text === undefined ? null : text.split(',').filter((part) => part !== '')
