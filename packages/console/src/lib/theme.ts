import { useSyncExternalStore } from 'react'

export type ThemeChoice = 'light' | 'dark' | 'system'
const storageKey = 'slipway-theme'
const systemIsDark = matchMedia('(prefers-color-scheme: dark)')
const listeners = new Set<() => void>()

function readChoice(): ThemeChoice {
  const stored = localStorage.getItem(storageKey)
  return stored === 'light' || stored === 'dark' ? stored : 'system'
}

function apply(): void {
  const choice = readChoice()
  const isDark = choice === 'dark' || (choice === 'system' && systemIsDark.matches)
  document.documentElement.dataset.theme = isDark ? 'dark' : 'light'
  for (const listener of listeners) listener()
}

export function chooseTheme(choice: ThemeChoice): void {
  localStorage.setItem(storageKey, choice)
  apply()
}

// Charts read the theme from the attribute.
new MutationObserver(() => {
  for (const listener of listeners) listener()
}).observe(document.documentElement, { attributeFilter: ['data-theme'] })
systemIsDark.addEventListener('change', apply)
// Follow a theme that was chosen in another tab.
addEventListener('storage', (event) => {
  if (event.key === storageKey) apply()
})

const subscribe = (listener: () => void) => {
  listeners.add(listener)
  return () => listeners.delete(listener)
}
export const useThemeChoice = (): ThemeChoice => useSyncExternalStore(subscribe, readChoice)
/** Returns the current theme, for charts that choose their own colors. */
export const useTheme = (): string =>
  useSyncExternalStore(subscribe, () => document.documentElement.dataset.theme ?? 'light')
