// npm run build:python: generates the Python client from openapi.json into artifacts/python.
import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { root } from '../install.mjs'
import { exitWithMessage } from '../phase.mjs'

const version = '0.29.1'
const folder = join(root, '.cache', `openapi-python-client-${version}`)
const source = join(root, 'clients/python')

/** Returns the folder of the package, which pip can install. */
export function buildPython() {
  if (!existsSync(join(folder, 'bin/openapi-python-client'))) install()
  const target = join(root, 'artifacts/python')
  rmSync(target, { recursive: true, force: true })
  const scratch = mkdtempSync(join(tmpdir(), 'slipway-python-'))
  const document = join(scratch, 'openapi.json')
  try {
    writeFileSync(document, JSON.stringify(withPlainTags(readJson('openapi.json'))))
    const config = join(source, 'generator.yaml')
    const args = ['generate', '--path', document, '--config', config, '--meta', 'setup']
    run(join(folder, 'bin/openapi-python-client'), [...args, '--output-path', target])
  } finally {
    rmSync(scratch, { recursive: true })
  }
  copyFileSync(join(source, 'slipway.py'), join(target, 'slipway_client/slipway.py'))
  copyFileSync(join(source, 'README.md'), join(target, 'README.md'))
  return target
}

/** A tag becomes the name of a folder, and the generator would write VMs as v_ms. */
function withPlainTags(document) {
  for (const path of Object.values(document.paths))
    for (const operation of Object.values(path))
      if (operation.tags) operation.tags = operation.tags.map((tag) => tag.toLowerCase())
  return document
}

const readJson = (path) => JSON.parse(readFileSync(join(root, path), 'utf8'))

function install() {
  const check = 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))'
  if (spawnSync('python3', ['-c', check]).status !== 0)
    exitWithMessage('python3 must be Python 3.11 or later with venv and pip.')
  console.error(`Installing openapi-python-client ${version} …`)
  run('python3', ['-m', 'venv', '--clear', folder])
  run(join(folder, 'bin/python'), ['-m', 'pip', 'install', '--quiet', `openapi-python-client==${version}`])
}

function run(command, args) {
  const { status } = spawnSync(command, args, { stdio: ['ignore', 2, 2] })
  if (status !== 0) exitWithMessage(`${command} failed.`)
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) console.log(buildPython())
