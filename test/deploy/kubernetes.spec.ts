import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { beforeAll, describe, expect, test } from '@jest/globals';
import ts from 'typescript';
import { parse, parseAllDocuments } from 'yaml';
import { loadConfig } from '../../src/server/settings/settings.js';
import { bannerFields } from '../../src/server/startup-banner.js';
import { newFolder } from '../support/process.js';
import { SECRETS, STARTED } from './secrets.js';

interface Container {
  env?: { name: string; value: string }[];
  ports?: { name: string; containerPort: number }[];
  envFrom: { configMapRef: { name: string } }[];
  volumeMounts: { name: string; mountPath: string }[];
  securityContext: object;
}
interface PodSpec {
  containers: [Container];
  securityContext: object;
  terminationGracePeriodSeconds?: number;
}
interface Manifest {
  apiVersion: string;
  kind: string;
  metadata: { name: string; labels: Record<string, string> };
  data?: Record<string, string>;
  spec?: {
    template: { metadata: { labels: object; annotations?: Record<string, string> }; spec: PodSpec };
    podSelector?: { matchLabels: object };
    ingress?: { ports: { port: string }[]; from: unknown[] }[];
  };
}
type Model = new (manifest: unknown) => { validate(): void };

const FOLDER = 'deploy/kubernetes';
const { resources } = parse(readFileSync(join(FOLDER, 'kustomization.yaml'), 'utf8')) as { resources: string[] };
const MANIFESTS = resources.flatMap((file) =>
  parseAllDocuments(readFileSync(join(FOLDER, file), 'utf8')).map((document) => document.toJS() as Manifest),
);
const manifest = (kind: string, name: string): Manifest =>
  MANIFESTS.find((one) => one.kind === kind && one.metadata.name === name)!;

test('every manifest is part of the kustomization', () => {
  expect(readdirSync(FOLDER).sort()).toEqual([...resources, 'kustomization.yaml'].sort());
});

describe('Kubernetes’ own schema accepts', () => {
  test.each(MANIFESTS)('$kind $metadata.name', async (one) => {
    const { [one.kind]: Kind } = (await import(`kubernetes-models/${one.apiVersion}/${one.kind}`)) as Record<
      string,
      Model
    >;
    new Kind!(one).validate();
  });

  /** The schema lets unknown fields pass, but the types that are made of it do not. */
  function unknownFields(manifests: readonly Manifest[]): string[] {
    const file = resolve('test/deploy/manifests.generated.ts');
    const lines = manifests.map(
      (one, index) =>
        `import type { I${one.kind} as Kind${index} } from 'kubernetes-models/${one.apiVersion}/${one.kind}';\n` +
        `export const manifest${index}: Kind${index} = ${JSON.stringify(one)};\n`,
    );
    const options = {
      module: ts.ModuleKind.NodeNext,
      moduleResolution: ts.ModuleResolutionKind.NodeNext,
      strict: true,
    };
    const host = ts.createCompilerHost({ ...options, skipLibCheck: true });
    const { readFile, fileExists } = host;
    host.readFile = (path) => (path === file ? lines.join('') : readFile(path));
    host.fileExists = (path) => path === file || fileExists(path);
    const getSourceFile = host.getSourceFile.bind(host);
    host.getSourceFile = (path, target) =>
      path === file ? ts.createSourceFile(path, lines.join(''), target) : getSourceFile(path, target);
    const program = ts.createProgram([file], { ...options, skipLibCheck: true, noEmit: true, types: [] }, host);
    return ts
      .getPreEmitDiagnostics(program)
      .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, ' '));
  }

  test('and no manifest has a field that it does not know', () => {
    expect(unknownFields(MANIFESTS)).toEqual([]);
    const misspelt = structuredClone(manifest('Deployment', 'usher-api')) as { spec: { template: { spec: object } } };
    Object.assign(misspelt.spec.template.spec, { terminationGracePeriod: 40 });
    expect(unknownFields([misspelt as Manifest])).toEqual([expect.stringContaining('terminationGracePeriod')]);
  });
});

describe.each([
  ['Deployment', 'usher-api', 'api'],
  ['Deployment', 'usher-worker', 'worker'],
  ['Job', 'usher-migrate', 'all'],
])('%s %s', (kind, name, role) => {
  let pod: PodSpec;
  let container: Container;
  beforeAll(() => {
    pod = manifest(kind, name).spec!.template.spec;
    [container] = pod.containers;
  });

  test('has settings that Usher accepts, with every secret in a file of the mounted Secret', () => {
    const folder = newFolder();
    for (const [key, value] of Object.entries(SECRETS)) writeFileSync(join(folder, key), value);
    expect(container.volumeMounts).toContainEqual({ name: 'secrets', mountPath: '/run/secrets/usher', readOnly: true });
    const { data = {} } = manifest('ConfigMap', container.envFrom[0]!.configMapRef.name);
    const own = Object.fromEntries((container.env ?? []).map((variable) => [variable.name, variable.value]));
    const settings = Object.fromEntries(
      Object.entries({ ...data, ...own }).map(([key, value]) => [key, value.replace('/run/secrets/usher', folder)]),
    );
    const config = loadConfig({ HOST: '0.0.0.0', ...settings });
    expect(config).toMatchObject({ environment: 'production', role, operator: { password: SECRETS['ops-password'] } });
    expect(bannerFields(config, STARTED).lacking).toEqual([]);
    if (kind === 'Job') return;
    const ports = container.ports?.map(({ name: port, containerPort }) => [port, containerPort]);
    expect(ports).toEqual([
      ['http', config.port],
      ['ops', config.opsPort],
    ]);
    expect(manifest(kind, name).spec?.template.metadata.annotations).toEqual({
      'prometheus.io/scrape': 'true',
      'prometheus.io/port': String(config.opsPort),
      'prometheus.io/path': '/ops/metrics',
    });
  });

  test('takes connections only where a policy names their source', () => {
    const { labels } = manifest(kind, name).spec!.template.metadata;
    const [policy] = MANIFESTS.filter(
      (one) => one.kind === 'NetworkPolicy' && isDeepStrictEqual(one.spec?.podSelector?.matchLabels, labels),
    );
    const open = (policy!.spec!.ingress ?? []).map(({ ports, from }) => [ports[0]!.port, from.length > 0]);
    const expected: Record<string, unknown[]> = {
      api: [
        ['http', true],
        ['ops', true],
      ],
      worker: [['ops', true]],
      all: [],
    };
    expect(open).toEqual(expected[role]);
  });

  test('runs without root, without capabilities and on a read-only file system', () => {
    expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
  });
});

test('an upgrade applies the settings and the migration, then the workers, then the api', () => {
  const ofComponents = (...components: string[]) =>
    MANIFESTS.filter(({ metadata }) => components.includes(metadata.labels['app.kubernetes.io/component']!)).map(
      ({ kind, metadata }) => `${kind} ${metadata.name}`,
    );
  expect(ofComponents('settings', 'migrate').sort()).toEqual([
    'ConfigMap usher',
    'Job usher-migrate',
    'NetworkPolicy usher-migrate',
  ]);
  expect(ofComponents('worker')).toContain('Deployment usher-worker');
  expect(ofComponents('worker', 'settings', 'migrate', 'api')).toHaveLength(MANIFESTS.length);
});

test('a pod gets the time that its shutdown takes: 30 s for a delivery, and SHUTDOWN_DELAY', () => {
  for (const name of ['usher-api', 'usher-worker'])
    expect(manifest('Deployment', name).spec?.template.spec.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(40);
});
