// Runs before the first paint, so that a dark page never flashes white. A file of its own: no inline script is allowed.
;(() => {
  let choice = 'system'
  try {
    choice = localStorage.getItem('slipway-theme') || 'system'
  } catch {}
  const isDark =
    choice === 'dark' || (choice !== 'light' && matchMedia('(prefers-color-scheme: dark)').matches)
  document.documentElement.dataset.theme = isDark ? 'dark' : 'light'
})()
