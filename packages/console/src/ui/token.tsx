import type { ReactNode } from 'react'

/** Keeps a name on one line where it fits one: browsers break at hyphens as they do at spaces. */
export const Token = ({ children }: { children: ReactNode }) => (
  <span className="inline-block max-w-full">{children}</span>
)

/** Shows a sentence whose names, such as ap-south1-a, are not broken at their hyphens. */
export const Sentence = ({ text }: { text: string }) =>
  text.split(/(\s+)/).map((part, index) =>
    // biome-ignore lint/suspicious/noArrayIndexKey: words have no identity but their place
    part.includes('-') ? <Token key={index}>{part}</Token> : part,
  )
