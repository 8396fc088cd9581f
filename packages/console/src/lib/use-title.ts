import { createContext, useEffect } from 'react'

/** The name of the project whose page is open, for the title of the browser's tab. */
export const PageTitleContext = createContext('')

/** Sets the title of the browser's tab. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = title
  }, [title])
}
