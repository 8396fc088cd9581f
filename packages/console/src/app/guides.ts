/** The server does not contain the guides, so the console links to the repository. */
export const guidesUrl = 'https://github.com/slipway-dev/slipway/blob/main/docs/guides'

/** The guides that the help lists: their files and titles. */
export const guides = {
  training: 'Training on several nodes',
  jupyter: 'Jupyter through a tunnel',
  'out-of-stock': 'When GPUs are out of stock',
  cost: 'Cost control',
  'images-and-snapshots': 'Custom images and snapshots',
  addresses: 'Reserved addresses',
  metrics: 'Metrics',
  'gpu-health': 'GPU health and replacement',
  ci: 'A VM for a CI job',
  terraform: 'Terraform',
}
