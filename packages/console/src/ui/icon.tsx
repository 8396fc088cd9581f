import type { SVGProps } from 'react'
import type { IconName } from '../lib/icon-names.ts'

export type { IconName }

/** Set by vite.config.ts. */
declare const iconShapes: Record<IconName, string>

/** Hidden from screen readers unless it has an `aria-label`. */
export function Icon({
  name,
  size = 16,
  ...props
}: { name: IconName; size?: number } & SVGProps<SVGSVGElement>) {
  return (
    <svg
      xmlns="http://www.w3.org/2000/svg"
      width={size}
      height={size}
      viewBox="0 0 24 24"
      {...(props['aria-label'] ? { role: 'img' } : { 'aria-hidden': true })}
      {...props}
      // biome-ignore lint/security/noDangerouslySetInnerHtml: the shapes are build-time constants
      dangerouslySetInnerHTML={{ __html: iconShapes[name] }}
    />
  )
}
