import type { ProjectRequester } from '../operations/admission.ts'
import type { Context } from './context.ts'

/** The caller, as operations know one. */
export const requesterOf = (context: Context): ProjectRequester => ({
  projectId: context.project.projectId,
  organizationId: context.organizationId,
  actor: context.actor,
  requestId: context.requestId,
})

/** A comma-separated filter; null when it is not given. */
export const commaList = (text: string | undefined): string[] | null =>
  text === undefined ? null : text.split(',').filter((part) => part !== '')
