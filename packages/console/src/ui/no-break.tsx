import { Fragment, type ReactNode } from 'react'

/** Keeps a name on one line if it fits, because browsers break lines at hyphens. */
export const NoBreak = ({ children }: { children: ReactNode }) => (
  <span className="inline-block max-w-full">{children}</span>
)

/** Lets a long URL or e-mail address break after punctuation instead of inside a word. */
export const Name = ({ text }: { text: string }) =>
  (text.match(/[^@./_]+[@./_]*|[@./_]+/g) ?? []).map((part, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: parts have no identity except their position
    <Fragment key={index}>
      {part}
      <wbr />
    </Fragment>
  ))

/** Shows a sentence without line breaks inside names such as ap-south1-a. */
export const Sentence = ({ text }: { text: string }) =>
  text.split(/(\s+)/).map((part, index) =>
    // biome-ignore lint/suspicious/noArrayIndexKey: words have no identity except their position
    part.includes('-') ? <NoBreak key={index}>{part}</NoBreak> : part,
  )
