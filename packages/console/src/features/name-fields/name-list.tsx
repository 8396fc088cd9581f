/** Browsers are slow with thousands of options, so only the first matches are offered. */
const maxSuggestions = 50

/** Suggestions for the input whose `list` attribute is this ID. */
export function NameList({ id, names, text }: { id: string; names: string[]; text: string }) {
  const matches = new Set(names.filter((name) => name.includes(text.trim())))
  return (
    <datalist id={id}>
      {[...matches].slice(0, maxSuggestions).map((name) => (
        <option key={name} value={name} />
      ))}
    </datalist>
  )
}
