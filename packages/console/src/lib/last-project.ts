const key = 'slipway-project'

/** The project that was open last; the console starts with it. */
export const lastProject = {
  get: (): string => localStorage.getItem(key) ?? '',
  set: (projectId: string): void => localStorage.setItem(key, projectId),
}
