import { icons } from '@iconify-json/lucide'
import tailwindcss from '@tailwindcss/vite'
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'
import { iconNames } from './src/lib/icon-names.ts'

const iconShapes = Object.fromEntries(iconNames.map((name) => [name, icons.icons[name]!.body]))

export default defineConfig({
  plugins: [react(), tailwindcss()],
  define: { iconShapes: JSON.stringify(iconShapes) },
  build: {
    // The server serves the console from its own folder, also in the published package.
    outDir: '../server/dist/console',
    emptyOutDir: true,
    target: 'es2022',
    // A data: URL would need another exception in the Content-Security-Policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
})
