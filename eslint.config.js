import js from '@eslint/js'
import { defineConfig, globalIgnores } from 'eslint/config'
import tseslint from 'typescript-eslint'

/** Every exported name needs a doc comment, not only those that the package exports. */
const documentedExports = {
  meta: { type: 'suggestion', messages: { missing: 'Exported names need a doc comment.' }, schema: [] },
  create(context) {
    return {
      'ExportNamedDeclaration[declaration]'(node) {
        const above = context.sourceCode.getCommentsBefore(node).at(-1)
        // The comment stands above the first of several signatures.
        const isImplementation = node.declaration.type === 'FunctionDeclaration' && isOverload(previous(node))
        const documented = above?.type === 'Block' && above.value.startsWith('*')
        if (!documented && !isImplementation) context.report({ node, messageId: 'missing' })
      },
    }
  },
}

function previous(node) {
  const siblings = node.parent.body
  return siblings[siblings.indexOf(node) - 1]
}

function isOverload(node) {
  return node?.declaration?.type === 'TSDeclareFunction'
}

const layers = 'Imports point down the layers only: locks, lease, engine (see docs/architecture.md).'
const library = 'A client library is imported as a type, in its own adapter, and nowhere else.'
const libraries = ['ioredis', 'ioredis5', 'redis', 'redis5', '@redis/client', '@valkey/valkey-glide']

/** A configuration for some folders of src that forbids imports by pattern, and of client libraries always. */
function mayNotImport(files, patterns, ownLibraries = []) {
  const paths = libraries.map((name) => ({
    name,
    message: library,
    allowTypeImports: ownLibraries.includes(name),
  }))
  const groups = patterns.map(({ message = layers, ...rest }) => ({ message, ...rest }))
  return {
    files,
    rules: { '@typescript-eslint/no-restricted-imports': ['error', { paths, patterns: groups }] },
  }
}

const aboveClients = [{ regex: '^\\.\\./(?!\\.\\./\\.\\./(clock|diagnostics|errors|options)\\.js$)' }]

const layerRules = [
  mayNotImport(['src/*.ts'], [{ regex: '^\\./(locks|lease|engine|cli)/' }]),
  mayNotImport(['src/holdfast.ts', 'src/index.ts'], []),
  mayNotImport(
    ['src/locks/*.ts'],
    [{ regex: '/(engine|cli)/' }, { regex: '^\\.\\./(holdfast|index)\\.js$' }],
  ),
  mayNotImport(
    ['src/synchronizers/*.ts', 'src/watch/*.ts'],
    [
      { regex: '^\\.\\./(cli|guards|synchronizers|watch)/|engine/(model|memory|redis)/' },
      { regex: '^\\.\\./(holdfast|index)\\.js$' },
    ],
  ),
  mayNotImport(
    ['src/guards/*.ts'],
    [{ regex: '/(locks|lease|cli|model|memory)/' }, { regex: '^\\.\\./(holdfast|index)\\.js$' }],
  ),
  mayNotImport(
    ['src/lease/*.ts'],
    [{ regex: '/(locks|cli)/|engine/(model|memory|redis)/' }, { regex: '^\\.\\./(holdfast|index)\\.js$' }],
  ),
  mayNotImport(
    ['src/engine/*.ts'],
    [{ regex: '/(locks|lease|cli|model|memory|redis)/|/(holdfast|index)\\.js$' }],
  ),
  mayNotImport(
    ['src/engine/model/*.ts'],
    [
      { regex: '^(?!\\./|\\.\\./operations\\.js$)', message: 'The model imports nothing.' },
      { regex: '^\\.\\./operations\\.js$', allowTypeImports: true, message: 'The model imports nothing.' },
    ],
  ),
  mayNotImport(['src/engine/memory/*.ts'], [{ regex: '/(locks|lease|cli|redis)/|/(holdfast|index)\\.js$' }]),
  mayNotImport(
    ['src/engine/redis/*.ts'],
    [{ regex: '/(locks|lease|cli|model|memory)/|/(holdfast|index)\\.js$' }],
  ),
  mayNotImport(['src/engine/redis/clients/*.ts'], aboveClients),
  mayNotImport(['src/engine/redis/clients/ioredis*.ts'], aboveClients, ['ioredis']),
  mayNotImport(['src/engine/redis/clients/node-redis*.ts'], aboveClients, ['redis', '@redis/client']),
]

export default defineConfig(
  globalIgnores(['dist/', 'docs/', 'build/', 'coverage/', '.cache/', 'bench/results/']),
  js.configs.recommended,
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.strictTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/explicit-function-return-type': ['error', { allowExpressions: true }],
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      '@typescript-eslint/prefer-readonly': 'error',
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/switch-exhaustiveness-check': [
        'error',
        { considerDefaultExhaustiveForUnions: true },
      ],
    },
  },
  {
    files: ['src/**/*.ts'],
    plugins: { holdfast: { rules: { 'documented-exports': documentedExports } } },
    rules: {
      'holdfast/documented-exports': 'error',
      'max-lines': ['error', { max: 400, skipBlankLines: true, skipComments: true }],
      'max-lines-per-function': ['error', { max: 60, skipBlankLines: true, skipComments: true }],
      'max-params': ['error', 3],
      '@typescript-eslint/consistent-type-assertions': [
        'error',
        { assertionStyle: 'as', objectLiteralTypeAssertions: 'never' },
      ],
    },
  },
  {
    files: ['src/**/*.ts'],
    ignores: ['src/clock.ts'],
    rules: {
      'no-restricted-globals': ['error', 'setTimeout', 'setInterval', 'performance'],
      'no-restricted-properties': [
        'error',
        { object: 'Date', property: 'now', message: 'Time comes from clock.ts.' },
      ],
    },
  },
  // Generated.
  { files: ['src/engine/redis/scripts.ts'], rules: { 'max-lines': 'off' } },
  ...layerRules,
  {
    files: ['test/**/*.ts', 'bench/**/*.ts', 'demo/**/*.ts', 'examples/**/*.ts', '*.config.ts'],
    rules: {
      'max-lines': ['error', { max: 600, skipBlankLines: true, skipComments: true }],
      '@typescript-eslint/explicit-function-return-type': 'off',
      // A suite reads and awaits what is not a promise in every implementation.
      '@typescript-eslint/await-thenable': 'off',
      '@typescript-eslint/require-await': 'off',
    },
  },
  {
    files: ['**/*.mjs', '**/*.js', '**/*.cjs'],
    languageOptions: {
      globals: {
        console: 'readonly',
        process: 'readonly',
        setTimeout: 'readonly',
        clearTimeout: 'readonly',
        performance: 'readonly',
        URL: 'readonly',
      },
    },
  },
)
