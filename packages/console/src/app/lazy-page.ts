import { type AsyncRouteComponent, lazyRouteComponent } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { setReachability } from '../api/connection.ts'

const retryPauseMs = 1_000

/** Loads the code of a page when the page is first opened. */
export const lazyPage = <Name extends string>(
  load: () => Promise<Record<NoInfer<Name>, () => ReactNode>>,
  name: Name,
): AsyncRouteComponent<unknown> => lazyRouteComponent(() => loadWhenReachable(load), name)

/**
 * After a failed import, the library reloads the document, because a new console version may have replaced
 * the file. While the service is unreachable, a reload would end in the browser's error page, so the import
 * is retried and the previous page stays visible with a banner.
 */
export async function loadWhenReachable<Module>(load: () => Promise<Module>): Promise<Module> {
  for (;;) {
    try {
      const module = await load()
      setReachability({ isPageWaiting: false })
      return module
    } catch (error) {
      if (await isReachable()) throw error
      setReachability({ isPageWaiting: true })
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
