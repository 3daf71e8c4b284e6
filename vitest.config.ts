import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 30_000,
    // A test that fails now and then is a bug report.
    retry: 0,
    allowOnly: false,
    projects: [
      {
        extends: true,
        resolve: { alias: { holdfast: fileURLToPath(new URL('src/index.ts', import.meta.url)) } },
        test: { name: 'holdfast', include: ['test/**/*.test.ts'], exclude: ['test/package/**'] },
      },
      // Takes `holdfast` from the packed tarball.
      {
        extends: true,
        test: {
          name: 'package',
          include: ['test/package/**/*.test.ts'],
          globalSetup: 'test/package/build.ts',
          testTimeout: 180_000,
        },
      },
    ],
  },
})
