/** Browsers are slow with thousands of options, so only the first matches are offered. */
const mostOffered = 50

/** The suggestions of an input that has this id as its `list`. */
export function NameList({ id, names, text }: { id: string; names: string[]; text: string }) {
  const fitting = new Set(names.filter((name) => name.includes(text.trim())))
  return (
    <datalist id={id}>
      {[...fitting].slice(0, mostOffered).map((name) => (
        <option key={name} value={name} />
      ))}
    </datalist>
  )
}
