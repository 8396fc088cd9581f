/**
 * The script of the reference: puts a form under every endpoint that sends the request with the reader's own key. The
 * key lives in its field and nowhere else, cookies stay out of it, and what comes back is shown as text.
 */
export const docsScript = `
const key = document.getElementById('key')
const known = new Map()
const mostShown = 200_000

const element = (name, properties = {}, ...children) => {
  const made = Object.assign(document.createElement(name), properties)
  made.append(...children)
  return made
}

const send = (method, path, body) =>
  fetch(path, {
    method,
    credentials: 'omit',
    headers: {
      ...(key.value && { authorization: 'Bearer ' + key.value.trim() }),
      ...(body && { 'content-type': 'application/json' }),
    },
    ...(body && { body }),
  })

// Whoever gives a key means its project, unless they say otherwise.
key.addEventListener('change', async () => {
  const answer = await send('GET', '/v0.1/projects').catch(() => undefined)
  const [project] = answer?.ok ? (await answer.json()) : []
  if (!project) return
  known.set('project_id', project.id).set('organization_id', project.organization_id)
  for (const field of document.querySelectorAll('.try input')) if (!field.value) field.value = known.get(field.name) ?? ''
})

const fieldOf = (name, isNeeded) => {
  const input = element('input', { name, required: isNeeded, value: (isNeeded && known.get(name)) || '', spellcheck: false })
  input.autocomplete = 'off'
  if (isNeeded) input.addEventListener('change', () => known.set(name, input.value.trim()))
  return element('label', {}, element('span', { textContent: name }), input)
}

function formOf({ method, path, query, body }) {
  const places = Array.from(path.matchAll(/\\{(\\w+)\\}/g), ([, name]) => name)
  const names = query ? query.split(',') : []
  const text = body && element('textarea', { name: 'body', value: body, rows: Math.min(16, body.split('\\n').length), spellcheck: false })
  const button = element('button', { type: 'submit', textContent: 'Send' })
  const status = element('output', { className: 'status' })
  const shown = element('pre', { tabIndex: 0, hidden: true })
  const form = element('form', { className: 'try' },
    ...places.map((name) => fieldOf(name, true)),
    ...names.map((name) => fieldOf(name, false)),
    ...(text ? [element('label', {}, element('span', { textContent: 'body' }), text)] : []),
    element('p', {}, button, status),
    shown,
  )
  if (method !== 'GET') button.before(element('span', { className: 'quiet', textContent: 'This really happens. ' }))
  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    const given = new FormData(form)
    const value = (name) => String(given.get(name)).trim()
    const asked = new URLSearchParams(names.filter((name) => value(name)).map((name) => [name, value(name)]))
    const target = path.replace(/\\{(\\w+)\\}/g, (_, name) => encodeURIComponent(value(name))) + (asked.size ? '?' + asked : '')
    button.disabled = true
    status.textContent = 'Sent, waiting.'
    try {
      const answer = await send(method, target, text?.value)
      const said = await answer.text()
      const isJson = answer.headers.get('content-type')?.startsWith('application/json')
      status.textContent = [answer.status, answer.statusText, answer.headers.get('x-request-id')].filter(Boolean).join(' · ')
      shown.textContent = (isJson ? JSON.stringify(JSON.parse(said), null, 2) : said).slice(0, mostShown)
      shown.hidden = false
    } catch {
      status.textContent = 'There was no answer.'
    } finally {
      button.disabled = false
    }
  })
  return form
}

for (const section of document.querySelectorAll('.endpoint[data-method]')) {
  const button = element('button', { type: 'button', className: 'open', textContent: 'Try it' })
  button.setAttribute('aria-expanded', 'false')
  let form
  button.addEventListener('click', () => {
    if (form) form.hidden = !form.hidden
    else section.querySelector('.route').after((form = formOf(section.dataset)))
    button.setAttribute('aria-expanded', String(!form.hidden))
    if (!form.hidden) form.querySelector('input, textarea, button').focus()
  })
  section.querySelector('.route').append(button)
}
document.querySelector('.key').hidden = false
`
