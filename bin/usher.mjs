#!/usr/bin/env node
// Checks what the command line needs before anything of it is loaded. An older Node must be able to read this file, so it
// uses no newer syntax than that of Node 14.
import { existsSync, readFileSync } from 'fs';
import { fileURLToPath } from 'url';

const ROOT = new URL('../', import.meta.url);
const COMMAND_LINE = new URL('dist/cli.js', ROOT);

const fault = versionFault(process.versions.node) || checkoutFault();
if (fault) end(fault);
else import(COMMAND_LINE.href).catch((error) => end(loadFault(error)));

/** `engines` of package.json is `>=20.19`. */
function versionFault(version) {
  const needed = JSON.parse(readFileSync(new URL('package.json', ROOT), 'utf8')).engines.node.replace('>=', '');
  const [major, minor] = version.split('.').map(Number);
  const [neededMajor, neededMinor] = needed.split('.').map(Number);
  if (major > neededMajor || (major === neededMajor && minor >= neededMinor)) return null;
  return `this is Node ${version}; install Node ${needed} or newer, from https://nodejs.org`;
}

/** Only a checkout can lack its build. It then lacks its dependencies too, because npm ci makes both. */
function checkoutFault() {
  if (existsSync(COMMAND_LINE)) return null;
  return `${fileURLToPath(ROOT)} is not installed yet; run "npm ci" there`;
}

function loadFault(error) {
  if (error.code !== 'MODULE_NOT_FOUND') return error.stack;
  const name = (/'([^']+)'/.exec(error.message) || ['', 'a package'])[1];
  return `the package ${name} is missing; run "npm ci" in a checkout, or "npm install" in your application`;
}

function end(text) {
  const json = process.argv.includes('--json');
  process.stderr.write(json ? `${JSON.stringify({ error: text })}\n` : `usher: ${text}\n`);
  process.exitCode = 1;
}
