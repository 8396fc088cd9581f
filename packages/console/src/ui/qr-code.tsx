import encodeQr from 'qr'

/** Draws a QR code. It is dark on light in both themes, with the margin that scanners need. */
export function QrCode({ text, label }: { text: string; label: string }) {
  const rows = encodeQr(text, 'raw', { ecc: 'medium', border: 4 })
  const path = rows.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? [`M${x} ${y}h1v1h-1z`] : [])))
  return (
    <svg
      role="img"
      aria-label={label}
      viewBox={`0 0 ${rows.length} ${rows.length}`}
      shapeRendering="crispEdges"
      className="size-48 shrink-0 rounded-md"
    >
      <rect width={rows.length} height={rows.length} fill="#fff" />
      <path d={path.join('')} fill="#000" />
    </svg>
  )
}
