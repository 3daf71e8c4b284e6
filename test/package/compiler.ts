/** Compiles small programs of a project against the declarations of the package. */
import { join } from 'node:path'
import ts from 'typescript'

/** How the consumer compiles. */
export interface Compilation {
  readonly module: string
  readonly moduleResolution: string
}

/** What every consumer here has set. Declarations of packages are checked too. */
export function settings(compilation: Compilation): Record<string, unknown> {
  return {
    ...compilation,
    target: 'es2022',
    lib: ['es2022', 'esnext.disposable'],
    types: ['node'],
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: false,
    noEmit: true,
  }
}

// Declarations of other packages stay the same from one compilation to the next.
const parsed = new Map<string, ts.SourceFile | undefined>()

/** The compiler's complaints about files of a folder and about the declarations of the package in it. */
export function complaintsAbout(
  folder: string,
  files: readonly string[],
  compilation: Compilation,
): string[] {
  const { options, errors } = ts.convertCompilerOptionsFromJson(settings(compilation), folder)
  const rootNames = files.map((file) => join(folder, file))
  const program = ts.createProgram({ rootNames, options, host: cachingHost(folder, options) })
  const own = program.getSourceFiles().filter(({ fileName }) => fileName.startsWith(folder))
  const diagnostics = [
    ...errors,
    ...program.getOptionsDiagnostics(),
    ...program.getGlobalDiagnostics(),
    ...program.getSyntacticDiagnostics(),
    ...own.flatMap((file) => program.getSemanticDiagnostics(file)),
  ]
  return diagnostics.map(describe)
}

function cachingHost(folder: string, options: ts.CompilerOptions): ts.CompilerHost {
  const host = ts.createCompilerHost({ ...options, configFilePath: join(folder, 'tsconfig.json') })
  return {
    ...host,
    getCurrentDirectory: () => folder,
    getSourceFile(fileName, version, onError) {
      if (fileName.startsWith(folder)) return host.getSourceFile(fileName, version, onError)
      const format = typeof version === 'object' ? version.impliedNodeFormat : undefined
      const key = [fileName, String(format), String(options.module)].join(' ')
      if (!parsed.has(key)) parsed.set(key, host.getSourceFile(fileName, version, onError))
      return parsed.get(key)
    },
  }
}

function describe({ file, start = 0, messageText }: ts.Diagnostic): string {
  const text = ts.flattenDiagnosticMessageText(messageText, '\n')
  if (file === undefined) return text
  return `${file.fileName}:${file.getLineAndCharacterOfPosition(start).line + 1}: ${text}`
}
