const key = 'slipway-project'

/** The console opens with this project. */
export const lastProject = {
  get: (): string => localStorage.getItem(key) ?? '',
  set: (projectId: string): void => localStorage.setItem(key, projectId),
}
