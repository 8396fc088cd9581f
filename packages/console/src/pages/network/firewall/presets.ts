export interface Preset {
  title: string
  /** The name of the rule. */
  name: string
  port: string
}

export const presets: Preset[] = [
  { title: 'SSH', name: 'allow-ssh-from-me', port: '22' },
  { title: 'Jupyter', name: 'allow-jupyter', port: '8888' },
  { title: 'TensorBoard', name: 'allow-tensorboard', port: '6006' },
  { title: 'HTTPS', name: 'allow-https', port: '443' },
]
