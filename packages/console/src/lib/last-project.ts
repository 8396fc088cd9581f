const key = 'slipway-project'

/** The project that the console opens with. */
export const lastProject = {
  get: (): string => localStorage.getItem(key) ?? '',
  set: (projectId: string): void => localStorage.setItem(key, projectId),
}
