// Runs before the first paint, so that a dark page does not flash white. It is a separate file because inline scripts are not allowed.
;(() => {
  let choice = 'system'
  try {
    choice = localStorage.getItem('slipway-theme') || 'system'
  } catch {}
  const isDark =
    choice === 'dark' || (choice !== 'light' && matchMedia('(prefers-color-scheme: dark)').matches)
  document.documentElement.dataset.theme = isDark ? 'dark' : 'light'
})()
