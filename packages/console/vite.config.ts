import tailwindcss from '@tailwindcss/vite'
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

export default defineConfig({
  plugins: [react(), tailwindcss()],
  build: {
    // The server serves it from its own folder, here as in the package that is published.
    outDir: '../server/dist/console',
    emptyOutDir: true,
    target: 'es2022',
    // A data: URL would need another exception in the Content-Security-Policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
})
