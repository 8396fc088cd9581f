import { type AsyncRouteComponent, lazyRouteComponent } from '@tanstack/react-router'
import type { ReactNode } from 'react'

const retryPauseMs = 1_000

/** Loads the code of a page when it is first opened. */
export const lazyPage = <Name extends string>(
  load: () => Promise<Record<NoInfer<Name>, () => ReactNode>>,
  name: Name,
): AsyncRouteComponent<unknown> => lazyRouteComponent(() => loadWhenReachable(load), name)

/**
 * After a failed import the library loads the whole document again, since a newer version of the console may have
 * replaced the file. While the service cannot be reached, that would trade the console for the browser's error page;
 * so the page before stays in sight, and the import is tried again until the service is back.
 */
async function loadWhenReachable<Module>(load: () => Promise<Module>): Promise<Module> {
  for (;;) {
    try {
      return await load()
    } catch (error) {
      if (await isReachable()) throw error
      await new Promise((resolve) => setTimeout(resolve, retryPauseMs))
    }
  }
}

async function isReachable(): Promise<boolean> {
  try {
    return (await fetch('/favicon.svg', { method: 'HEAD', cache: 'no-store' })).ok
  } catch {
    return false
  }
}
