import { FitAddon } from '@xterm/addon-fit'
import { SearchAddon } from '@xterm/addon-search'
import { type ITheme, Terminal } from '@xterm/xterm'
import '@xterm/xterm/css/xterm.css'
import { showToast } from '../../../lib/toasts.ts'
import { copyText } from '../../../ui/copy.tsx'
import { replaceInlineStyles } from './styles.ts'

/** A serial console has no size; guests assume this width. */
const columns = 80
const scrollback = 10_000

/** The background is the color of the card around the terminal. */
const themes: Record<string, ITheme> = {
  light: {
    foreground: '#1b1f26',
    cursor: '#1b1f26',
    selectionBackground: '#b9e6df',
  },
  dark: {
    foreground: '#e8eaed',
    cursor: '#e8eaed',
    selectionBackground: '#2f5c57',
  },
}

function colors(): ITheme {
  const { documentElement } = document
  const background = getComputedStyle(documentElement).getPropertyValue('--surface').trim()
  const theme = themes[documentElement.dataset.theme ?? 'light'] ?? themes.light
  return { ...theme, background, cursorAccent: background }
}

export interface SerialTerminal {
  write(output: Uint8Array): void
  reset(): void
  focus(): void
  copy(): void
  find(text: string): void
  applyThemeColors(): void
  dispose(): void
}

export function createTerminal(
  frame: HTMLElement,
  onInput: (input: Uint8Array<ArrayBuffer>) => void,
): SerialTerminal {
  const restoreElements = replaceInlineStyles()
  const terminal = new Terminal({
    cols: columns,
    scrollback,
    // Some guests end lines with only a newline.
    convertEol: true,
    theme: colors(),
    fontFamily: '"JetBrains Mono Variable", monospace',
    fontSize: 13,
    screenReaderMode: true,
    allowProposedApi: true,
  })
  const [fit, search] = [new FitAddon(), new SearchAddon()]
  terminal.loadAddon(fit)
  terminal.loadAddon(search)
  terminal.open(frame)
  const encoder = new TextEncoder()
  terminal.onData((text) => onInput(encoder.encode(text) as Uint8Array<ArrayBuffer>))
  const observer = new ResizeObserver(() => fit.fit())
  observer.observe(frame)
  // Keyboard users can leave the terminal with Escape, then Tab.
  let isLeaving = false
  terminal.attachCustomKeyEventHandler(({ key, type, ctrlKey, shiftKey }) => {
    if (type !== 'keydown') return true
    if (ctrlKey && shiftKey && key.toLowerCase() === 'c') {
      copy()
      return false
    }
    const leaves = isLeaving && key === 'Tab'
    isLeaving = key === 'Escape'
    return !leaves
  })
  const copy = () => {
    const text = terminal.getSelection()
    if (text === '') return showToast({ title: 'Nothing is selected' })
    void copyText(text).then(() => showToast({ title: 'Copied the selection' }))
  }
  return {
    write: (output) => terminal.write(output),
    reset: () => terminal.reset(),
    focus: () => terminal.focus(),
    copy,
    find: (text) => {
      if (text !== '' && !search.findNext(text)) showToast({ title: `“${text}” not found` })
    },
    applyThemeColors: () => {
      terminal.options.theme = colors()
    },
    dispose: () => {
      observer.disconnect()
      terminal.dispose()
      restoreElements()
    },
  }
}
