/** A bare name means its latest version. */
export function fullImageName(name: string): string {
  return name.includes(':') ? name : `${name}:latest`
}
