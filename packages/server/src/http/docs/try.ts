/**
 * The API reference's script adds to every endpoint a form that sends the request with the reader's own key.
 * The key is kept only in its input field, cookies are not sent, and responses are shown as text.
 */
export const docsScript = `
const key = document.getElementById('key')
const known = new Map()
const maxShown = 200_000

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

// Fills empty fields with the project and organization of the key.
key.addEventListener('change', async () => {
  const response = await send('GET', '/v0.1/projects').catch(() => undefined)
  const [project] = response?.ok ? (await response.json()) : []
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
  const parameters = Array.from(path.matchAll(/\\{(\\w+)\\}/g), ([, name]) => name)
  const names = query ? query.split(',') : []
  const text = body && element('textarea', { name: 'body', value: body, rows: Math.min(16, body.split('\\n').length), spellcheck: false })
  const button = element('button', { type: 'submit', textContent: 'Send' })
  const status = element('output', { className: 'status' })
  const shown = element('pre', { tabIndex: 0, hidden: true })
  const form = element('form', { className: 'try' },
    ...parameters.map((name) => fieldOf(name, true)),
    ...names.map((name) => fieldOf(name, false)),
    ...(text ? [element('label', {}, element('span', { textContent: 'body' }), text)] : []),
    element('p', {}, button, status),
    shown,
  )
  if (method !== 'GET') button.before(element('span', { className: 'quiet', textContent: 'This sends a real request. ' }))
  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    const given = new FormData(form)
    const value = (name) => String(given.get(name)).trim()
    const search = new URLSearchParams(names.filter((name) => value(name)).map((name) => [name, value(name)]))
    const target = path.replace(/\\{(\\w+)\\}/g, (_, name) => encodeURIComponent(value(name))) + (search.size ? '?' + search : '')
    button.disabled = true
    status.textContent = 'Waiting for the response.'
    try {
      const response = await send(method, target, text?.value)
      const content = await response.text()
      const isJson = response.headers.get('content-type')?.startsWith('application/json')
      status.textContent = [response.status, response.statusText, response.headers.get('x-request-id')].filter(Boolean).join(' · ')
      shown.textContent = (isJson ? JSON.stringify(JSON.parse(content), null, 2) : content).slice(0, maxShown)
      shown.hidden = false
    } catch {
      status.textContent = 'No response.'
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
