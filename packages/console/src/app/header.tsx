import { Link, useLocation, useNavigate } from '@tanstack/react-router'
import { useIsOffline, useReachability } from '../api/connection.ts'
import { useLiveState } from '../api/live.ts'
import { useMe, useProjectId } from '../api/me.ts'
import { session } from '../api/session.ts'
import { AlertBell } from '../features/alerts.tsx'
import { chooseTheme, type ThemeChoice, useThemeChoice } from '../lib/theme.ts'
import { showToast } from '../lib/toasts.ts'
import { IconButton, Key } from '../ui/button.tsx'
import { Hint } from '../ui/hint.tsx'
import { Icon, type IconName } from '../ui/icon.tsx'
import { Menu } from '../ui/menu.tsx'
import { ProjectSwitcher } from './project-switcher.tsx'

const themes: [ThemeChoice, string, IconName][] = [
  ['light', 'Light', 'sun'],
  ['dark', 'Dark', 'moon'],
  ['system', 'System', 'monitor'],
]

export function Header({
  onSearch,
  onHelp,
  onMenu,
}: {
  onSearch: () => void
  onHelp: () => void
  onMenu: () => void
}) {
  const { caller } = useMe()
  const navigate = useNavigate()
  const choice = useThemeChoice()
  const themeIcon = themes.find(([name]) => name === choice)?.[2] ?? 'monitor'
  return (
    <header className="z-30 flex h-12 shrink-0 items-center gap-2 border-b border-line bg-surface px-4">
      <span className="md:hidden">
        <IconButton label="Menu" icon={<Icon name="menu" size={18} />} onClick={onMenu} />
      </span>
      <Link
        to="/"
        className="mr-2 flex shrink-0 items-center gap-2 font-semibold tracking-tight max-sm:hidden"
      >
        <img src="/favicon.svg" alt="" width={20} height={20} />
        slipway
      </Link>
      <ProjectSwitcher />
      <div className="flex flex-1 justify-end">
        <button
          type="button"
          onClick={onSearch}
          className="flex h-8 w-full max-w-72 items-center gap-2 rounded-md border border-line bg-canvas px-2.5 text-ink-muted hover:border-line-strong max-md:w-8 max-md:justify-center max-md:border-transparent max-md:bg-transparent max-md:px-0"
          aria-label="Search"
        >
          <Icon name="search" size={15} className="shrink-0" />
          <span className="flex-1 text-left max-md:hidden">Search</span>
          <Key>/</Key>
        </button>
      </div>
      <LiveMark />
      <AlertBell />
      <Menu
        label="Theme"
        trigger={<IconButton label="Theme" icon={<Icon name={themeIcon} size={16} />} />}
        entries={themes.map(([name, label, icon]) => ({
          key: name,
          label,
          icon: <Icon name={icon} size={14} />,
          isCurrent: name === choice,
          onSelect: () => chooseTheme(name),
        }))}
      />
      <span className="max-sm:hidden">
        <IconButton
          label="Help and shortcuts"
          icon={<Icon name="circle-question-mark" size={16} />}
          onClick={onHelp}
        />
      </span>
      <Menu
        label="Account"
        trigger={<IconButton label="Account" icon={<Icon name="user-round" size={16} />} />}
        header={<span className="text-ink">{caller.email}</span>}
        entries={[
          {
            key: 'account',
            label: 'Account and password',
            icon: <Icon name="user-round" size={14} />,
            onSelect: () => void navigate({ to: '/account' }),
          },
          {
            key: 'sign-out',
            label: 'Sign out',
            icon: <Icon name="log-out" size={14} />,
            onSelect: () =>
              void session.signOut().catch((error) => showToast({ title: 'Sign-out failed', error })),
          },
        ]}
      />
    </header>
  )
}

const marks = {
  offline: ['Offline', 'bg-amber', 'Showing the last known data.'],
  live: ['Live', 'bg-green', 'This page updates automatically.'],
  polled: [
    'Live',
    'bg-green',
    'Fleet data refreshes at least once a minute. Lists of tenants’ VMs and events do not, because each read of them is recorded.',
  ],
  refused: [
    'Polling',
    'bg-amber',
    'The event stream is not available. The page refreshes every few seconds instead.',
  ],
  connecting: ['Connecting', 'bg-blue pulsing', 'Connecting to the event stream.'],
  reconnecting: [
    'Reconnecting',
    'bg-blue pulsing',
    'Slipway is not responding. Showing the last known data. The page retries automatically.',
  ],
} as const

/** Returns the connection state to show. A page without live data has none (null) while the service responds. */
function useConnection(): keyof typeof marks | null {
  const state = useLiveState()
  const isOffline = useIsOffline()
  const { isLost } = useReachability()
  const projectId = useProjectId()
  const { pathname } = useLocation()
  const { caller } = useMe()
  if (isOffline) return 'offline'
  if (projectId && state !== 'off') return state
  if (isLost) return 'reconnecting'
  return caller.is_operator && pathname.startsWith('/fleet') ? 'polled' : null
}

/** Shows whether the page receives live updates. */
function LiveMark() {
  const connection = useConnection()
  const [word, dot, hint] = connection ? marks[connection] : []
  // The width fits the longest word, so that the header does not move. A phone has room for the dot only.
  return (
    <span className="flex w-28 shrink-0 justify-end max-md:w-auto">
      {word && (
        <Hint text={hint}>
          <span role="status" className="flex items-center gap-1.5 rounded px-1.5 text-sm text-ink-muted">
            <span className={`size-2 rounded-full ${dot}`} aria-hidden="true" />
            <span className="max-md:sr-only">{word}</span>
          </span>
        </Hint>
      )}
    </span>
  )
}
