import { Link, type LinkProps } from '@tanstack/react-router'
import type { ButtonHTMLAttributes, ReactNode, Ref } from 'react'
import { Hint } from './hint.tsx'
import { Icon } from './icon.tsx'

type Kind = 'primary' | 'plain' | 'quiet' | 'danger'
type Size = 'small' | 'normal'

const base =
  'inline-flex shrink-0 items-center justify-center gap-2 rounded-md border font-medium whitespace-nowrap transition-colors duration-100 select-none'
const sizes: Record<Size, string> = { small: 'h-7 px-2 text-sm', normal: 'h-8 px-3 text-base' }
const kinds: Record<Kind, string> = {
  primary: 'border-transparent bg-accent text-on-accent hover:bg-accent-hover',
  plain: 'border-line-strong bg-surface text-ink hover:bg-sunken',
  quiet: 'border-transparent text-ink-muted hover:bg-sunken hover:text-ink',
  danger: 'border-line-strong bg-surface text-red-text hover:border-red hover:bg-red-soft',
}
/** Danger buttons in table rows have no border, and their text is aligned with the column. */
const smallDanger = 'border-transparent text-red-text last:-mr-2 hover:bg-red-soft'
/** Disabled buttons stay readable. */
const anyOff = 'cursor-not-allowed text-ink-off [&_kbd]:hidden [&>svg]:opacity-60'
const off = `${anyOff} border-dashed border-line-strong bg-sunken`
/** A disabled button must not be more visible than an enabled one. */
const smallDangerOff = `${anyOff} border-transparent last:-mr-2`

const classOf = (kind: Kind, size: Size, more = '', isOff = false) => {
  const [live, disabled] =
    kind === 'danger' && size === 'small' ? [smallDanger, smallDangerOff] : [kinds[kind], off]
  return `${base} ${sizes[size]} ${isOff ? disabled : live} ${more}`
}

interface ButtonStyle {
  kind?: Kind
  size?: Size
  icon?: ReactNode
  /** The keyboard shortcut, shown on the button. */
  hotkey?: string
}

interface ButtonProps extends ButtonStyle, ButtonHTMLAttributes<HTMLButtonElement> {
  ref?: Ref<HTMLButtonElement>
  isBusy?: boolean
  /** Why the button is disabled; a disabled button stays visible. */
  reason?: string | undefined
}

export function Button({
  kind = 'plain',
  size = 'normal',
  icon,
  hotkey,
  isBusy = false,
  reason = '',
  className,
  children,
  onClick,
  ...rest
}: ButtonProps) {
  const isOff = Boolean(reason) || isBusy
  // A small button without an icon has no space for it, because table columns have a fixed width.
  const showsSpinner = isBusy && (size === 'normal' || Boolean(icon))
  return (
    // Every button has a hint, because adding one later would recreate the button and lose the focus.
    <Hint text={reason} opensOnPress>
      <button
        type="button"
        {...rest}
        aria-disabled={isOff || undefined}
        aria-busy={isBusy || undefined}
        aria-description={reason || undefined}
        className={classOf(kind, size, className, isOff)}
        onClick={(event) => {
          if (isOff) event.preventDefault()
          else onClick?.(event)
        }}
      >
        {showsSpinner ? <Icon name="loader-circle" size={14} className="animate-spin" /> : icon}
        {children}
        {hotkey && <Key>{hotkey}</Key>}
      </button>
    </Hint>
  )
}

interface RowButtonProps extends Omit<ButtonProps, 'size' | 'children'> {
  verb: string
  name: string
}

/** A button in a table row; its accessible name includes the name of the row. */
export function RowButton({ verb, name, ...rest }: RowButtonProps) {
  return (
    <Button size="small" aria-label={`${verb} ${name}`} {...rest}>
      {verb}
    </Button>
  )
}

type ButtonLinkProps = ButtonStyle & LinkProps & { className?: string; children?: ReactNode }

export function ButtonLink({
  kind = 'plain',
  size = 'normal',
  icon,
  hotkey,
  className,
  children,
  ...rest
}: ButtonLinkProps) {
  return (
    <Link {...(rest as LinkProps)} className={classOf(kind, size, className)}>
      {icon}
      {children}
      {hotkey && <Key>{hotkey}</Key>}
    </Link>
  )
}

export function Key({ children }: { children: ReactNode }) {
  return (
    <span aria-hidden="true" className="inline-flex max-md:hidden">
      <kbd className="rounded-[4px] border border-current/30 px-1 font-mono text-[11px] leading-4">
        {children}
      </kbd>
    </span>
  )
}

export function IconButton({
  label,
  icon,
  className = '',
  ...rest
}: { label: string; icon: ReactNode } & ButtonHTMLAttributes<HTMLButtonElement>) {
  return (
    <Hint text={label}>
      <button
        type="button"
        aria-label={label}
        {...rest}
        className={`inline-flex size-7 shrink-0 items-center justify-center rounded-md text-ink-muted hover:bg-sunken hover:text-ink ${className}`}
      >
        {icon}
      </button>
    </Hint>
  )
}
